import type { Deps } from "../deps.ts";
import { decodeAccount } from "../ledger/account.ts";
import {
  type Authorization,
  chargesOf,
  decodeAuthorization,
  encodeAuthorization,
  formerPayers,
} from "../ledger/authorization.ts";
import type { Transfers } from "../ledger/transfer.ts";
import { attemptsToWrite } from "../store/backoff.ts";
import {
  accountKey,
  authorizationKey,
  connectionKey,
  connectionsPrefix,
  personPasskeyKey,
} from "../store/keys.ts";
import { emptyWrite } from "../store/kv.ts";
import { pagesUnder } from "../store/scan.ts";
import { isSignedIn, readEpoch } from "./device_epochs.ts";
import { deviceIndexKeys, deviceKeys, deviceSets, listDevices } from "./device_rows.ts";
import { emailRemoval, emailSets, listEmails } from "./email_rows.ts";
import {
  listCurrencies,
  listPasskeys,
  markConnection,
  passkeyWrite,
  readPasskey,
} from "./store.ts";

/** A wallet, and the one that it is part of. */
interface Joined {
  from: string;
  into: string;
}

type MoveDeps = Pick<Deps, "kv" | "committer" | "clock" | "randomBytes">;

const devicesPerRead = 50;
const connectionsPerRead = 100;

/**
 * Moves everything that a wallet has to the one that it is part of: first who may open it, then
 * what it authorized, then its money. Each part is a write of its own and may be repeated; what
 * calls hold stays until they end. Entries and connections stay, for refunds and for erasures.
 */
export async function moveAll(deps: MoveDeps, transfers: Transfers, joined: Joined): Promise<void> {
  while (await moveDevices(deps, joined) > 0);
  await movePasskeys(deps, joined);
  await moveEmails(deps, joined);
  await moveAuthorizations(deps, joined);
  for (const currency of await listCurrencies(deps.kv, joined.from)) {
    await transfers.forward({ currency, ...joined });
  }
}

/** Moves some devices; those that were signed out end. Returns how many there were. */
async function moveDevices(
  { kv, committer, clock }: MoveDeps,
  { from, into }: Joined,
): Promise<number> {
  const devices = await listDevices(kv, from, devicesPerRead);
  let moved = 0;
  for (const { hash, device, row } of devices) {
    const isIn = device.endsAt > clock.now() &&
      isSignedIn(hash, device, await readEpoch(kv, from));
    const { number: epoch } = await readEpoch(kv, into);
    // A device that was in use at the same time may have left the index behind.
    const isMoved = device.personId !== from;
    const sets = isIn && !isMoved ? deviceSets(hash, { ...device, personId: into, epoch }) : [];
    const deletes = sets.length > 0 || isMoved
      ? deviceIndexKeys(from, hash, device)
      : deviceKeys(hash, device);
    const checks = [{ key: row.key, version: row.version }];
    if ((await committer.commit({ checks, sets, deletes })) !== null) moved++;
  }
  return moved;
}

async function movePasskeys({ kv, committer }: MoveDeps, { from, into }: Joined): Promise<void> {
  for (const { id } of await listPasskeys(kv, from)) {
    const found = await readPasskey(kv, id);
    if (found?.passkey.personId !== from) continue;
    const write = passkeyWrite(id, { ...found.passkey, personId: into }, found.version);
    write.deletes.push(personPasskeyKey(from, id));
    await committer.commit(write);
  }
}

async function moveEmails({ kv, committer }: MoveDeps, { from, into }: Joined): Promise<void> {
  for (const email of await listEmails(kv, from)) {
    const { deletes } = emailRemoval(from, email.hash);
    await committer.commit({ ...emptyWrite(), sets: emailSets(into, email), deletes });
  }
}

async function moveAuthorizations(deps: MoveDeps, { from, into }: Joined): Promise<void> {
  for await (const rows of pagesUnder(deps.kv, connectionsPrefix(from), connectionsPerRead)) {
    for (const { key } of rows) {
      await moveAuthorization(deps, {
        from,
        into,
        projectId: String(key[2]),
        user: String(key[3]),
      });
    }
  }
}

/** A user who is charged quickly changes the row all the time. */
async function moveAuthorization(
  deps: MoveDeps,
  { from, into, projectId, user }: Joined & { projectId: string; user: string },
): Promise<void> {
  const { kv, committer } = deps;
  const key = authorizationKey(projectId, user);
  for await (const _ of attemptsToWrite(deps)) {
    const [found, own] = await kv.getMany([key, accountKey(projectId, user)]);
    const last = found?.value ? decodeAuthorization(found.value) : null;
    if (!found || last?.personId !== from) return;
    // The user is being erased: the sweep comes again.
    if (decodeAccount(own?.value ?? null).closed) return;
    const write = emptyWrite();
    for (const row of [found, own]) {
      if (row) write.checks.push({ key: row.key, version: row.version });
    }
    write.sets.push({ key, value: encodeAuthorization(paidBy(last, into)) });
    markConnection(write, connectionKey(into, projectId, user));
    if ((await committer.commit(write)) !== null) return;
  }
}

/**
 * Returns the authorization with another payer. The connection stays, so that calls which the
 * former wallet still pays count toward the same day's cap; a payer who returns continues their
 * own.
 */
export function paidBy(last: Authorization, into: string): Authorization {
  const payer = last.former?.find(({ personId }) => personId === into) ?? last;
  const { earlier: _other, ...kept } = last;
  const { connectionId } = payer;
  const former = formerPayers(last, into);
  return { ...kept, personId: into, connectionId, ...chargesOf(payer), former };
}
