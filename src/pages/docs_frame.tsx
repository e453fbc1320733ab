/** @jsxImportSource @hono/hono/jsx */
import type { Child } from "@hono/hono/jsx";
import { HtmlDocument } from "./document.tsx";
import { Mark } from "./icons.tsx";

/** Links beside a page of the documentation, under a heading. */
interface DocsContents {
  title: Child;
  links: readonly { href: string; title: string }[];
}

/** The frame of every page of the documentation. */
export function DocsFrame({ title, base, part, here, contents, query, isWide = false, children }: {
  title: string;
  base: string;
  /** The part of the documentation that the page belongs to. */
  part: "reference" | "guides";
  /** The URL of this page, where it is among the contents. */
  here?: string | undefined;
  contents: readonly DocsContents[];
  /** What was searched for. */
  query?: string | undefined;
  /** Whether the page has examples beside its text. */
  isWide?: boolean;
  children?: unknown;
}) {
  const parts = [
    { name: "guides", title: "Guides", href: `${base}/docs/guides` },
    { name: "reference", title: "API reference", href: `${base}/docs` },
  ];
  return (
    <HtmlDocument title={title} base={base} className="docs">
      <nav aria-label="Documentation">
        <a class="skip" href="#content">Skip to the content</a>
        <a class="brand" href={`${base}/docs`}>
          <Mark />Farebox docs
        </a>
        <ul class="parts">
          {parts.map(({ name, title, href }) => (
            <li>
              <a href={href} aria-current={name === part ? "page" : undefined}>{title}</a>
            </li>
          ))}
        </ul>
        <form class="search" role="search" action={`${base}/docs/search`}>
          <label class="hidden" for="q">Search the documentation</label>
          <input id="q" type="search" name="q" value={query} placeholder="Search" maxlength={100} />
        </form>
        {contents.map(({ title, links }) => (
          <div class="wide-only">
            <p>{title}</p>
            <ul>
              {links.map((link) => (
                <li>
                  {link.href === here
                    ? <span aria-current="page">{link.title}</span>
                    : <a href={link.href}>{link.title}</a>}
                </li>
              ))}
            </ul>
          </div>
        ))}
      </nav>
      <main id="content" class={isWide ? "with-examples" : undefined}>{children}</main>
    </HtmlDocument>
  );
}
