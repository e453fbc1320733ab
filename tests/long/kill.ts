// Takes over a minute, so it is no part of `deno task test`:
//   deno test -A tests/long/kill.ts
import { killInTheMiddle } from "../support/killed.ts";
import { sleep } from "../support/traffic.ts";

Deno.test("process: what a killed process held is released by itself, after its minute", async () => {
  await killInTheMiddle(async ({ farebox }) => {
    await sleep(60_000);
    return farebox;
  });
});
