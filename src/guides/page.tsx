/** @jsxImportSource @hono/hono/jsx */
import { DocsFrame } from "../pages/docs_frame.tsx";
import type { Guide } from "./markdown.ts";

/** Links to guides, under a common heading. */
interface GuideSection {
  title: string;
  links: { href: string; title: string }[];
}

/** One guide, with links to the others. */
export function GuidePage({ title, html, sections, here, base }: Guide & {
  sections: GuideSection[];
  /** The URL of this guide. */
  here: string;
  base: string;
}) {
  const frame = { title: `${title} · Farebox`, base, here, contents: sections };
  return (
    <DocsFrame {...frame} part="guides">
      <h1>{title}</h1>
      <article dangerouslySetInnerHTML={{ __html: html }} />
      <Contents sections={sections} here={here} />
    </DocsFrame>
  );
}

/** The list of all guides. */
export function GuideIndexPage({ sections, base }: { sections: GuideSection[]; base: string }) {
  return (
    <DocsFrame title="Guides · Farebox" base={base} part="guides" contents={[]}>
      <h1>Guides</h1>
      <Contents sections={sections} />
    </DocsFrame>
  );
}

function Contents({ sections, here }: { sections: GuideSection[]; here?: string }) {
  return (
    <nav aria-label="Guides" class="cards guides">
      {sections.map(({ title, links }) => (
        <section class="card">
          <h2>{title}</h2>
          <ul class="plain-list">
            {links.map((link) => (
              <li>
                {link.href === here
                  ? <span aria-current="page">{link.title}</span>
                  : <a href={link.href}>{link.title}</a>}
              </li>
            ))}
          </ul>
        </section>
      ))}
    </nav>
  );
}
