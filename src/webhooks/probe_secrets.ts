import { pageOfProjects } from "../projects/reseal.ts";
import { projectKey, subscriptionKey } from "../store/keys.ts";
import type { Key, Kv } from "../store/kv.ts";
import type { Sealed, Secrets } from "../store/secrets.ts";
import { listSubscriptions } from "./store.ts";

/** Of some stored secrets, how many the keys of `SECRETS_KEY` open. */
export interface Probe {
  opened: number;
  /** Where those are that no key opens. */
  unreadable: string[];
}

const secretsTried = 20;
/** Pages of projects that are looked through for them: most may have none. */
const pagesMax = 50;

/** Tries some of the stored secrets, those of the first projects, so that a wrong key is told early. */
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
      const { projects, nextCursor } = await pageOfProjects(kv, cursor);
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
