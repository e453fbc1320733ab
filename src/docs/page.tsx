/** @jsxImportSource @hono/hono/jsx */
/** A chapter of a page, and its links. */
export interface DocsChapter {
  title: string;
  id: string;
  entries: readonly { id: string; title: string }[];
}

// Sizes in rem, and pairs of colors with a contrast of at least 7 to 1, for light and dark mode.
const style = `
:root { color-scheme: light dark; --line: #8886; --soft: light-dark(#f3f3f6, #232329);
  --ink: light-dark(#1b1b1f, #f2f2f5); --link: light-dark(#06327e, #b8d0fb); }
* { box-sizing: border-box; }
body { font: 1rem/1.5 system-ui, sans-serif; margin: 0; color: var(--ink);
  background: light-dark(#ffffff, #16161a); }
a { color: var(--link); }
:focus-visible { outline: 3px solid light-dark(#0b57d0, #a8c7fa); outline-offset: 2px; }
.skip { position: absolute; left: -100rem; }
.skip:focus { left: 1rem; top: 1rem; padding: 0.5rem 1rem; background: var(--soft); }
nav { padding: 1rem; border-bottom: 1px solid var(--line); }
nav p { margin: 0.25rem 0; font-weight: 600; }
nav ul { list-style: none; margin: 0; padding: 0; display: none; }
nav li { margin: 0.25rem 0; overflow-wrap: anywhere; }
nav ul.always { display: block; }
main { padding: 1rem; max-width: 50rem; min-width: 0; }
h2 { margin-top: 3rem; border-bottom: 1px solid var(--line); }
h3 { margin-top: 2.5rem; overflow-wrap: anywhere; }
h4 { margin: 1.5rem 0 0.5rem; }
code { font: 0.9em ui-monospace, monospace; overflow-wrap: anywhere; }
pre { background: var(--soft); padding: 0.75rem; border-radius: 0.5rem; white-space: pre-wrap; }
dl { margin: 0.5rem 0; }
dt { margin-top: 0.75rem; }
dd { margin: 0 0 0 1rem; }
dd p { margin: 0.25rem 0; }
.address { overflow-wrap: anywhere; }
summary { cursor: pointer; padding: 0.25rem 0; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: 0.4rem 0.5rem 0.4rem 0;
  border-bottom: 1px solid var(--line); }
td:nth-child(2) { overflow-wrap: anywhere; }
@media (min-width: 60rem) {
  body { display: grid; grid-template-columns: 19rem minmax(0, 1fr); }
  nav { position: sticky; top: 0; height: 100vh; overflow-y: auto; border: 0;
    border-right: 1px solid var(--line); }
  nav p { margin-top: 1rem; }
  nav ul { display: block; }
  main { padding: 1rem 3rem 6rem; }
}
`;

/** The frame of every page of the documentation; `base` is the base URL of this server. */
export function DocsPage(
  { title, chapters, base, children }: {
    title: string;
    chapters: readonly DocsChapter[];
    base: string;
    children?: unknown;
  },
) {
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>{title}</title>
        <style dangerouslySetInnerHTML={{ __html: style }} />
      </head>
      <body>
        <nav aria-label="Documentation">
          <a class="skip" href="#content">Skip to the content</a>
          <ul class="always">
            <li>
              <a href={`${base}/docs`} aria-current="page">Reference</a>
            </li>
            <li>
              <a href={`${base}/docs/guides`}>Guides</a>
            </li>
          </ul>
          {chapters.map(({ title, id, entries }) => (
            <>
              <p>
                <a href={`#${id}`}>{title}</a>
              </p>
              <ul>
                {entries.map((entry) => (
                  <li>
                    <a href={`#${entry.id}`}>{entry.title}</a>
                  </li>
                ))}
              </ul>
            </>
          ))}
        </nav>
        <main id="content">{children}</main>
      </body>
    </html>
  );
}
