/** @jsxImportSource @hono/hono/jsx */
import { createHash } from "node:crypto";

/** What the top-up page shows. */
export interface TopUpView {
  projectName: string;
  user: string;
  /** Null where it is not for these eyes: a wallet's is for its owner's devices alone. */
  balanceFormatted: string | null;
  /** Where an amount leads: to a checkout, to development's own, or nowhere. */
  checkout: "checkout" | "sandbox" | "none";
  /** A new one for each page: the same form sent twice is one checkout. */
  formId: string;
  /** Amounts to choose, as decimal strings and for people. */
  amounts: { value: string; label: string }[];
  /** What may be typed instead. */
  range: { min: string; max: string; currency: string };
  /** The last movements, newest first. */
  activities: { at: string; day: string; what: string; amount: string }[];
}

// Sizes in rem and colours in pairs with a contrast of at least 7 to 1, for light and for dark.
const style = `
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 30rem; margin: 2rem auto; padding: 0 1rem;
  color: light-dark(#1b1b1f, #f2f2f5); background: light-dark(#ffffff, #16161a);
  overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin-top: 2rem; }
.balance { font-size: 2rem; font-weight: 600; margin: 0; }
button, input { font: inherit; min-height: 2.75rem; padding: 0.5rem 1rem; border-radius: 0.5rem;
  margin: 0 0.5rem 0.5rem 0; border: 1px solid currentColor; background: transparent;
  color: inherit; box-sizing: border-box; }
button { cursor: pointer; }
input { width: 9rem; }
input[type="radio"] { width: 1.25rem; min-height: 1.25rem; vertical-align: middle; }
fieldset { border: 1px solid currentColor; border-radius: 0.5rem; margin: 0 0 1rem; }
fieldset label { min-height: 2.75rem; }
label { display: block; }
:focus-visible { outline: 3px solid light-dark(#0b57d0, #a8c7fa); outline-offset: 2px; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: 0.4rem 0.5rem 0.4rem 0; border-bottom: 1px solid #8884; }
table { overflow-wrap: normal; }
td:nth-child(2) { overflow-wrap: anywhere; }
td:last-child, th:last-child { text-align: right; font-variant-numeric: tabular-nums; }
`;

// The only script: looks now and then whether money has arrived, and shows it in place.
const script = `
const look = async () => {
  if (document.hidden) return;
  const answer = await fetch(location.href, { headers: { "x-look": "1" } }).catch(() => null);
  if (!answer || !answer.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const id of ["balance", "activities"]) {
    const [now, then] = [fresh.getElementById(id), document.getElementById(id)];
    if (now && then && now.innerHTML !== then.innerHTML) then.replaceChildren(...now.childNodes);
  }
};
setInterval(look, 3000);
`;

/** A script's name in a Content-Security-Policy: nothing else runs on the page. */
export function scriptHash(text: string): string {
  return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
}

/** The top-up page's own. */
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
            </strong>. Its balance is shown on its owner’s own devices only.
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
      {view.checkout === "none"
        ? (
          <p>
            This app takes payments on its own pages. Ask its owner how to top up, then go back to
            your chat.
          </p>
        )
        : <Amounts {...view} />}
      <section id="activities">
        <Activities {...view} />
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
      <p>When it is done, go back to your chat and send your message again.</p>
    </>
  );
}

/** The last movements as a table. */
export function Activities({ activities }: Pick<TopUpView, "activities">) {
  if (activities.length === 0) return null;
  return (
    <>
      <h2>Last activities</h2>
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

/** A page that says one thing, and may lead back. */
export function MessagePage(
  { title, text, back }: { title: string; text: string; back?: string },
) {
  return (
    <Page title={title}>
      <h1>{title}</h1>
      <p>{text}</p>
      {back === undefined ? null : (
        <p>
          <a href={back}>Back</a>
        </p>
      )}
    </Page>
  );
}

/** The page of an address that leads nowhere: from it owners and programmers find the way. */
export function LostPage(
  { says, console, docs }: { says: string; console: string; docs: string },
) {
  const title = "There is no such page";
  return (
    <Page title={title}>
      <h1>{title}</h1>
      <p>{says}</p>
      <p>
        Owners sign in at <a href={console}>the console</a>. The API is described in{" "}
        <a href={docs}>the reference</a>.
      </p>
    </Page>
  );
}

/**
 * The frame of every page; `script` is the only one that runs in it, and reads `base`. `look` is CSS
 * of the page's own.
 */
export function Page({ title, look = "", script, base, children }: {
  title: string;
  look?: string;
  script?: string;
  base?: string;
  children?: unknown;
}) {
  return (
    <html lang="en" data-base={base}>
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>{title}</title>
        <style dangerouslySetInnerHTML={{ __html: style + look }} />
      </head>
      <body>
        <main>{children}</main>
        {script === undefined ? null : <script dangerouslySetInnerHTML={{ __html: script }} />}
      </body>
    </html>
  );
}
