/** @jsxImportSource @hono/hono/jsx */

import { Page, scriptHash } from "../pages/page.tsx";
import type { Entry } from "../ledger/entry.ts";

/** What the top-up page shows. */
export interface TopUpView {
  projectName: string;
  user: string;
  /**
   * Null for viewers who may not see it: a wallet's balance is only shown on its owner's devices.
   */
  balanceFormatted: string | null;
  /** The payments that are on their way, formatted for people. */
  pending: string[];
  /** Where a chosen amount leads: to a checkout, to development's own, or nowhere. */
  checkout: "checkout" | "sandbox" | "none";
  /** Unique for each page: the same form sent twice is one checkout. */
  formId: string;
  /** The amounts to choose from, as decimal strings and formatted for people. */
  amounts: { value: string; label: string }[];
  /** The range of amounts that may be typed. */
  range: { min: string; max: string; currency: string };
  /** The last movements, newest first. */
  activities: { at: string; day: string; what: string; amount: string }[];
}

// The only script: checks regularly whether money has arrived, and updates the page.
const script = `
const look = async () => {
  if (document.hidden) return;
  const answer = await fetch(location.href, { headers: { "x-look": "1" } }).catch(() => null);
  if (!answer || !answer.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const id of ["balance", "pending", "activities"]) {
    const [now, then] = [fresh.getElementById(id), document.getElementById(id)];
    if (now && then && now.innerHTML !== then.innerHTML) then.replaceChildren(...now.childNodes);
  }
};
setInterval(look, 3000);
`;

/** The hash of the top-up page's script. */
export const topUpScriptHash = scriptHash(script);

/** The page behind the link of a paywall message. */
export function TopUpPage(view: TopUpView) {
  return (
    <Page title={`Top up ${view.projectName}`} script={script}>
      <h1>{view.projectName}</h1>
      {view.balanceFormatted === null
        ? (
          <p>
            Pays into the wallet of{" "}
            <strong>
              <bdi>{view.user}</bdi>
            </strong>. Its balance is only shown on its owner’s own devices.
          </p>
        )
        : (
          <>
            <p>
              Balance of{" "}
              <strong>
                <bdi>{view.user}</bdi>
              </strong>
            </p>
            <p class="balance" id="balance" aria-live="polite">{view.balanceFormatted}</p>
          </>
        )}
      <section id="pending" aria-live="polite">
        {view.pending.map((amount) => (
          <p>
            <strong>{amount}</strong>{" "}
            is on its way. A bank payment may take some days; there is no need to pay again.
          </p>
        ))}
      </section>
      {view.checkout === "none"
        ? (
          <p>
            This app takes payments on its own site. Ask its owner how to top up, then return to
            your chat.
          </p>
        )
        : <Amounts {...view} />}
      <section id="activities">
        <ActivitySection {...view} />
      </section>
    </Page>
  );
}

function Amounts({ amounts, formId, range, checkout }: TopUpView) {
  const { min, max, currency } = range;
  return (
    <>
      <h2>Add money</h2>
      {checkout === "sandbox" ? <p>Development checkout: no real money moves.</p> : null}
      <form method="post">
        <input type="hidden" name="formId" value={formId} />
        {amounts.map(({ value, label }) => (
          <button type="submit" name="amount" value={value}>Add {label}</button>
        ))}
      </form>
      <form method="post">
        <input type="hidden" name="formId" value={formId} />
        <label for="amount">
          Another amount, {min} to {max} {currency.toUpperCase()}
        </label>
        <input
          id="amount"
          name="amount"
          inputmode="decimal"
          autocomplete="transaction-amount"
          required
        />
        <button type="submit">Add</button>
      </form>
      <p>When you are done, go back to your chat and send your message again.</p>
    </>
  );
}

/** The last movements as a table. */
export function ActivitySection({ activities }: Pick<TopUpView, "activities">) {
  if (activities.length === 0) return null;
  return (
    <>
      <h2>Recent activity</h2>
      <table>
        <thead>
          <tr>
            <th scope="col">When</th>
            <th scope="col">What</th>
            <th scope="col">Amount</th>
          </tr>
        </thead>
        <tbody>
          {activities.map(({ at, day, what, amount }) => (
            <tr>
              <td>
                <time datetime={at}>{day}</time>
              </td>
              <td>{what}</td>
              <td>{amount}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

const kinds: Record<Entry["kind"], string> = {
  deposit: "Added",
  charge: "Charge",
  usage: "Answer",
  refund: "Refund",
  trial: "Trial credit",
  expired: "Answer, interrupted",
};

/** Returns an entry as a line of a page. */
export function activityForPeople({ createdAt, kind, usage, delta }: Entry, currency: string) {
  const at = new Date(createdAt).toISOString();
  const what = usage ? `${kinds[kind]} (${usage.model})` : kinds[kind];
  const day = `${at.slice(0, 16).replace("T", " ")} UTC`;
  return { at, day, what, amount: `${delta} ${currency}` };
}
