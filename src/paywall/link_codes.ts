import { toBase62 } from "../base/ids.ts";
import { fromBytes, toBytes } from "../base/json.ts";
import type { Deps } from "../deps.ts";
import { type Eraser, eraseRows } from "../store/erase.ts";
import {
  linkKey,
  linksPrefix,
  userLinkKey,
  userLinkPrefix,
  userLinksPrefix,
} from "../store/keys.ts";
import { emptyWrite } from "../store/kv.ts";
import { listAfter } from "../store/scan.ts";
import type { AuthorizationLink, LinkSubject } from "./links.ts";

/** What a code is for. */
type LinkRow = ({ kind: "topup" } & LinkSubject | { kind: "authorize" } & AuthorizationLink) & {
  /** In milliseconds since 1970. */
  expiresAt: number;
};

/** The current top-up code of a user. */
interface UserLinkRow {
  code: string;
  expiresAt: number;
}

/** Short codes in links, and what they are for. */
export interface LinkCodes {
  /**
   * Returns a code for a user's top-up page: the same one for a day. Null where a new one is needed
   * and `mayCreate` does not allow it.
   */
  forTopUp(subject: LinkSubject, mayCreate: () => boolean): Promise<string | null>;
  /** Returns a new code for one request of authorization. */
  forAuthorization(link: AuthorizationLink): Promise<string>;
  /** Returns what a code is for; null for one that never was or that has expired. */
  read(code: string): Promise<LinkRow | null>;
}

/** 96 random bits: nobody finds a code by trying. */
const codeBytes = 12;
const codePattern = /^[0-9A-Za-z]{17}$/;
const dayMs = 24 * 60 * 60 * 1000;

/** Whether a link's token is a code, and not one that carries what it is for. */
export function isLinkCode(token: string): boolean {
  return codePattern.test(token);
}

/** Creates codes that are valid for `lifetimeMs`. */
export function createLinkCodes(
  { kv, committer, clock, randomBytes }: Pick<Deps, "kv" | "committer" | "clock" | "randomBytes">,
  lifetimeMs: number,
): LinkCodes {
  const newCode = () => toBase62(randomBytes(codeBytes));
  return {
    async forTopUp({ projectId, user }, mayCreate) {
      const key = userLinkKey(projectId, user);
      let isAllowed = false;
      while (true) {
        const { value, version } = await kv.get(key);
        const now = clock.now();
        const current = value && fromBytes<UserLinkRow>(value);
        if (current && current.expiresAt > now + lifetimeMs - dayMs) return current.code;
        isAllowed ||= mayCreate();
        if (!isAllowed) return current && current.expiresAt > now ? current.code : null;
        const [code, expiresAt] = [newCode(), now + lifetimeMs];
        const row: LinkRow = { kind: "topup", projectId, user, expiresAt };
        const sets = [
          { key: linkKey(code), value: toBytes(row) },
          { key, value: toBytes({ code, expiresAt } satisfies UserLinkRow) },
        ];
        const written = await committer.commit({
          ...emptyWrite(),
          checks: [{ key, version }],
          sets,
        });
        // Refused where another request has just created one.
        if (written !== null) return code;
      }
    },
    async forAuthorization(link) {
      const code = newCode();
      const row: LinkRow = { kind: "authorize", ...link, expiresAt: link.issuedAt + lifetimeMs };
      await committer.commit({
        ...emptyWrite(),
        sets: [{ key: linkKey(code), value: toBytes(row) }],
      });
      return code;
    },
    async read(code) {
      const { value } = await kv.get(linkKey(code));
      const row = value && fromBytes<LinkRow>(value);
      return row && row.expiresAt > clock.now() ? row : null;
    },
  };
}

/** Deletes the links of a user. */
export function createLinkErasers({ kv, committer }: Pick<Deps, "kv" | "committer">): Eraser[] {
  return [
    eraseRows({
      name: "links",
      kv,
      committer,
      prefix: () => linksPrefix,
      rewrite({ key, value }, { projectId, user }) {
        const row = value && fromBytes<LinkRow>(value);
        const isTheirs = row?.projectId === projectId && row.user === user;
        return isTheirs ? { sets: [], deletes: [key] } : null;
      },
    }),
    eraseRows({
      name: "userLinks",
      kv,
      committer,
      prefix: ({ projectId, user }) => userLinkPrefix(projectId, user),
      rewrite: ({ key }) => ({ sets: [], deletes: [key] }),
    }),
  ];
}

const rowsPerSweep = 500;

/** Creates a sweep that deletes expired links, a bounded part at each call. */
export function createLinkSweep(
  { kv, committer, clock }: Pick<Deps, "kv" | "committer" | "clock">,
): () => Promise<void> {
  const sweeps = [linksPrefix, userLinksPrefix].map((prefix) => {
    let after: readonly (string | number)[] | null = null;
    return async () => {
      const rows = await listAfter(kv, prefix, { after, limit: rowsPerSweep });
      after = rows.length < rowsPerSweep ? null : rows.at(-1)?.key ?? null;
      const now = clock.now();
      const old = rows.filter(({ value }) =>
        value && fromBytes<{ expiresAt: number }>(value).expiresAt <= now
      );
      if (old.length === 0) return;
      // A user's row that was just renewed may go too: the next link is then another one.
      await committer.commit({ ...emptyWrite(), deletes: old.map(({ key }) => key) });
    };
  });
  return async () => {
    for (const sweep of sweeps) await sweep();
  };
}
