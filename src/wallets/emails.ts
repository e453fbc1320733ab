import { toBase64Url } from "../base/base64.ts";
import { Bursts } from "../base/bursts.ts";
import { hashOfEmail, inboxOf, shortenEmail } from "../base/email.ts";
import { ApiError, badRequest, errorFields } from "../base/errors.ts";
import type { Deps } from "../deps.ts";
import type { Reader } from "../pages/texts/texts.tsx";
import { attemptsToWrite } from "../store/backoff.ts";
import { emptyWrite, type Write } from "../store/kv.ts";
import type { DeviceCookies } from "./device_cookies.ts";
import { walletMail } from "./email_mail.tsx";
import {
  emailRemoval,
  emailSets,
  emailsMax,
  listEmails,
  listWalletsOf,
  mailCountWrite,
  readMailCount,
  readWalletLink,
  type WalletEmail,
  type WalletLink,
  walletLinkSets,
} from "./email_rows.ts";
import { ownerOf } from "./join_rows.ts";

/** Who asks for an e-mail, in which language, and from which page. */
interface Asked {
  email: string;
  reader: Reader;
  /** The path of the page that they came from; null for the wallet's page. */
  from: string | null;
}

/** A link of an e-mail that is valid, and the wallets that it opens. */
export interface OpenedLink {
  link: WalletLink;
  wallets: string[];
}

/** A person's way back to their wallet by e-mail. */
export interface WalletEmails {
  /** Whether this server sends e-mail. */
  readonly isOffered: boolean;
  /** Sends an address the link that confirms it. Throws 400 where it has got too many; 502. */
  ask(personId: string, asked: Asked): Promise<void>;
  /**
   * Sends an address the link that opens its wallets, if there are any. Nobody learns whether there
   * are: it returns at once. Throws 429 for very many requests from one network.
   */
  sendLink(asked: Asked, network: string): void;
  /** Returns what a link is for; null when it never was, has ended, or was used. */
  read(token: string): Promise<OpenedLink | null>;
  /** Confirms the address of a link, once. False when it has been used. */
  confirm(token: string): Promise<boolean>;
  /** Opens a wallet of a link's address on the device, once. Null when it has been used. */
  open(token: string, wallet: string): Promise<{ cookie: string; from: string | null } | null>;
  list(personId: string): Promise<WalletEmail[]>;
  /** The address no longer opens the wallet, nor does any link that was sent to it. */
  remove(personId: string, hash: string): Promise<void>;
}

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;
const linkLifetimeMs = 30 * minuteMs;
/**
 * E-mails a day to one inbox, for one wallet, and to addresses that are not confirmed. The two
 * kinds are counted apart: else the one would tell whether the other was sent.
 */
const perInbox = 5;
const perWallet = 5;
const perInstance = 500;
const pauseMs = minuteMs;
/** How many e-mails one network may ask for: at first, and then one in so many ms. */
const perNetwork = { first: 10, everyMs: 10 * minuteMs } as const;
const tokenBytes = 32;

type EmailDeps = Pick<
  Deps,
  "kv" | "committer" | "clock" | "id" | "log" | "config" | "sendMail" | "randomBytes"
>;

