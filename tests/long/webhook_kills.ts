// Takes minutes, so it is no part of `deno task test`:
//   deno test -A tests/long/webhook_kills.ts
import assert from "node:assert/strict";
import { killUnderLoad } from "../support/webhook_kills.ts";

Deno.test("webhooks: forty kills under load lose no event", async () => {
  const ledger = await killUnderLoad(40);
  console.log(ledger);
  assert.equal(ledger.lost, 0);
  assert.ok(ledger.acknowledged > 2_000);
});
