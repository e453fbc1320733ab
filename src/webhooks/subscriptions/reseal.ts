import { type AuditActor, auditRow, recordAction } from "../../projects/audit.ts";
import {
  listProjectsToReseal,
  type ResealDeps,
  type Resealed,
  resealed,
  resealOne,
  resealProject,
} from "../../projects/reseal.ts";
import { projectKey, subscriptionKey } from "../../store/keys.ts";
import { emptyWrite, type Key, type Kv } from "../../store/kv.ts";
import type { SealingMark } from "../../store/sealed_with.ts";
import type { Sealed, Secrets } from "../../store/secrets.ts";
import type { Subscription } from "../schema.ts";
import { listSubscriptions, putSubscription, readSubscription } from "../store.ts";

/** The progress of a walk over all secrets. */
export interface ResealPage {
  /** How many secrets were encrypted with an older key, and no longer are. */
  resealed: number;
  /** The ids of projects and subscriptions with secrets that no key decrypts. */
  unreadable: string[];
  nextCursor: string | null;
}

const attemptsMax = 8;

/**
 * Encrypts all stored secrets with the first key of `SECRETS_KEY`, a page of projects at each call,
 * so that the other keys can be removed. Repeating it is harmless. The audit trails of the instance
 * and of the projects record it.
 */
export function createReseal(
  services: ResealDeps & { sealingMark: SealingMark },
): (cursor: string | undefined, by: AuditActor) => Promise<ResealPage> {
  const { kv } = services.deps;
  return async (cursor, by) => {
    const { projects, nextCursor } = await listProjectsToReseal(kv, cursor);
    const all: Resealed[] = [];
    for (const project of projects) {
      all.push(await resealProject(services, project, by));
      for (const subscription of await listSubscriptions(kv, project.id)) {
        all.push(await resealSubscription(services, subscription, by));
      }
    }
    const count = all.reduce((sum, done) => sum + done.count, 0);
    const unreadable = all.flatMap((done) => [...done.unreadable]);
    const isFirst = cursor === undefined;
    if (isFirst || count > 0) await recordAction(services.deps, null, resealed(by, "all", count));
    await services.sealingMark.walked({ cursor, nextCursor, isClean: unreadable.length === 0 });
    return { resealed: count, unreadable, nextCursor };
  };
}

async function resealSubscription(
  { deps, secrets }: ResealDeps,
  { projectId, id }: Subscription,
  by: AuditActor,
): Promise<Resealed> {
  const { kv, committer } = deps;
  const place = subscriptionKey(projectId, id);
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const found = await readSubscription(kv, projectId, id);
    const done: Resealed = { count: 0, unreadable: new Set() };
    if (!found) return done;
    const fresh = (sealed: Sealed) => resealOne(secrets, sealed, { place, done });
    const { secret, oldSecrets, customHeaders } = found.value;
    const changed: Subscription = {
      ...found.value,
      secret: await fresh(secret),
      oldSecrets: await Promise.all(
        oldSecrets.map(async (old) => ({ ...old, secret: await fresh(old.secret) })),
      ),
      customHeaders: customHeaders && (await fresh(customHeaders)),
    };
    const { count } = done;
    if (count === 0) return done;
    const write = emptyWrite();
    putSubscription(write, changed, found.version);
    write.sets.push(auditRow(deps, projectId, resealed(by, id, count)));
    if ((await committer.commit(write)) !== null) return done;
  }
  throw new Error(`subscription ${id} kept changing`);
}

/** How many of a sample of stored secrets the keys of `SECRETS_KEY` decrypt. */
export interface Probe {
  opened: number;
  /** The ids of projects and subscriptions with secrets that no key decrypts. */
  unreadable: string[];
}

const secretsTried = 20;
/** How many pages of projects are searched for secrets: most projects may have none. */
const pagesMax = 50;

/**
 * Creates a check of some stored secrets, those of the first projects, so that a wrong key is
 * noticed early.
 */
export function createProbe(kv: Kv, { open }: Pick<Secrets, "open">): () => Promise<Probe> {
  return async () => {
    const probe: Probe = { opened: 0, unreadable: [] };
    const tryAll = async (place: Key, sealed: (Sealed | null | undefined)[]) => {
      for (const one of sealed) {
        if (!one) continue;
        if (await open(one, place).then(() => true, () => false)) probe.opened++;
        else probe.unreadable.push(String(place.at(-1)));
      }
    };
    let cursor: string | null | undefined;
    for (let page = 0; page < pagesMax && cursor !== null; page++) {
      const { projects, nextCursor } = await listProjectsToReseal(kv, cursor);
      for (const { id, upstream, stripe } of projects) {
        await tryAll(projectKey(id), [upstream?.apiKey, stripe?.secretKey, stripe?.webhookSecret]);
        for (const subscription of (await listSubscriptions(kv, id)).slice(0, secretsTried)) {
          await tryAll(subscriptionKey(id, subscription.id), [subscription.secret]);
        }
        if (probe.opened + probe.unreadable.length >= secretsTried) return probe;
      }
      cursor = nextCursor;
    }
    return probe;
  };
}
