/** @jsxImportSource @hono/hono/jsx */
import { networkOf } from "../base/client_address.ts";
import { emailSchema } from "../base/email.ts";
import { ApiError, notFound } from "../base/errors.ts";
import type { Handler } from "../base/handler.ts";
import { type Config, publicPath } from "../config/config.ts";
import { readForm } from "../pages/form.ts";
import { MessagePage } from "../pages/page.tsx";
import { asPage, pageResponse, seeOther } from "../pages/response.tsx";
import { type Reader, readerOf } from "../pages/texts/texts.tsx";
import type { WalletDeps } from "./authorize_routes.tsx";
import { readBalances } from "./balances.ts";
import { MailLinkPage } from "./email_pages.tsx";
import type { OpenedLink } from "./emails.ts";

/** The pages of a person's way back by e-mail. */
export function emailRoutes(
  services: WalletDeps,
): { askLink: Handler; showMailLink: Handler; useMailLink: Handler } {
  const { deps: { config } } = services;
  return {
    askLink: asPage(askLink(services), config),
    showMailLink: asPage(showMailLink(services), config),
    useMailLink: asPage(useMailLink(services), config),
  };
}

function askLink({ deps, emails }: WalletDeps): Handler {
  return async ({ request, requestId, inTime, address }) => {
    const form = await inTime(readForm(request, deps.config));
    if (!emails.isOffered) throw notFound("page");
    const reader = readerOf(request);
    const from = readFrom(form);
    emails.sendLink({ email: readEmail(form), reader, from }, networkOf(address()));
    return lookPage(deps, { requestId, reader, from, note: reader.texts.linkSent });
  };
}

/** Sends the link that confirms an address, and says so. */
export async function addEmail(
  { deps, emails }: Pick<WalletDeps, "deps" | "emails">,
  { personId, form, request, requestId }: {
    personId: string;
    form: URLSearchParams;
    request: Request;
    requestId: string;
  },
): Promise<Response> {
  if (!emails.isOffered) throw notFound("page");
  const [email, reader, from] = [readEmail(form), readerOf(request), readFrom(form)];
  await emails.ask(personId, { email, reader, from });
  const note = reader.text("confirmSent", { email });
  return lookPage(deps, { requestId, reader, from, note });
}

function lookPage(
  { config }: { config: Pick<Config, "baseUrl"> },
  { requestId, reader, from, note }: {
    requestId: string;
    reader: Reader;
    from: string | null;
    note: string;
  },
): Response {
  const back = { href: publicPath(config, from ?? "/wallet"), text: reader.texts.back };
  const base = publicPath(config, "");
  const { lang, texts } = reader;
  const page = <MessagePage title={texts.lookForMail} text={note} {...{ base, back, lang }} />;
  return pageResponse(200, String(page), { requestId });
}

function showMailLink(services: WalletDeps): Handler {
  const { deps: { config }, emails } = services;
  return async ({ request, param, path, requestId }) => {
    const opened = await emails.read(param("token"));
    if (!opened) throw mailLinkEnded();
    const reader = readerOf(request);
    const page = (
      <MailLinkPage
        base={publicPath(config, "")}
        action={publicPath(config, path)}
        shown={opened.link.email.shown}
        wallets={opened.link.confirms === null
          ? await viewWallets(services, { opened, reader })
          : null}
        reader={reader}
      />
    );
    return pageResponse(200, String(page), { requestId });
  };
}

async function viewWallets(
  { deps }: WalletDeps,
  { opened, reader }: { opened: OpenedLink; reader: Reader },
) {
  return await Promise.all(opened.wallets.map(async (personId) => {
    const balances = await readBalances(deps, personId);
    const amounts = balances.map(({ balance, currency }) => reader.moneyText(balance, currency));
    return { personId, amounts: amounts.join(", ") || reader.texts.empty };
  }));
}

function useMailLink({ deps: { config }, emails }: WalletDeps): Handler {
  return async ({ request, param, requestId, inTime }) => {
    const form = await inTime(readForm(request, config));
    const token = param("token");
    const wallet = form.get("wallet");
    if (wallet === null) {
      if (!await emails.confirm(token)) throw mailLinkEnded();
      const { lang, texts } = readerOf(request);
      const back = { href: publicPath(config, "/wallet"), text: texts.wallet };
      const base = publicPath(config, "");
      const text = texts.emailHas;
      const page = <MessagePage title={texts.emailConfirmed} {...{ text, base, back, lang }} />;
      return pageResponse(200, String(page), { requestId });
    }
    const opened = await emails.open(token, wallet);
    if (!opened) throw mailLinkEnded();
    return seeOther(publicPath(config, opened.from ?? "/wallet"), requestId, [opened.cookie]);
  };
}

function mailLinkEnded(): ApiError {
  return new ApiError(404, {
    message: "Ask for a new e-mail: each of its links works once, for half an hour.",
  });
}

/** Throws 400 for what is no e-mail address. */
function readEmail(form: URLSearchParams): string {
  const email = emailSchema.safeParse((form.get("email") ?? "").trim());
  if (email.success) return email.data;
  throw new ApiError(400, { message: "This is not an e-mail address." });
}

/** Accepts only the path of an authorization page: a link must not lead elsewhere. */
function readFrom(form: URLSearchParams): string | null {
  const from = form.get("from") ?? "";
  return /^\/(a|authorize)\/[\w.-]{1,1000}$/.test(from) ? from : null;
}
