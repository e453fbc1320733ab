// Takes over half a minute, so it is no part of `deno task test`:
//   deno test -A tests/long/rolling_restart.ts
import assert from "node:assert/strict";
import { restartAll } from "../support/rolling_restart.ts";

Deno.test("guides: a rolling restart behind nginx loses none of 10,000 calls", async () => {
  const { answered, lost } = await restartAll("/usr/sbin/nginx", { calls: 10_000 });
  assert.deepEqual(lost, {});
  assert.ok(answered >= 10_000, `${answered} calls were answered`);
});
