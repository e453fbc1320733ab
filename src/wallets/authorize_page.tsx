/** @jsxImportSource @hono/hono/jsx */
import type { Child } from "@hono/hono/jsx";
import type { Brand } from "../pages/brand.ts";
import { FormError } from "../pages/form_parts.tsx";
import { Page } from "../pages/page.tsx";
import { AmountTiles, AppHeader, PayerFooter, PayerState } from "../pages/payer_parts.tsx";
import type { Reader } from "../pages/texts/texts.tsx";
import { AddEmailForm, AskLinkForm } from "./email_pages.tsx";
import { AddPasskeyButton, UsePasskeyButton, walletScript as script } from "./passkey_button.tsx";

/** What both pages of an authorization know. */
interface AuthorizationView {
  /** The path of this server's pages. */
  base: string;
  reader: Reader;
  brand: Brand;
  /** Browsers create passkeys for names of hosts, and not for addresses. */
  offersPasskeys: boolean;
  /** Whether this server sends e-mail. */
  offersEmail: boolean;
  /** The path of the page itself. */
  from: string;
}

/** What the authorization page shows. */
export interface AuthorizeView extends AuthorizationView {
  user: string;
  currency: string;
  /** The balance of this device's wallet; null where it has none yet. */
  balance: string | null;
  /** Another wallet that paid for the user, and whether an e-mail may open it; else null. */
  other: { byEmail: boolean } | null;
  /** The caps to choose from, as decimal strings and for people. */
  caps: { value: string; label: Child }[];
  /** The current cap; null when nothing is authorized, or by another wallet. */
  cap: string | null;
  /** What was wrong with the submitted form, and what was entered. */
  problem: { text: string; entered: string } | null;
}

/** The page behind the link of a message that asks for authorization. */
export function AuthorizePage(view: AuthorizeView) {
  const { base, reader, brand, user, balance, cap, other } = view;
  const title = reader.text("asks", { app: brand.name });
  return (
    <Page title={title} script={script} base={base} lang={reader.lang} brand={brand}>
      <div class="card">
        <AppHeader brand={brand} title={reader.say("asks", { app: brand.name })} />
        <p>{reader.say("asksNote", { app: brand.name, user })}</p>
        {cap === null ? null : <p>{reader.text("currentLimit", { amount: cap })}</p>}
        {other === null ? null : <OtherWallet {...view} other={other} />}
        <DecisionForm {...view} />
        {balance === null
          ? <NewWallet {...view} />
          : <p class="with">{reader.text("yourWallet", { amount: balance })}</p>}
      </div>
      <PayerFooter brand={brand} reader={reader} />
    </Page>
  );
}

/** Where another wallet pays, what was shown above says how to open it. */
function NewWallet({ reader: { texts }, other, offersPasskeys }: AuthorizeView) {
  if (other !== null) return null;
  return (
    <>
      <p class="with">{texts.newWallet}</p>
      {offersPasskeys ? <UsePasskeyButton label={texts.usePasskey} /> : null}
    </>
  );
}

/** Says that another wallet pays, and how to open it here. */
function OtherWallet(
  { base, reader, user, from, balance, offersPasskeys, other }: AuthorizeView & {
    other: { byEmail: boolean };
  },
) {
  const { texts } = reader;
  return (
    <>
      <section class="notice">
        <p>{reader.say("otherWallet", { user })}</p>
        <p>{texts.otherWalletOpen}</p>
        {offersPasskeys ? <UsePasskeyButton label={texts.openByPasskey} /> : null}
        {other.byEmail ? <AskLinkForm {...{ base, reader, from }} /> : null}
      </section>
      <p>{balance === null ? texts.orNewWallet : texts.orThisWallet}</p>
    </>
  );
}

function DecisionForm({ reader, currency, caps, problem, ...view }: AuthorizeView) {
  const opensNew = view.other !== null && view.balance === null;
  const { texts } = reader;
  const other = reader.text("otherLimit", { currency: currency.toUpperCase() });
  return (
    <>
      <FormError text={problem?.text ?? null} />
      <form method="post">
        <AmountTiles
          name="cap"
          legend={texts.dailyLimit}
          amounts={caps}
          other={{ label: other, value: problem?.entered ?? "" }}
          chosen={problem === null ? 0 : -1}
        />
        {opensNew ? <input type="hidden" name="wallet" value="new" /> : null}
        <button
          type="submit"
          name="decision"
          value="approve"
          class={view.other === null ? "primary wide" : "wide"}
        >
          {opensNew ? texts.allowNew : texts.allow}
        </button>
        <button type="submit" name="decision" value="decline" class="plain wide">
          {texts.decline}
        </button>
      </form>
    </>
  );
}

/** What a used link shows: to the person who authorized, to another device, or to who declined. */
export type AuthorizeDecision = "approved" | "elsewhere" | "declined";

/** The page that shows the outcome of an authorization request. */
export function AuthorizeResultPage(
  view: AuthorizationView & {
    decided: AuthorizeDecision;
    cap: string;
    topUpUrl: string;
    /** Whether the wallet can be opened from other devices. */
    hasWayBack: boolean;
  },
) {
  const { base, reader, brand, decided } = view;
  const { texts } = reader;
  const app = { app: brand.name };
  const title = { approved: "allowed", elsewhere: "linkUsed", declined: "declined" } as const;
  const name = title[decided];
  return (
    <Page title={reader.text(name, app)} {...{ script, base, brand }} lang={reader.lang}>
      <div class="card">
        {decided === "approved" ? <Approved {...view} /> : (
          <>
            <h1>{reader.say(name, app)}</h1>
            <p>{reader.say(decided === "declined" ? "declinedNote" : "linkUsedNote", app)}</p>
            {decided === "elsewhere"
              ? (
                <p>
                  <a href={`${base}/wallet`}>{texts.wallet}</a>
                </p>
              )
              : null}
          </>
        )}
      </div>
      <PayerFooter brand={brand} reader={reader} />
    </Page>
  );
}

function Approved(
  { base, reader, brand, cap, topUpUrl, hasWayBack, offersPasskeys, offersEmail, from }: Parameters<
    typeof AuthorizeResultPage
  >[0],
) {
  const { texts } = reader;
  return (
    <>
      <PayerState icon="check" title={reader.say("allowed", { app: brand.name })} isMain>
        <p>
          {reader.text("allowedNote", { amount: cap })} {texts.paidNote}
        </p>
      </PayerState>
      {hasWayBack || !(offersPasskeys || offersEmail)
        ? null
        : (
          <section class="notice info" id="way-back">
            <p>{texts.wayBackFirst}</p>
            {offersPasskeys ? <AddPasskeyButton label={texts.addPasskey} /> : null}
            {offersEmail ? <AddEmailForm {...{ base, reader, from }} /> : null}
            <p id="said" role="alert"></p>
          </section>
        )}
      <p class="actions">
        <a class="button primary wide" href={topUpUrl}>{texts.topUp}</a>
        <a class="button plain wide" href={`${base}/wallet`}>{texts.wallet}</a>
      </p>
    </>
  );
}
