/** @jsxImportSource @hono/hono/jsx */

import { ApiError, badRequest } from "../base/errors.ts";
import { isAddressHost } from "../base/host.ts";
import type { Handler } from "../base/handler.ts";
import { publicPath } from "../config.ts";
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
import { readBalance } from "../ledger/balance.ts";
import type { AuthorizationLink } from "../paywall/link_subject.ts";
import type { Links } from "../paywall/links.ts";
import { brandOf } from "../pages/brand.ts";
import { type Reader, readerOf } from "../pages/texts/texts.tsx";
import { readForm } from "../pages/form.ts";
import { asPage, pageResponse, seeOther } from "../pages/response.tsx";
import { noBrand } from "../projects/brand_schema.ts";
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
  return async ({ request, param, query, requestId }) => {
    const opened = await openLink(services, param("token"));
    const { approval, project, last } = opened;
    const known = await services.deviceCookies.known(request);
    const personId = known?.personId ?? null;
    const cookie = await known?.grant.cookie();
    if (last && isLinkSuperseded(approval, last)) {
      if (last.requestId !== approval.requestId) throw linkEnded();
      const decided = decidedFor(last, { personId, hasDeclined: query("declined") !== undefined });
      const common = commonView(services, project, request);
      const page = (
        <AuthorizeResultPage
          {...common}
          decided={decided}
          cap={common.reader.moneyText(parseAmount(last.dailyCap) ?? zero, project.currency)}
          topUpUrl={await services.links.topUpUrl(project, approval.user)}
          hasPasskey={personId !== null &&
            (await listPasskeys(services.deps.kv, personId)).length > 0}
        />
      );
      const { brand } = common;
      const script = walletScriptHash;
      return pageResponse(200, String(page), { requestId, cookie, brand, script });
    }
    const newcomers = cookie ?? await newcomersCookie(services, request);
    const page = { request, requestId, personId, cookie: newcomers, problem: null };
    return await authorizePage(services, { ...opened, ...page });
  };
}

/** What both pages know. */
function commonView({ deps: { config } }: WalletDeps, project: Project, request: Request) {
  return {
    base: publicPath(config, ""),
    reader: readerOf(request),
    brand: brandOf(project.name, project.brand ?? noBrand),
    offersPasskeys: !isAddressHost(config.baseUrl),
  };
}

async function authorizePage(
  services: WalletDeps,
  { approval, project, last, request, requestId, personId, cookie, problem }: OpenedLink & {
    request: Request;
    requestId: string;
    personId: string | null;
    cookie: string | undefined;
    problem: AuthorizeView["problem"];
  },
): Promise<Response> {
  const { currency } = project;
  const common = commonView(services, project, request);
  const { reader, brand } = common;
  const money = (text: string) => reader.moneyText(parseAmount(text) ?? zero, currency);
  const own = last?.status === "active" && last.personId === personId ? last : null;
  const balance = personId === null
    ? null
    : reader.moneyText(await balanceOf(services, { personId, currency }), currency);
  const html = (
    <AuthorizePage
      {...common}
      {...{ currency, balance, problem }}
      user={approval.user}
      caps={project.topUp.amounts.map((value) => ({ value, label: money(value) }))}
      cap={own && money(own.dailyCap)}
    />
  );
  const status = problem === null ? 200 : 400;
  const script = walletScriptHash;
  return pageResponse(status, String(html), { requestId, script, cookie, brand });
}

/**
 * Set with the page, not with the decision, whose response may be lost: then no one could ever
 * open the wallet. A link preview learns nothing from it, and nothing is stored.
 */
async function newcomersCookie(
  { deviceCookies }: WalletDeps,
  request: Request,
): Promise<string | undefined> {
  const has = await deviceCookies.newDevice(request);
  return has ? undefined : await deviceCookies.newDeviceCookie();
}

async function balanceOf(
  { deps }: WalletDeps,
  { personId, currency }: { personId: string; currency: string },
): Promise<Amount> {
  const wallet = { personId, currency, connectionId: "" };
  const ref = { projectId: "", user: "", wallet };
  return (await readBalance(deps.kv, ref, deps.clock.now())).balance;
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
        const { personId, grant } = known ?? await deviceCookies.newDevice(request) ??
          needCookies();
        const entered = form.get("other") || form.get("cap") || "";
        const dailyCap = readDailyCap(entered);
        if (dailyCap === null) {
          const problem = { text: capProblem(readerOf(request), project.currency), entered };
          const page = { request, requestId, personId, cookie: undefined, problem };
          return await authorizePage(services, { approval, project, last, ...page });
        }
        const done = await authorizations.approve(approval, { personId, dailyCap });
        // Sent twice, or from two tabs: the first decision counts, and the page shows it.
        const cookies = done ? [await grant.cookie()] : [];
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
}
