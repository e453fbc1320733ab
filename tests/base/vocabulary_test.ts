import assert from "node:assert/strict";
import { activityKindNames, entryKindNames, entryKinds } from "../../src/base/entry_kinds.ts";
import { refusalReasons } from "../../src/base/refusal_reasons.ts";
import { exportColumns } from "../../src/export/kinds.ts";

// These words are stored or public. A change here breaks owners' code, or a database.

Deno.test("vocabulary: each refusal reason keeps its code and its public reasons", () => {
  const words = Object.values(refusalReasons).map(({ code, chat, charge }) => [code, chat, charge]);
  assert.deepEqual(words, [
    ["insufficient_funds", "insufficient_funds", "insufficient_funds"],
    ["authorization_required", "authorization_required", "authorization_required"],
    ["limit_reached", "limit_reached", "authorization_required"],
    ["spend_limit", "limit_reached", "limit_reached"],
    ["busy", "balance_held", "balance_held"],
  ]);
});

Deno.test("vocabulary: the kinds of entries keep their names, and only usage carries a usage", () => {
  const seen = ["deposit", "charge", "usage", "refund", "trial", "expired", "carried"];
  assert.deepEqual(activityKindNames, seen);
  assert.deepEqual(entryKindNames, [...seen.slice(0, -1), "transfer", "carried"]);
  const withUsage = entryKindNames.filter((kind) => entryKinds[kind].hasUsage);
  assert.deepEqual(withUsage, ["usage"]);
});

Deno.test("vocabulary: exported entries keep the columns that owners' imports rely on", () => {
  assert.deepEqual(exportColumns.entries.slice(0, 15), [
    ...["id", "createdAt", "kind", "user", "amount", "delta", "currency", "balanceAfter"],
    ...["shortfall", "idempotencyKey", "refundedActivityId", "wallet"],
    ...["usage.model", "usage.requestId", "usage.source"],
  ]);
  assert.equal(exportColumns.entries.at(-1), "metadata");
});
