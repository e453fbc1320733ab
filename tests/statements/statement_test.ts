import assert from "node:assert/strict";
import { parse } from "csv-parse/sync";
import { createDayOf, readSpan } from "../../src/statements/span.ts";
import { chatBody, chatPath } from "../support/books.ts";
import { completion, usage } from "../support/upstream.ts";
import { adminKey, type Body, createWorld, type World } from "../support/world.ts";

const hourMs = 60 * 60 * 1000;
const start = Date.parse("2026-01-01T00:00:00Z");

const at = (world: World, path: string) =>
  world.json(`/v1/admin/projects/${world.projectId}/${path}`, { key: adminKey });

async function statementOf(world: World, query: string): Promise<Body> {
  const { status, body } = await at(world, `statement?${query}`);
  assert.equal(status, 200, JSON.stringify(body));
  return body;
}

/** Moves money of three users for some days, and back. */
async function someDays(world: World): Promise<void> {
  world.upstream.reply(() => Promise.resolve(completion({ usage: usage(1000, 500) })));
  const move = (path: string, body: Body) => world.json(path, { body });
  for (const user of ["ada", "bob", "cyd"]) {
    await move("/v1/user/balance/deposit", { user, amount: "10" });
    await world.clock.advance(11 * hourMs);
  }
  const gift = { user: "ada", amount: "3", reason: "goodwill" };
  await move("/v1/user/balance/deposit", gift);
  for (const user of ["ada", "bob", "ada"]) {
    await world.json(chatPath, { body: chatBody(user) });
    await world.clock.advance(7 * hourMs);
  }
  const charged = await move("/v1/user/charge", { user: "bob", amount: "1.5" });
  const { activityId } = charged.body;
  await move("/v1/user/refund", { activityId, amount: "0.5" });
  const paid = await move("/v1/user/balance/deposit", { user: "cyd", amount: "4" });
  await move("/v1/user/refund", { activityId: paid.body.activityId });
}

Deno.test("statement: opens, moves by reason, closes, and adds up to the last digit", async () => {
  using world = await createWorld();
  await someDays(world);
  const whole = await statementOf(world, "from=2026-01");
  const moved = Object.entries(whole.total.movements).filter(([, amount]) => amount !== "0");
  assert.deepEqual(Object.fromEntries(moved), {
    usage: "-0.006",
    charge: "-1.5",
    payment: "34",
    goodwill: "3",
    refund: "0.5",
    reversal_out: "-4",
  });
  const { revenue, calls, callsWithUnknownCost, cost, margin } = whole.total;
  assert.deepEqual({ revenue, calls, callsWithUnknownCost, cost, margin }, {
    ...{ revenue: "1.006", calls: 3, callsWithUnknownCost: 3, cost: null, margin: null },
  });
  assert.deepEqual(whole.check, {
    ...{ opening: "0", movements: "31.994", closing: "31.994", difference: "0" },
  });
  const { balances, total } = (await at(world, "balances")).body;
  assert.equal(total, "31.994");
  for (const { user, balance } of balances) {
    assert.equal((await world.balance(user)).balance, balance);
  }
});

Deno.test("statement: spans that meet at any instant add up to the whole, by every group", async () => {
  using world = await createWorld();
  await someDays(world);
  const end = new Date(world.clock.now() + 1).toISOString();
  const cuts = [
    "2026-01-01T00:00:00Z",
    "2026-01-01T11:00:00.001Z",
    "2026-01-02T05:30:00+05:45",
    end,
  ];
  for (const group of ["day", "model", "user", "key", "reason"]) {
    const of = (from: string, to: string) =>
      statementOf(world, new URLSearchParams({ from, to, group }).toString());
    const whole = await of(cuts[0] ?? "", end);
    let closing = "0";
    let calls = 0;
    for (const [n, from] of cuts.slice(0, -1).entries()) {
      const part = await of(from, cuts[n + 1] ?? "");
      assert.equal(part.total.opening, closing, `${group} from ${from}`);
      assert.equal(part.check.difference, "0");
      const ofRows = part.rows.reduce((sum: number, row: Body) => sum + row.calls, 0);
      assert.equal(ofRows, part.total.calls);
      closing = part.total.closing;
      calls += part.total.calls;
    }
    assert.deepEqual([closing, calls], [whole.total.closing, whole.total.calls]);
  }
});

Deno.test("statement: days and months are those of the time zone, of 23 and 25 hours too", async () => {
  const lengthOf = (from: string, tz: string) => {
    const span = readSpan({ from, tz }, start);
    return (span.to - span.from) / hourMs;
  };
  assert.equal(lengthOf("2026-03-29", "Europe/Berlin"), 23);
  assert.equal(lengthOf("2026-10-25", "Europe/Berlin"), 25);
  assert.equal(lengthOf("2026-10", "Europe/Berlin"), 31 * 24 + 1);
  assert.equal(
    readSpan({ from: "2026-01-02", tz: "Asia/Kathmandu" }, start).from % hourMs,
    hourMs / 4,
  );
  const dayOf = createDayOf("Australia/Adelaide");
  assert.equal(dayOf(Date.parse("2026-10-03T16:29:59Z")), "2026-10-04");
  assert.equal(dayOf(Date.parse("2026-10-03T14:29:59Z")), "2026-10-03");
  using world = await createWorld();
  await someDays(world);
  const days = (await statementOf(world, "from=2026-01&tz=Asia/Kolkata")).rows;
  assert.deepEqual(days.map(({ group }: Body) => group), [
    "2026-01-01",
    "2026-01-02",
    "2026-01-03",
  ]);
  assert.deepEqual(
    days.slice(1).map(({ opening }: Body) => opening),
    days.slice(0, -1).map(({ closing }: Body) => closing),
  );
});

Deno.test("statement: as CSV it ends with its total and its check", async () => {
  using world = await createWorld();
  await someDays(world);
  const path = `/v1/admin/projects/${world.projectId}/statement?from=2026-01&group=user&format=csv`;
  const text = await (await world.call(path, { key: adminKey })).text();
  const rows: Record<string, string>[] = parse(text, { columns: true });
  assert.deepEqual(rows.map(({ user }) => user), ["ada", "bob", "cyd", "total", "check"]);
  const [ada, , , total, check] = rows;
  assert.equal(ada?.closing, "12.996");
  assert.equal(total?.closing, "31.994");
  assert.match(total?.note ?? "", /^usd; 2026-01-01T00:00:00\.000Z to 2026-02-01T.*time zone UTC/);
  assert.equal(check?.note, "movements 31.994; difference 0");
});

const wrong: [query: string, param: string][] = [
  ["from=2026-02-30", "from"],
  ["from=2026-13", "from"],
  ["from=yesterday", "from"],
  ["from=2026-01-02&to=2026-01-01", "to"],
  ["from=2026-01-02&to=2026-01-02", "to"],
  ["from=2026-01-02T00:00:00", "from"],
  ["from=2026-01&tz=Berlin", "tz"],
  ["from=2026-01&group=hour", "group"],
  ["from=2026-01&from=2026-02", "from"],
  ["since=2026-01", "since"],
];
for (const [query, param] of wrong) {
  Deno.test(`statement: ${query} is refused`, async () => {
    using world = await createWorld();
    const { status, body } = await at(world, `statement?${query}`);
    assert.deepEqual([status, body.error.param], [400, param], JSON.stringify(body));
  });
}
