/** @jsxImportSource @hono/hono/jsx */
import type { Child } from "@hono/hono/jsx";
import type { Brand } from "../pages/brand.ts";
import { FormError } from "../pages/form_parts.tsx";
import { Page } from "../pages/page.tsx";
import { AmountTiles, AppHeader, PayerFooter, PayerState } from "../pages/payer_parts.tsx";
import type { Reader } from "../pages/texts/texts.tsx";
import { ActivityDays, type ShownEntry } from "./activity_days.tsx";

/** What the top-up page shows. */
export interface TopUpView {
  /** The path of this server's pages. */
  base: string;
  reader: Reader;
  brand: Brand;
  user: string;
  /**
   * Null for viewers who may not see it: a wallet's balance is only shown on its owner's devices.
   */
  balance: Child | null;
  /** The payments that are on their way. */
  pending: Child[];
  /** Someone who comes back from a checkout: what has arrived; null where nothing has yet. */
  returned: { arrived: Child | null } | null;
  /** Where a chosen amount leads: to Stripe, the app's own checkout, development's, or nowhere. */
  checkout: "stripe" | "own" | "sandbox" | "none";
  /** Whether that is Stripe in its test mode, outside development. */
  isTest: boolean;
  /** Whether the project is archived, and therefore takes no payments. */
  closed: boolean;
  /** Unique for each page: the same form sent twice is one checkout. */
  formId: string;
  /** The amounts to choose from, as decimal strings and for people. */
  amounts: { value: string; label: Child }[];
  /** The range of amounts that may be entered, for people. */
  range: { min: string; max: string };
  /** What was wrong with the submitted form, and what was entered. */
  problem: { text: string; entered: string } | null;
  entries: ShownEntry[];
  /** In milliseconds since 1970. */
  now: number;
}

/** How often the page looks whether money has arrived, in seconds. */
const refreshSeconds = "3";

/** The page behind the link of a paywall message. */
export function TopUpPage(view: TopUpView) {
  const { base, reader, brand, user, balance, checkout, entries, now } = view;
  const { texts } = reader;
  return (
    <Page title={`${texts.topUp} · ${brand.name}`} base={base} lang={reader.lang} brand={brand}>
      <div class="card">
        <AppHeader brand={brand} title={checkout === "none" ? texts.balance : texts.topUp} />
        <div id="state" aria-live="polite" data-refresh={refreshSeconds}>
          <State {...view} />
        </div>
        {balance === null ? <p>{reader.say("walletOf", { user })}</p> : (
          <>
            {checkout === "none" ? null : <p class="balance-label">{texts.balance}</p>}
            <p class="balance" id="balance" aria-live="polite" data-refresh={refreshSeconds}>
              {balance}
            </p>
          </>
        )}
        {checkout === "none"
          ? <p>{reader.say(view.closed ? "appClosed" : "notPayable", { app: brand.name })}</p>
          : <PayForm {...view} />}
      </div>
      <div id="activities" data-refresh={refreshSeconds}>
        <ActivityDays entries={entries} reader={reader} now={now} />
      </div>
      <PayerFooter brand={brand} reader={reader} user={balance === null ? undefined : user} />
    </Page>
  );
}

function State({ reader, returned, pending }: TopUpView) {
  const { texts } = reader;
  if (returned?.arrived) {
    return (
      <PayerState icon="check" title={fill(texts.paid, returned.arrived)}>
        <p>{texts.paidNote}</p>
      </PayerState>
    );
  }
  if (pending.length > 0) {
    return pending.map((amount) => (
      <PayerState icon="clock" title={fill(texts.onItsWay, amount)}>
        <p>{texts.onItsWayNote}</p>
      </PayerState>
    ));
  }
  if (returned === null) return null;
  return (
    <PayerState icon="clock" title={texts.confirming}>
      <p>{texts.confirmingNote}</p>
    </PayerState>
  );
}

/** Puts an amount into a text. */
function fill(text: string, amount: Child): Child {
  const [before, after] = text.split("{amount}");
  return <>{before}{amount}{after}</>;
}

function PayForm(view: TopUpView) {
  const { reader, brand, amounts, formId, range, checkout, problem } = view;
  const { texts } = reader;
  const hasPaid = Boolean(view.returned?.arrived);
  const form = (
    <>
      {view.isTest ? <p class="notice">{texts.testMode}</p> : null}
      <FormError text={problem?.text ?? null} />
      <form method="post">
        <input type="hidden" name="formId" value={formId} />
        <AmountTiles
          name="amount"
          legend={texts.choose}
          amounts={amounts}
          other={{ label: reader.text("otherAmount", range), value: problem?.entered ?? "" }}
          chosen={problem === null ? Math.floor((amounts.length - 1) / 2) : -1}
        />
        <button type="submit" class="primary wide">
          {checkout === "sandbox" ? texts.payInDevelopment : texts.pay}
        </button>
      </form>
      <p class="with">
        {checkout === "sandbox"
          ? texts.sandbox
          : reader.say(checkout === "stripe" ? "byStripe" : "byApp", { app: brand.name })}
      </p>
      {hasPaid ? null : <p class="with">{texts.afterwards}</p>}
    </>
  );
  if (!hasPaid) return form;
  return (
    <details>
      <summary>{texts.topUp}</summary>
      {form}
    </details>
  );
}