/** Creates the way back by e-mail: links are random, and valid once, for half an hour. */
export function createWalletEmails(
  deps: EmailDeps,
  deviceCookies: Pick<DeviceCookies, "deviceFor">,
): WalletEmails {
  const { kv, committer, clock, log } = deps;
  const networks = new Bursts(clock, perNetwork);

  /** Counts an e-mail before it is sent. False when too many were. */
  async function count(name: string, most: number, pause = pauseMs): Promise<boolean> {
    for await (const _ of attemptsToWrite(deps)) {
      const { counted, version } = await readMailCount(kv, name);
      const now = clock.now();
      const known = counted && counted.endsAt > now ? counted : null;
      const { count, lastAt, endsAt } = known ??
        { count: 0, lastAt: -Infinity, endsAt: now + dayMs };
      if (count >= most || now - lastAt < pause) return false;
      const next = { count: count + 1, lastAt: now, endsAt };
      if ((await committer.commit(mailCountWrite(name, next, version))) !== null) return true;
    }
    return false;
  }

  async function send({ email, reader, from }: Asked, confirms: string | null): Promise<void> {
    const { sendMail, config: { baseUrl } } = deps;
    if (!sendMail) return;
    const token = toBase64Url(deps.randomBytes(tokenBytes));
    const named = { hash: hashOfEmail(email), shown: shortenEmail(email) };
    const link: WalletLink = { confirms, email: named, from, endsAt: clock.now() + linkLifetimeMs };
    await committer.commit({ ...emptyWrite(), sets: walletLinkSets(token, link) });
    const url = `${baseUrl}/wallet/mail/${token}`;
    const kind = confirms === null ? "open" : "confirm";
    await sendMail(walletMail({ kind, baseUrl, to: email, url, reader }, deps.id("wml")));
  }

  async function sendIfKnown(asked: Asked): Promise<void> {
    const wallets = await listWalletsOf(kv, hashOfEmail(asked.email));
    if (wallets.length === 0 || !await count(`open ${inboxOf(asked.email)}`, perInbox)) return;
    await send(asked, null);
  }

  async function find(token: string) {
    const found = await readWalletLink(kv, token);
    if (!found || found.link.endsAt <= clock.now()) return null;
    const { confirms, email } = found.link;
    const wallets = confirms === null ? await listWalletsOf(kv, email.hash) : [confirms];
    return wallets.length === 0 ? null : { ...found, wallets };
  }

  async function use({ checks, deletes }: Write, more: Pick<Write, "sets">): Promise<boolean> {
    return (await committer.commit({ checks, deletes, ...more })) !== null;
  }

  return {
    isOffered: deps.sendMail !== null,
    async ask(personId, asked) {
      if ((await listEmails(kv, personId)).length >= emailsMax) throw tooManyEmails();
      const isCounted = await count(personId, perWallet, 0) &&
        await count(`confirm ${inboxOf(asked.email)}`, perInbox) &&
        await count("confirm", perInstance, 0);
      if (!isCounted) throw tooOften();
      await send(asked, personId).catch((cause) => {
        throw new ApiError(502, { message: mailFailed, code: "mail_failed", cause });
      });
    },
    sendLink(asked, network) {
      if (!networks.isFirst(network)) throw tooOften(429);
      sendIfKnown(asked).catch((error) => log("warn", "wallet_mail_failed", errorFields(error)));
    },
    read: find,
    async confirm(token) {
      const found = await find(token);
      if (!found?.link.confirms) return false;
      const { link: { confirms, email }, used } = found;
      const owner = await ownerOf(kv, confirms);
      const named = { ...email, confirmedAt: clock.now() };
      return await use(used, { sets: emailSets(owner, named) });
    },
    async open(token, wallet) {
      const found = await find(token);
      if (!found || found.link.confirms !== null || !found.wallets.includes(wallet)) return null;
      const { cookie, sets } = await deviceCookies.deviceFor(wallet);
      const { link, used } = found;
      // An address that is removed at the same time opens nothing.
      const named = await listEmails(kv, wallet);
      if (!named.some(({ hash }) => hash === link.email.hash)) return null;
      return await use(used, { sets }) ? { cookie, from: link.from } : null;
    },
    list: (personId) => listEmails(kv, personId),
    async remove(personId, hash) {
      await committer.commit(emailRemoval(personId, hash));
    },
  };
}

const mailFailed = "The e-mail could not be sent. Try again later.";

function tooManyEmails(): ApiError {
  return badRequest("email", `A wallet has at most ${emailsMax} e-mail addresses.`);
}

/** The message has to be an English text of the pages: they translate it. */
function tooOften(status: 400 | 429 = 400): ApiError {
  return new ApiError(status, {
    message: "Too many e-mails were asked for. Try again later.",
    code: "mail_too_often",
    ...(status === 429 ? { headers: { "retry-after": "600" } } : {}),
  });
}
