/** @jsxImportSource @hono/hono/jsx */
import { ApiError } from "../base/errors.ts";
import type { Handler } from "../base/handler.ts";
import { publicPath } from "../config/config.ts";
import { isAddressHost } from "../base/host.ts";
import { isId } from "../base/ids.ts";
import { bodyBytesMax } from "../base/limits.ts";
import { parseAmount, zero } from "../base/money.ts";
import { chargedToday } from "../ledger/authorization.ts";
import { parseWith, readJsonBody } from "../base/request.ts";
import { checkUserId } from "../base/user_id.ts";
import { listActivities } from "../ledger/activities.ts";
import { type Reader, readerOf } from "../pages/texts/texts.tsx";
import type { ShownEntry } from "../paywall/activity_days.tsx";
import type { LinkSubject } from "../paywall/link_subject.ts";
import { readForm, requireSameOrigin } from "../pages/form.ts";
import { asPage, pageResponse, seeOther } from "../pages/response.tsx";
import { checkId } from "../projects/admin_guard.ts";
import {
  authorizeRoutes,
  hasWayBack,
  parseDailyCap,
  type WalletDeps,
} from "./authorize_routes.tsx";
import { readBalances, readWalletBalance } from "./balances.ts";
import { addEmail, emailRoutes } from "./email_routes.tsx";
import { personTrigger } from "./authorizations.ts";
import { walletScriptHash } from "./passkey_button.tsx";
import { ConfirmForgetPage, NoWalletPage, WalletPage, type WalletView } from "./wallet_page.tsx";
import { authenticationSchema, isCredentialId, registrationSchema } from "./passkeys.ts";
import { listCurrencies, listPasskeys } from "./store.ts";

const activitiesShown = 50;

/** The wallet pages, and the endpoints of their script. */
export function walletRoutes(services: WalletDeps) {
  const { show, decide } = authorizeRoutes(services);
  return {
    showAuthorize: show,
    decideAuthorize: decide,
    showWallet: asPage(showWallet(services), services.deps.config),
    changeWallet: asPage(changeWallet(services), services.deps.config),
    ...emailRoutes(services),
    ...passkeyRoutes(services),
  };
}

function showWallet(services: WalletDeps): Handler {
  return async ({ request, requestId }) => {
    const known = await services.deviceCookies.known(request);
    const script = walletScriptHash;
    if (known === null) {
      const page = <NoWalletPage {...pageBase(services)} reader={readerOf(request)} />;
      return pageResponse(200, String(page), { requestId, script });
    }
    const { personId, grant } = known;
    const page = <WalletPage {...await viewWallet(services, { personId, request })} />;
    // A device in use stays known, however long ago it got its grant.
    const cookie = await grant.cookie();
    return pageResponse(200, String(page), { requestId, script, cookie });
  };
}

async function viewWallet(
  services: WalletDeps,
  { personId, request }: { personId: string; request: Request },
): Promise<WalletView> {
  const reader = readerOf(request);
  const { deps: { kv, clock } } = services;
  const { connections, currencies } = await viewConnections(services, { personId, reader });
  const balances: WalletView["balances"] = [];
  const shown: ShownEntry[] = [];
  for (const currency of currencies) {
    const ref = { projectId: "", user: "", wallet: { personId, currency, connectionId: "" } };
    const { balance } = await readWalletBalance(services.deps, { personId, currency });
    balances.push({
      shown: reader.money(balance, currency),
      text: reader.moneyText(balance, currency),
    });
    const page = { limit: activitiesShown, cursor: undefined, whole: true };
    const { entries } = await listActivities(kv, ref, page);
    shown.push(...entries.map((entry) => ({ entry, currency })));
  }
  shown.sort((one, other) => other.entry.createdAt - one.entry.createdAt);
  const passkeys = (await listPasskeys(kv, personId)).map(({ id, createdAt, answered }) => {
    const usedAt = answered.length > 0 ? timeForPeople(Math.max(...answered)) : null;
    return { id, addedAt: timeForPeople(createdAt), usedAt };
  });
  return {
    ...pageBase(services),
    balances,
    connections,
    entries: shown.slice(0, activitiesShown),
    now: clock.now(),
    reader,
    passkeys,
    emails: await services.emails.list(personId),
    joins: await viewJoins(services, { personId, reader }),
  };
}

/** What the operator proposes to join with this wallet, and what its owner said. */
async function viewJoins(
  { deps, joins }: WalletDeps,
  { personId, reader }: { personId: string; reader: Reader },
): Promise<WalletView["joins"]> {
  const asked = await joins.askedOf(personId);
  return await Promise.all(asked.map(async ({ from, into, consents }) => {
    const isFrom = from === personId;
    const balances = await readBalances(deps, isFrom ? into : from);
    const amounts = balances.map(({ balance, currency }) => reader.moneyText(balance, currency));
    const hasConfirmed = consents[isFrom ? "from" : "into"] !== null;
    return { from, amounts: amounts.join(", ") || reader.text("empty"), hasConfirmed };
  }));
}

