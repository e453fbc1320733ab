import assert from "node:assert/strict";
import type { Authorization } from "../../src/ledger/authorization.ts";
import { paidBy } from "../../src/wallets/join_moves.ts";

const last: Authorization = {
  personId: "prs_a",
  connectionId: "con_a",
  day: "2026-11-28",
  spent: "3",
  earlier: [["2026-11-27", "7"]],
  status: "active",
  dailyCap: "10",
  decidedAt: 0,
  requestId: null,
  former: [{ personId: "prs_b", connectionId: "con_b", day: "2026-11-26", spent: "2" }],
};

Deno.test("join: a payer who returns continues their own days, and not those of another", () => {
  const { personId, connectionId, day, spent, earlier, former } = paidBy(last, "prs_b");
  assert.deepEqual({ personId, connectionId, day, spent }, {
    personId: "prs_b",
    connectionId: "con_b",
    day: "2026-11-26",
    spent: "2",
  });
  assert.equal(earlier, undefined);
  assert.deepEqual(former?.[0]?.earlier, last.earlier);
});

Deno.test("join: a new payer continues the connection and its days", () => {
  const { personId, connectionId, spent, earlier } = paidBy(last, "prs_c");
  assert.deepEqual({ personId, connectionId, spent, earlier }, {
    personId: "prs_c",
    connectionId: "con_a",
    spent: "3",
    earlier: last.earlier,
  });
});
