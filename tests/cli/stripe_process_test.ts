import assert from "node:assert/strict";
import { runFarebox } from "../support/command.ts";
import { ownerStripe, paidWorld } from "../support/payments.ts";
import { makeFolder } from "../support/process.ts";

Deno.test("farebox stripe reconcile: books what was missed, of one project or of all", async () => {
  const { world } = await paidWorld();
  using _ = world;
  await world.makeProject({ stripe: ownerStripe });
  for (const session of world.stripe.sessions.values()) session.payment_status = "paid";
  await using folder = await makeFolder();
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    (request, info) => world.app.fetch(request, info),
  );
  const url = `http://127.0.0.1:${server.addr.port}`;
  const run = (...args: string[]) =>
    runFarebox(["stripe", "reconcile", ...args], { folder: folder.path, url });
  const first = await run(world.projectId, "--since", "2026-01-01");
  assert.equal(first.code, 0, first.complaint);
  assert.match(first.printed, /1 paid sessions: 1 booked now, 0 booked before/);
  assert.equal((await world.balance("ada")).balance, "10");
  const all = await run("--since", "2026-01-01T00:00:00Z", "--json");
  assert.equal(all.code, 0, all.complaint);
  assert.partialDeepStrictEqual(JSON.parse(all.printed), { booked: 0, unbooked: [] });
  assert.equal((await world.balance("ada")).balance, "10");
  for (const args of [[], ["--since", "yesterday"], ["--since", "2026-13-01"]]) {
    assert.equal((await run(...args)).code, 2);
  }
  await server.shutdown();
});
