import { hkdfSync } from "node:crypto";
import { fromBytes, toBytes } from "../base/json.ts";
import type { Secret } from "../base/secret.ts";
import type { Deps } from "../deps.ts";
import { attemptsToWrite } from "./backoff.ts";
import { projectsPrefix, sealedWithKey } from "./keys.ts";
import { emptyWrite } from "./kv.ts";

/** The keys with which stored secrets may be encrypted. */
interface SealedWith {
  /** Fingerprints of keys. */
  keys: string[];
  /**
   * A walk that encrypts all secrets with one key: the other keys at its start, and where it goes
   * on; null while there is none.
   */
  walk: { key: string; others: string[]; next: string } | null;
}

/** One page of a walk over all secrets. */
interface WalkedPage {
  /** The cursor of the page; undefined at the start. */
  cursor: string | undefined;
  nextCursor: string | null;
  /** Whether all secrets of the page are encrypted with the first key now. */
  isClean: boolean;
}

/**
 * The mark "all sealed with this key". Every process adds its first key, so the mark is complete at
 * any time; a walk that has encrypted everything again, from start to end, takes the others out.
 */
export interface SealingMark {
  /** Adds the first key of `SECRETS_KEY`: at the start, and again with each sweep. */
  note(): Promise<void>;
  /** Records a page of a walk. A walk that was cut counts for nothing, and starts again. */
  walked(page: WalkedPage): Promise<void>;
  /** Returns a sentence about the step that an operator has to take; null where there is none. */
  warning(): Promise<string | null>;
}

type MarkDeps = Pick<Deps, "kv" | "committer" | "clock" | "randomBytes" | "config">;

/** Creates the mark. Without `SECRETS_KEY`, nothing is sealed and nothing is marked. */
export function createSealingMark(deps: MarkDeps): SealingMark {
  const { kv, committer } = deps;
  const known = deps.config.secretsKeys.map(fingerprintOf);
  const [first] = known;

  /** Writes the mark that `alter` returns; null changes nothing. */
  async function change(alter: (mark: SealedWith | null) => SealedWith | null): Promise<void> {
    for await (const _ of attemptsToWrite(deps)) {
      const { value, version } = await kv.get(sealedWithKey);
      const mark = alter(value && fromBytes<SealedWith>(value));
      if (!mark) return;
      const checks = [{ key: sealedWithKey, version }];
      const sets = [{ key: sealedWithKey, value: toBytes({ ...mark }) }];
      if ((await committer.commit({ ...emptyWrite(), checks, sets })) !== null) return;
    }
  }

  return {
    async note() {
      if (first === undefined) return;
      const isEmpty = (await kv.list({ prefix: projectsPrefix, limit: 1 })).length === 0;
      await change((mark) => {
        if (mark?.keys.includes(first)) return null;
        // A database of 0.9.0 with projects has none: nobody knows their keys before a walk.
        if (!mark && !isEmpty) return null;
        return { walk: mark?.walk ?? null, keys: [...mark?.keys ?? [], first] };
      });
    },
    async walked({ cursor, nextCursor, isClean }) {
      if (first === undefined) return;
      await change((mark) => {
        const keys = mark?.keys ?? [];
        const others = keys.filter((key) => key !== first);
        const walk = cursor === undefined ? { key: first, others, next: "" } : mark?.walk;
        const goesOn = cursor === undefined || walk?.key === first && walk.next === cursor;
        if (!walk || !goesOn) return null;
        if (!isClean) return mark && { keys, walk: null };
        if (nextCursor !== null) {
          const next = { ...walk, next: nextCursor };
          return mark ? { keys, walk: next } : { keys: [unknownKey, first], walk: next };
        }
        // What a process with another first key has added since the start may be behind the walk.
        const added = keys.filter((key) => key !== unknownKey && !walk.others.includes(key));
        return { keys: [...new Set([first, ...added])], walk: null };
      });
    },
    async warning() {
      if (first === undefined) return null;
      const { value } = await kv.get(sealedWithKey);
      const keys = value ? fromBytes<SealedWith>(value).keys : [unknownKey];
      if (keys.includes(unknownKey)) return unknownText;
      if (keys.some((key) => !known.includes(key))) return missingText;
      return keys.length === 1 && keys[0] === first ? null : mixedText;
    },
  };
}

/**
 * Returns a database's stored mark once secrets of another one are in it: they may be encrypted
 * with any key of that one's mark. Null where it has none, and so tells nothing of its keys anyway.
 */
export function markWithMore(
  mark: Uint8Array | null,
  more: Uint8Array | null,
): Uint8Array | null {
  if (!mark) return null;
  const { keys } = fromBytes<SealedWith>(mark);
  const added = more ? fromBytes<SealedWith>(more).keys : [unknownKey];
  // A walk under way may be past them.
  return toBytes({ keys: [...new Set([...keys, ...added])], walk: null });
}

/** Stands in place of a fingerprint where secrets were stored before there was a mark. */
const unknownKey = "unknown";

const unknownText =
  "SECRETS_KEY: this database does not tell yet which key encrypts its secrets. " +
  "Run 'farebox secrets reseal' to its end, once";
const missingText =
  "SECRETS_KEY lacks a key with which secrets may still be encrypted: what needs " +
  "them fails with 503. Start with that key as well, 'new,old', and run 'farebox secrets reseal' " +
  "to its end";
const mixedText =
  "SECRETS_KEY: not all secrets are encrypted with its first key yet. Run 'farebox " +
  "secrets reseal' to its end before you remove another key";

/** A name for a key, from which nobody can derive the key (RFC 5869). */
function fingerprintOf(key: Secret): string {
  const raw = Uint8Array.fromBase64(key.reveal());
  const derived = new Uint8Array(hkdfSync("sha256", raw, "", "farebox key fingerprint", 8));
  return derived.toHex();
}
