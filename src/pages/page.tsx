/** @jsxImportSource @hono/hono/jsx */
import { createHash } from "node:crypto";

// Sizes in rem, and pairs of colors with a contrast of at least 7 to 1, for light and dark mode.
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

/** Returns a script's hash for the Content-Security-Policy: nothing else runs on the page. */
export function scriptHash(text: string): string {
  return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
}

/**
 * The frame of every page. `script` is the only one that runs in it, and reads `base`. `look` is
 * CSS of the page's own.
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

/** A page with one message, and optionally a link back. */
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