/** The apps that may charge a wallet, or might once, and all of its currencies. */
async function viewConnections(
  { deps: { kv, clock }, authorizations, projectCache, links }: WalletDeps,
  { personId, reader }: { personId: string; reader: Reader },
): Promise<{ connections: WalletView["connections"]; currencies: ReadonlySet<string> }> {
  const all = await authorizations.ofPerson(personId);
  const connections: WalletView["connections"] = [];
  // Includes currencies that no app may spend any more.
  const currencies = new Set(await listCurrencies(kv, personId));
  for (const connection of all) {
    const { projectId, user, authorization } = connection;
    const { project } = await projectCache.current(projectId);
    const { currency, name } = project;
    currencies.add(currency);
    const forPeople = (text: string) => reader.moneyText(parseAmount(text) ?? zero, currency);
    connections.push({
      name,
      user,
      projectId,
      isActive: authorization.status === "active",
      cap: forPeople(authorization.dailyCap),
      spent: forPeople(chargedToday(authorization, clock.now())),
      topUpUrl: await links.topUpUrl(project, user),
    });
  }
  return { connections, currencies };
}

function timeForPeople(ms: number): string {
  return new Date(ms).toISOString().slice(0, 16).replace("T", " ");
}

function changeWallet(services: WalletDeps): Handler {
  const { deps, deviceCookies, authorizations, passkeys } = services;
  return async ({ request, path, requestId, inTime }) => {
    const form = await inTime(readForm(request, deps.config));
    const personId = await deviceCookies.personOf(request);
    if (personId === null) throw new ApiError(403, { message: "This device has no wallet." });
    switch (form.get("action")) {
      case "leave":
        if (!form.has("confirmed") && !await hasWayBack(services, personId)) {
          const view = await viewWallet(services, { personId, request });
          const page = <ConfirmForgetPage {...view} />;
          return pageResponse(200, String(page), { requestId });
        }
        return seeOther(
          publicPath(deps.config, path),
          requestId,
          await deviceCookies.forget(request),
        );
      case "sign-out-others": {
        const known = await deviceCookies.signOutOthers(request);
        return seeOther(publicPath(deps.config, path), requestId, known ? [known.cookie] : []);
      }
      case "add-email":
        return await addEmail(services, { personId, form, request, requestId });
      case "remove-email":
        await services.emails.remove(personId, form.get("email") ?? "");
        break;
      case "join":
        await services.joins.confirm(readWalletId(form), personId);
        break;
      case "decline-join":
        await services.joins.decline(readWalletId(form), personId);
        break;
      case "remove-passkey":
        await passkeys.remove(personId, readCredentialId(form));
        break;
      case "revoke":
        await authorizations.revoke(readSubject(form), {
          personId,
          trigger: personTrigger(personId),
        });
        break;
      case "cap": {
        const dailyCap = parseDailyCap(form.get("cap"));
        await authorizations.setCap(readSubject(form), { personId, dailyCap });
        break;
      }
      default:
        throw new ApiError(400, { message: "Choose one of the buttons." });
    }
    return seeOther(publicPath(deps.config, path), requestId);
  };
}

function readSubject(form: URLSearchParams): LinkSubject {
  return {
    projectId: checkId(form.get("projectId") ?? "", "project"),
    user: checkUserId(form.get("user"), "user"),
  };
}

function readCredentialId(form: URLSearchParams): string {
  const id = form.get("passkey");
  if (isCredentialId(id)) return id;
  throw new ApiError(400, { message: "Choose one of your passkeys." });
}

function readWalletId(form: URLSearchParams): string {
  const id = form.get("from") ?? "";
  if (isId("per", id)) return id;
  throw new ApiError(400, { message: "Choose one of the wallets." });
}

/** What the wallet's pages know of the service. */
function pageBase({ deps: { config }, emails }: WalletDeps) {
  return {
    base: publicPath(config, ""),
    offersPasskeys: !isAddressHost(config.baseUrl),
    offersEmail: emails.isOffered,
  };
}

/** What the page's script calls: JSON in and out, from our own pages only. */
function passkeyRoutes({ deps, deviceCookies, passkeys }: WalletDeps) {
  const own = async (request: Request): Promise<string> => {
    const personId = await deviceCookies.personOf(request);
    if (personId === null) throw new ApiError(403, { message: "This device has no wallet." });
    return personId;
  };
  const call =
    (work: (request: Request, body: unknown) => Promise<Response>): Handler =>
    async ({ request, requestId, inTime }) => {
      requireSameOrigin(request, deps.config);
      const { value } = await inTime(readJsonBody(request, bodyBytesMax));
      const response = await work(request, value);
      response.headers.set("x-request-id", requestId);
      response.headers.set("cache-control", "no-store");
      return response;
    };
  return {
    passkeyOptions: call(async (request) =>
      Response.json(await passkeys.registration(await own(request)))
    ),
    addPasskey: call(async (request, body) => {
      await passkeys.register(await own(request), parseWith(registrationSchema, body));
      return Response.json({ added: true });
    }),
    signInOptions: call(async () => Response.json(await passkeys.challenge())),
    signIn: call(async (_, body) => {
      const answer = parseWith(authenticationSchema, body);
      const cookie = await (await passkeys.signIn(answer, deviceCookies.grantFor)).cookie();
      return Response.json({ signedIn: true }, { headers: { "set-cookie": cookie } });
    }),
  };
}
