/** @jsxImportSource @hono/hono/jsx */
import type { Brand } from "./brand.ts";
import { HtmlDocument } from "./document.tsx";

/** The frame of the pages of people who pay: one card, under the name of an app. */
export function Page({ title, base, lang, brand, script, children }: {
  title: string;
  base: string;
  lang?: string;
  /** Whose page it is. */
  brand?: Brand | undefined;
  /** A script of this page alone. */
  script?: string;
  children?: unknown;
}) {
  const more = lang === undefined ? {} : { lang };
  return (
    <HtmlDocument {...{ title, base, script, ...more }} look={brand?.look} className="payer">
      <main>{children}</main>
    </HtmlDocument>
  );
}

/** A page with one message, and optionally a link back. */
export function MessagePage({ title, text, base, back, lang = "en" }: {
  title: string;
  text: string;
  base: string;
  back?: { href: string; text: string } | undefined;
  /** The language of the texts, as a BCP 47 tag. */
  lang?: string;
}) {
  return (
    <Page title={title} base={base} lang={lang}>
      <div class="card">
        <h1>{title}</h1>
        <p>{text}</p>
        {back === undefined ? null : (
          <p>
            <a href={back.href}>{back.text}</a>
          </p>
        )}
      </div>
    </Page>
  );
}
