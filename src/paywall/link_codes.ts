import { toBase62 } from "../base/ids.ts";
import { fromBytes, toBytes } from "../base/json.ts";
import type { Deps } from "../deps.ts";
import { type Eraser, eraseRows } from "../store/erase.ts";
import { type ExpiringKind, keysWithExpiry, replacingExpiry, withExpiry } from "../store/expiry.ts";
import {
  linkKey,
  linksPrefix,
  userLinkKey,
  userLinkPrefix,
  userLinksPrefix,
} from "../store/keys.ts";
import { emptyWrite } from "../store/kv.ts";
import type { AuthorizationLink, LinkSubject } from "./link_subject.ts";

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

const endsAt = (value: Uint8Array) => fromBytes<{ expiresAt: number }>(value).expiresAt;

/** Codes of links. */
export const linkRows: ExpiringKind = { prefix: linksPrefix, endsAt };

/** The current codes of users. */
export const userLinkRows: ExpiringKind = { prefix: userLinksPrefix, endsAt };

/** Short codes in links, and what they are for. */
interface LinkCodes {
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
        const own: UserLinkRow = { code, expiresAt };
        const link = withExpiry(linkRows, { key: linkKey(code), value: toBytes(row) });
        const { sets, deletes } = replacingExpiry(
          userLinkRows,
          { key, value: toBytes(own) },
          value,
        );
        const checks = [{ key, version }];
        const written = await committer.commit({ checks, sets: [...link, ...sets], deletes });
        // Refused where another request has just created one.
        if (written !== null) return code;
      }
    },
    async forAuthorization(link) {
      const code = newCode();
      const row: LinkRow = { kind: "authorize", ...link, expiresAt: link.issuedAt + lifetimeMs };
      const sets = withExpiry(linkRows, { key: linkKey(code), value: toBytes(row) });
      await committer.commit({ ...emptyWrite(), sets });
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
        if (!value || !isTheirs) return null;
        return { sets: [], deletes: keysWithExpiry(linkRows, { key, value }) };
      },
    }),
    eraseRows({
      name: "userLinks",
      kv,
      committer,
      prefix: ({ projectId, user }) => userLinkPrefix(projectId, user),
      rewrite: ({ key, value }) =>
        value && { sets: [], deletes: keysWithExpiry(userLinkRows, { key, value }) },
    }),
  ];
}
