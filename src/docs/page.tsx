/** @jsxImportSource @hono/hono/jsx */
import { DocsFrame } from "../pages/docs_frame.tsx";

/** A chapter of a page, and its links. */
export interface DocsChapter {
  title: string;
  id: string;
  entries: readonly { id: string; title: string }[];
}

/** The frame of the reference; `base` is the base URL of this server. */
export function DocsPage(
  { title, chapters, base, children }: {
    title: string;
    chapters: readonly DocsChapter[];
    base: string;
    children?: unknown;
  },
) {
  const contents = chapters.map(({ title, id, entries }) => ({
    title: <a href={`#${id}`}>{title}</a>,
    links: entries.map((entry) => ({ href: `#${entry.id}`, title: entry.title })),
  }));
  return (
    <DocsFrame title={title} base={base} part="reference" contents={contents}>
      {children}
    </DocsFrame>
  );
}
