import assert from "node:assert/strict";
import type { Mail } from "../../src/deps.ts";
import type { World } from "./world.ts";

/** A minute passes, and a sweep checks the conditions and sends e-mails. */
export async function nextCheck(world: World, minutes = 1): Promise<void> {
  await world.clock.advance(minutes * 60_000 + 1);
  await world.app.sweep();
  // E-mails are sent beside the sweep.
  for (let turn = 0; turn < 100; turn++) await new Promise((resolve) => setTimeout(resolve, 1));
}

/** Returns the path of the link in an e-mail that asks for a confirmation. */
export function linkIn({ text }: Pick<Mail, "text">): string {
  const [, path] = /https?:\/\/[^/]+(\/alerts\/confirm\/\S+)/.exec(text) ?? [];
  return path ?? assert.fail(`no link in ${text}`);
}

/** Opens the links of all addresses that wait for a confirmation, as their owners do. */
export async function confirmAddresses(world: World, mails: Mail[]): Promise<void> {
  await nextCheck(world);
  await world.until(() => mails.length > 0);
  for (const mail of mails.splice(0)) {
    const response = await world.call(linkIn(mail), { method: "POST", raw: "", key: null });
    assert.equal(response.status, 200, await response.text());
  }
}
