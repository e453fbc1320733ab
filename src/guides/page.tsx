/** @jsxImportSource @hono/hono/jsx */
import { Page } from "../pages/page.tsx";
import type { Guide } from "./markdown.ts";

/** Links to guides, under a common heading. */
export interface GuideSection {
  title: string;
  links: { href: string; title: string }[];
}

const look = `
body { max-width: 46rem; }
a { color: light-dark(#0b4db8, #a8c7fa); }
pre { overflow-x: auto; padding: 0.75rem 1rem; border-radius: 0.5rem; line-height: 1.4;
  background: light-dark(#f3f3f6, #222228); }
code { font: 0.9rem/1.4 ui-monospace, monospace; overflow-wrap: break-word; }
nav ul, nav p { margin: 0; padding: 0; }
nav li { display: inline-block; margin: 0 1rem 0.25rem 0; }
nav { border-top: 1px solid #8884; margin-top: 3rem; padding-top: 1rem; }
nav p { margin-top: 0.75rem; font-weight: 600; }
td, th { vertical-align: top; overflow-wrap: anywhere; }
td:last-child, th:last-child { text-align: left; }
`;

/** One guide, with links to the others. */
export function GuidePage({ title, html, sections, here }: Guide & {
  sections: GuideSection[];
  /** The URL of this guide. */
  here: string;
}) {
  return (
    <Page title={`${title} · Farebox`} look={look}>
      <h1>{title}</h1>
      <article dangerouslySetInnerHTML={{ __html: html }} />
      <Contents sections={sections} here={here} />
    </Page>
  );
}

/** The list of all guides. */
export function GuideIndexPage({ sections }: { sections: GuideSection[] }) {
  return (
    <Page title="Guides · Farebox" look={look}>
      <h1>Guides</h1>
      <Contents sections={sections} />
    </Page>
  );
}

function Contents({ sections, here }: { sections: GuideSection[]; here?: string }) {
  return (
    <nav aria-label="Guides">
      {sections.map((section) => (
        <>
          <p>{section.title}</p>
          <ul>
            {section.links.map(({ href, title }) => (
              <li>
                {href === here
                  ? <span aria-current="page">{title}</span>
                  : <a href={href}>{title}</a>}
              </li>
            ))}
          </ul>
        </>
      ))}
    </nav>
  );
}
