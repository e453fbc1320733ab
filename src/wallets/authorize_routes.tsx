/** @jsxImportSource @hono/hono/jsx */

import { ApiError, badRequest } from "../base/errors.ts";
import { isAddressHost } from "../base/host.ts";
import type { Handler } from "../base/handler.ts";
import { publicPath } from "../config/config.ts";
import {
  type Amount,
  formatAmount,
  parseAmount,
  toAmount,
  typedDecimal,
  unit,
  zero,
} from "../base/money.ts";
import { type Authorization, readAuthorization } from "../ledger/authorization.ts";
import type { AuthorizationLink } from "../paywall/link_subject.ts";
import type { Links } from "../paywall/links.ts";
import { brandOf } from "../pages/brand.ts";
import { type Reader, readerOf } from "../pages/texts/texts.tsx";
import { readForm } from "../pages/form.ts";
import { asPage, pageResponse, seeOther } from "../pages/response.tsx";
import type { Project } from "../projects/schema.ts";
import { type Authorizations, isLinkSuperseded } from "./authorizations.ts";
import {
  type AuthorizeDecision,
  AuthorizePage,
  AuthorizeResultPage,
  type AuthorizeView,
} from "./authorize_page.tsx";
import { walletScriptHash } from "./passkey_button.tsx";
import type { Deps } from "../deps.ts";
import type { DeviceCookies } from "./device_cookies.ts";
import type { ProjectCache } from "../projects/project_cache.ts";
import type { Passkeys } from "./passkeys.ts";
import { readWalletBalance } from "./balances.ts";
import type { WalletEmails } from "./emails.ts";
import { ownerOf } from "./join_rows.ts";
import type { WalletJoins } from "./joins.ts";
import { listPasskeys } from "./store.ts";

/**
 * The page where a person authorizes a project to charge their wallet. Reading it changes nothing.
 */
export function authorizeRoutes(services: WalletDeps): { show: Handler; decide: Handler } {
  const { config } = services.deps;
  return { show: asPage(show(services), config), decide: asPage(decide(services), config) };
}

interface OpenedLink {
  approval: AuthorizationLink;
  project: Project;
  last: Authorization | null;
}

/** Throws 404 for a link that is forged or has expired. */
async function openLink(
  { deps, projectCache, links }: WalletDeps,
  token: string,
): Promise<OpenedLink> {
  const approval = await links.readAuthorizationLink(token);
  if (!approval) throw linkEnded();
  const { project } = await projectCache.current(approval.projectId);
  const found = await readAuthorization(deps.kv, approval.projectId, approval.user);
  return { approval, project, last: found?.authorization ?? null };
}

function linkEnded(): ApiError {
  return new ApiError(404, {
    message: "Go back to your chat and send your message again: you will get a new link.",
  });
}

function show(services: WalletDeps): Handler {
  return async ({ request, param, path, query, requestId }) => {
    const opened = await openLink(services, param("token"));
    const { approval, project, last } = opened;
    const known = await services.deviceCookies.known(request);
    const personId = known?.personId ?? null;
    const cookie = await known?.grant.cookie();
    if (last && isLinkSuperseded(approval, last)) {
      if (last.requestId !== approval.requestId) throw linkEnded();
      const payer = await ownerOf(services.deps.kv, last.personId);
      const hasDeclined = query("declined") !== undefined;
      const decided = decidedFor({ ...last, personId: payer }, { personId, hasDeclined });
      const common = commonView(services, project, request);
      const page = (
        <AuthorizeResultPage
          {...common}
          decided={decided}
          cap={common.reader.moneyText(parseAmount(last.dailyCap) ?? zero, project.currency)}
          topUpUrl={await services.links.topUpUrl(project, approval.user)}
          hasWayBack={personId !== null && await hasWayBack(services, personId)}
          from={path}
        />
      );
      const { brand } = common;
      const script = walletScriptHash;
      return pageResponse(200, String(page), { requestId, cookie, brand, script });
    }
    const newcomers = cookie ?? await newcomersCookie(services, request);
    const page = { request, requestId, path, personId, cookie: newcomers, problem: null };
    return await authorizePage(services, { ...opened, ...page });
  };
}

/** What both pages know. */
function commonView(
  { deps: { config }, emails }: WalletDeps,
  project: Project,
  request: Request,
) {
  return {
    offersEmail: emails.isOffered,
    base: publicPath(config, ""),
    reader: readerOf(request),
    brand: brandOf(project.name, project.brand),
    offersPasskeys: !isAddressHost(config.baseUrl),
  };
}

async function authorizePage(
  services: WalletDeps,
  { approval, project, last, request, requestId, path, personId, cookie, problem }: OpenedLink & {
    request: Request;
    requestId: string;
    path: string;
    personId: string | null;
    cookie: string | undefined;
    problem: AuthorizeView["problem"];
  },
): Promise<Response> {
  const { currency } = project;
  const common = commonView(services, project, request);
  const { reader, brand } = common;
  const money = (text: string) => reader.moneyText(parseAmount(text) ?? zero, currency);
  const payer = await payerOf(services, last);
  const own = last?.status === "active" && payer === personId ? last : null;
  const balance = personId === null
    ? null
    : reader.moneyText(await balanceOf(services, { personId, currency }), currency);
  const html = (
    <AuthorizePage
      {...common}
      {...{ currency, balance, problem }}
      other={payer === null || payer === personId
        ? null
        : { byEmail: common.offersEmail && (await services.emails.list(payer)).length > 0 }}
      from={path}
      user={approval.user}
      caps={project.topUp.amounts.map((value) => ({ value, label: money(value) }))}
      cap={own && money(own.dailyCap)}
    />
  );
  const status = problem === null ? 200 : 400;
  const script = walletScriptHash;
  return pageResponse(status, String(html), { requestId, script, cookie, brand });
}

