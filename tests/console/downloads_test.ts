import assert from "node:assert/strict";
import { parse } from "csv-parse/sync";
import { signedIn } from "../support/console.ts";
import { createWorld, type World } from "../support/world.ts";

/** A file's rows, and its last line. */
async function download(world: World, path: string) {
  const owner = await signedIn(world);
  const rows: string[][] = parse((await owner.get(path)).html, { relax_column_count: true });
  return { rows: rows.slice(1, -1), total: rows.at(-1) ?? [] };
}

Deno.test("downloads: a file has every row, however many, and its last line counts them", async () => {
  using world = await createWorld();
  const many = 2_600;
  await world.deposit("ada", "7");
  for (let from = 0; from < many; from += 100) {
    await Promise.all(Array.from({ length: 100 }, (_, n) => {
      const body = { user: `user-${from + n}`, amount: "0.5", reason: "goodwill" };
      return world.json("/v1/user/balance/deposit", { body });
    }));
    await world.clock.advance(1_000);
  }
  await world.json("/v1/user/charge", { body: { user: "ada", amount: "1" } });

  const activity = await download(world, "activity.csv");
  assert.equal(activity.rows.length, many + 2);
  assert.equal(new Set(activity.rows.map(([id]) => id)).size, many + 2);
  assert.deepEqual(activity.total.slice(0, 2), ["total", `${many + 2} rows`]);
  assert.equal(activity.total[5], "1306");
  const charges = await download(world, "activity.csv?kind=charge");
  assert.deepEqual([charges.rows.length, charges.total[5]], [1, "-1"]);
  const users = await download(world, "users.csv");
  assert.equal(users.rows.length, many + 1);
  assert.deepEqual(users.total, [`total: ${many + 1} rows`, "1306"]);
});
