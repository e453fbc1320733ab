import { Marked } from "marked";

/** A guide, rendered for its page. */
export interface Guide {
  /** Its first heading. */
  title: string;
  /** What follows the heading. */
  html: string;
}

const titleLine = /^# (.+)\n/;

/**
 * Renders a guide's markdown. HTML in it is shown as text, and a link to another guide
 * (`nginx.md`) leads to that guide's page under `path`.
 */
export function renderGuide(markdown: string, path: string): Guide {
  const marked = new Marked({
    renderer: {
      html: ({ text }) => escape(text),
      heading({ tokens, depth, text }) {
        const inside = this.parser.parseInline(tokens);
        return `<h${depth} id="${anchorOf(text)}">${inside}</h${depth}>\n`;
      },
      // Focusable by keyboard, as everything that scrolls must be.
      code: ({ text }) => `<pre tabindex="0"><code>${escape(text)}\n</code></pre>\n`,
    },
    walkTokens(token) {
      if (token.type !== "link") return;
      token.href = token.href.replace(/^([a-z0-9-]+)\.md(?=#|$)/, `${path}/$1`);
    },
  });
  const html = marked.parse(markdown.replace(titleLine, ""), { async: false });
  return { title: titleLine.exec(markdown)?.[1] ?? "", html };
}

function escape(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** The anchor of a heading, as its page has it. */
export function anchorOf(heading: string): string {
  return heading.toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, "").trim().replace(/\s/g, "-");
}
