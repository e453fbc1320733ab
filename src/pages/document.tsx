/** @jsxImportSource @hono/hono/jsx */
import { assetNames } from "./assets.ts";
import { favicon } from "./icons.tsx";

/** A complete HTML page. `base` is the URL that this server is reached at, or its path. */
export function HtmlDocument({ title, base, lang = "en", look, script, className, children }: {
  title: string;
  base: string;
  /** A BCP 47 tag. */
  lang?: string;
  /** CSS of this page alone, whose hash its response allows. */
  look?: string | undefined;
  /** A script of this page alone, whose hash its response allows. */
  script?: string | undefined;
  className?: string;
  children?: unknown;
}) {
  const at = (name: string) => `${base}/assets/${name}`;
  return (
    <html lang={lang} data-base={base}>
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>{title}</title>
        <link rel="icon" href={favicon} />
        <link rel="stylesheet" href={at(assetNames.style)} />
        {look === undefined ? null : <style dangerouslySetInnerHTML={{ __html: look }} />}
        <script src={at(assetNames.script)} defer></script>
      </head>
      <body class={className}>
        {children}
        {script === undefined ? null : <script dangerouslySetInnerHTML={{ __html: script }} />}
      </body>
    </html>
  );
}
