/** @jsxImportSource @hono/hono/jsx */
import type { Child } from "@hono/hono/jsx";
import type { Brand } from "../pages/brand.ts";
import { FormError } from "../pages/form_parts.tsx";
import { Page } from "../pages/page.tsx";
import { AmountTiles, AppHeader, PayerFooter, PayerState } from "../pages/payer_parts.tsx";
import type { Reader } from "../pages/texts/texts.tsx";
import { AddPasskeyButton, UsePasskeyButton, walletScript as script } from "./passkey_button.tsx";

/** What both pages of an authorization know. */
interface AuthorizationView {
  /** The path of this server's pages. */
  base: string;
  reader: Reader;
  brand: Brand;
  /** Browsers create passkeys for names of hosts, and not for addresses. */
  offersPasskeys: boolean;
}

/** What the authorization page shows. */
export interface AuthorizeView extends AuthorizationView {
  user: string;
  currency: string;
  /** The balance of this device's wallet; null where it has none yet. */
  balance: string | null;
  /** The caps to choose from, as decimal strings and for people. */
  caps: { value: string; label: Child }[];
  /** The current cap; null when nothing is authorized, or by another wallet. */
  cap: string | null;
  /** What was wrong with the submitted form, and what was entered. */
  problem: { text: string; entered: string } | null;
}

/** The page behind the link of a message that asks for authorization. */
export function AuthorizePage(view: AuthorizeView) {
  const { base, reader, brand, user, balance, cap, offersPasskeys } = view;
  const { texts } = reader;
  const title = reader.text("asks", { app: brand.name });
  return (
    <Page title={title} script={script} base={base} lang={reader.lang} brand={brand}>
      <div class="card">
        <AppHeader brand={brand} title={reader.say("asks", { app: brand.name })} />
        <p>{reader.say("asksNote", { app: brand.name, user })}</p>
        {cap === null ? null : <p>{reader.text("currentLimit", { amount: cap })}</p>}
        <DecisionForm {...view} />
        {balance === null
          ? (
            <>
              <p class="with">{texts.newWallet}</p>
              {offersPasskeys ? <UsePasskeyButton label={texts.usePasskey} /> : null}
            </>
          )
          : <p class="with">{reader.text("yourWallet", { amount: balance })}</p>}
      </div>
      <PayerFooter brand={brand} reader={reader} />
    </Page>
  );
}

function DecisionForm({ reader, currency, caps, problem }: AuthorizeView) {
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
        <button type="submit" name="decision" value="approve" class="primary wide">
          {texts.allow}
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
    hasPasskey: boolean;
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
  { base, reader, brand, cap, topUpUrl, hasPasskey, offersPasskeys }: Parameters<
    typeof AuthorizeResultPage
  >[0],
) {
  const { texts } = reader;
  const asksForPasskey = offersPasskeys && !hasPasskey;
  return (
    <>
      <PayerState icon="check" title={reader.say("allowed", { app: brand.name })} isMain>
        <p>
          {reader.text("allowedNote", { amount: cap })} {texts.paidNote}
        </p>
      </PayerState>
      {asksForPasskey
        ? (
          <div id="passkey-offer">
            <p>{texts.passkeyFirst}</p>
            <AddPasskeyButton label={texts.addPasskey} />
          </div>
        )
        : null}
      <p class="actions">
        <a class="button primary wide" href={topUpUrl}>{texts.topUp}</a>
        <a class="button plain wide" href={`${base}/wallet`}>{texts.wallet}</a>
      </p>
    </>
  );
}
