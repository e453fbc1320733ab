import type { Deps } from "../deps.ts";
import { connectionsPrefix, ownAccountsPrefix } from "../store/keys.ts";
import type { Kv } from "../store/kv.ts";
import { isSignedIn, readEpoch } from "./device_epochs.ts";
import { listDevices } from "./device_rows.ts";
import { listEmails } from "./email_rows.ts";
import { listPasskeys } from "./store.ts";

/** How many devices, passkeys and e-mail addresses open a wallet. */
interface WaysOf {
  devices: number;
  passkeys: number;
  emails: number;
}

const devicesPerRead = 200;

/** Reads by what a wallet can be opened. A device of 0.9.0 counts from its first visit on. */
export async function readWaysOf(
  { kv, clock }: Pick<Deps, "kv" | "clock">,
  personId: string,
): Promise<WaysOf> {
  const [devices, epoch, passkeys, emails] = await Promise.all([
    listDevices(kv, personId, devicesPerRead),
    readEpoch(kv, personId),
    listPasskeys(kv, personId),
    listEmails(kv, personId),
  ]);
  const open = devices.filter(({ hash, device }) =>
    device.endsAt > clock.now() && isSignedIn(hash, device, epoch)
  );
  return { devices: open.length, passkeys: passkeys.length, emails: emails.length };
}

/** Whether a wallet has ever authorized or held anything. */
export async function walletExists(kv: Kv, personId: string): Promise<boolean> {
  const prefixes = [connectionsPrefix(personId), ownAccountsPrefix(personId)];
  const found = await Promise.all(prefixes.map((prefix) => kv.list({ prefix, limit: 1 })));
  return found.some((rows) => rows.length > 0);
}