/** Returns whose wallet pays for the user, or paid last; null where none ever did. */
async function payerOf(
  { deps: { kv } }: WalletDeps,
  last: Authorization | null,
): Promise<string | null> {
  return last === null || last.personId === "" ? null : await ownerOf(kv, last.personId);
}

/** Whether the wallet can be opened from another device. */
export async function hasWayBack(
  { deps: { kv }, emails }: Pick<WalletDeps, "deps" | "emails">,
  personId: string,
): Promise<boolean> {
  const [passkeys, addresses] = await Promise.all([
    listPasskeys(kv, personId),
    emails.list(personId),
  ]);
  return passkeys.length > 0 || addresses.length > 0;
}

/**
 * Set with the page, not with the decision, whose response may be lost: then no one could ever
 * open the wallet. A link preview learns nothing from it, and nothing is stored.
 */
async function newcomersCookie(
  { deviceCookies }: WalletDeps,
  request: Request,
): Promise<string | undefined> {
  return await deviceCookies.decider(request) ? undefined : deviceCookies.newDeviceCookie();
}

async function balanceOf(
  { deps }: WalletDeps,
  wallet: { personId: string; currency: string },
): Promise<Amount> {
  return (await readWalletBalance(deps, wallet)).balance;
}

/** Someone who declines what another person authorized is shown their own wallet. */
function decidedFor(
  { status, personId: payer }: Authorization,
  { personId, hasDeclined }: { personId: string | null; hasDeclined: boolean },
): AuthorizeDecision {
  if (status !== "active") return "declined";
  if (payer === personId) return "approved";
  return hasDeclined ? "declined" : "elsewhere";
}

function decide(services: WalletDeps): Handler {
  return async ({ request, param, path, requestId, inTime }) => {
    const { deps, deviceCookies, authorizations } = services;
    const form = await inTime(readForm(request, deps.config));
    const { approval, project, last } = await openLink(services, param("token"));
    if (project.status !== "active") {
      throw new ApiError(403, { message: "This app is closed." });
    }
    const known = await deviceCookies.known(request);
    switch (form.get("decision")) {
      case "decline":
        await authorizations.decline(approval, known?.personId ?? null);
        return seeOther(publicPath(deps.config, `${path}?declined=yes`), requestId);
      case "approve": {
        const decider = await deviceCookies.decider(request) ?? needCookies();
        const reader = readerOf(request);
        const ask = (problem: AuthorizeView["problem"]) => {
          const personId = known?.personId ?? null;
          const page = { request, requestId, path, personId, cookie: undefined, problem };
          return authorizePage(services, { approval, project, last, ...page });
        };
        const isDecided = last !== null && isLinkSuperseded(approval, last);
        const isChosen = form.get("wallet") === "new";
        // Nobody gets an empty wallet instead of their own without having been told.
        if (decider.isNew && !isChosen && !isDecided && await payerOf(services, last) !== null) {
          return await ask({ text: reader.texts.otherWalletChoose, entered: "" });
        }
        const entered = form.get("other") || form.get("cap") || "";
        const dailyCap = readDailyCap(entered);
        if (dailyCap === null) {
          return await ask({ text: capProblem(reader, project.currency), entered });
        }
        const done = await authorizations.approve(approval, { who: decider.read, dailyCap });
        // Sent twice, or from two tabs: the first decision counts, and the page shows it.
        const cookies = done ? [await decider.cookie()] : [];
        return seeOther(publicPath(deps.config, path), requestId, cookies);
      }
      default:
        throw badRequest("decision", "Choose one of the two buttons.");
    }
  };
}

function needCookies(): never {
  throw new ApiError(400, {
    message: "Your browser sent no cookie, and without one you could not open your wallet again. " +
      "Allow cookies for this site, then decide again.",
  });
}

const capMax = toAmount(1_000_000n * unit);

/** Reads a cap as a person typed it; null for one that is not accepted. */
function readDailyCap(text: string | null): Amount | null {
  const cap = parseAmount(typedDecimal(text ?? ""));
  return cap !== null && cap > 0n && cap <= capMax ? cap : null;
}

function capProblem(reader: Reader, currency: string): string {
  const min = reader.moneyText(toAmount(unit / 100n), currency);
  return reader.text("chooseWithin", { min, max: reader.moneyText(capMax, currency) });
}

/** Parses a cap as a person typed it. Throws 400. */
export function parseDailyCap(text: string | null): Amount {
  const cap = readDailyCap(text);
  if (cap !== null) return cap;
  throw badRequest("cap", `Choose an amount above 0 and at most ${formatAmount(capMax)}.`);
}

/** What the wallet pages depend on. */
export interface WalletDeps {
  deps: Deps;
  projectCache: ProjectCache;
  links: Links;
  deviceCookies: DeviceCookies;
  authorizations: Authorizations;
  passkeys: Passkeys;
  emails: WalletEmails;
  joins: WalletJoins;
}
