/** @jsxImportSource @hono/hono/jsx */

/** What the top-up page shows. */
export interface TopUpView {
  projectName: string;
  user: string;
  balanceFormatted: string;
  /** Whether money can be added right here, as in development; else the owner is to be asked. */
  sandbox: boolean;
  /** A new one for each page: the same form sent twice is one deposit. */
  formId: string;
  /** Amounts to choose, as decimal strings and for people. */
  amounts: { value: string; label: string }[];
}

// Sizes in rem and colours in pairs with a contrast of at least 7 to 1, for light and for dark.
const style = `
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 26rem; margin: 3rem auto; padding: 0 1rem;
  color: light-dark(#1b1b1f, #f2f2f5); background: light-dark(#ffffff, #16161a); }
.balance { font-size: 2rem; font-weight: 600; }
button { font: inherit; padding: 0.6rem 1.2rem; margin: 0 0.5rem 0.5rem 0; border-radius: 0.5rem;
  border: 1px solid currentColor; background: transparent; color: inherit; cursor: pointer; }
button:focus-visible { outline: 3px solid light-dark(#0b57d0, #a8c7fa); outline-offset: 2px; }
`;

/** The page behind the link of a paywall message. */
export function TopUpPage(view: TopUpView) {
  return (
    <Page title={`Top up ${view.projectName}`}>
      <h1>{view.projectName}</h1>
      <p>
        Balance of <strong>{view.user}</strong>
      </p>
      <p class="balance">{view.balanceFormatted}</p>
      {view.sandbox ? <SandboxCheckout {...view} /> : (
        <p>
          This app takes payments on its own pages. Ask its owner how to top up, then go back to
          your chat.
        </p>
      )}
    </Page>
  );
}

function SandboxCheckout({ amounts, formId }: TopUpView) {
  return (
    <form method="post">
      <p>Development checkout: no real money moves.</p>
      <input type="hidden" name="formId" value={formId} />
      {amounts.map(({ value, label }) => (
        <button type="submit" name="amount" value={value}>Add {label}</button>
      ))}
    </form>
  );
}

/** A page that says one thing. */
export function MessagePage({ title, text }: { title: string; text: string }) {
  return (
    <Page title={title}>
      <h1>{title}</h1>
      <p>{text}</p>
    </Page>
  );
}

function Page({ title, children }: { title: string; children?: unknown }) {
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>{title}</title>
        <style dangerouslySetInnerHTML={{ __html: style }} />
      </head>
      <body>
        <main>{children}</main>
      </body>
    </html>
  );
}
