import { createHash } from "node:crypto";
import { notFound } from "../base/errors.ts";
import type { Handler } from "../base/handler.ts";
import { pageScript } from "./script.ts";
import { style } from "./style.ts";

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 12);
}

/** The names of the files that every page loads; they change with their contents. */
export const assetNames = {
  style: `style-${hashOf(style)}.css`,
  script: `page-${hashOf(pageScript)}.js`,
};

/** Serves the style, the script and the fonts of the pages, which browsers keep for a year. */
export function assetRoutes(fonts: ReadonlyMap<string, Uint8Array<ArrayBuffer>>): {
  asset: Handler;
} {
  const files = new Map<string, { type: string; body: string | Uint8Array<ArrayBuffer> }>([
    [assetNames.style, { type: "text/css; charset=utf-8", body: style }],
    [assetNames.script, { type: "text/javascript; charset=utf-8", body: pageScript }],
    ...[...fonts].map(([name, body]) => [name, { type: "font/woff2", body }] as const),
  ]);
  return {
    asset: ({ param, requestId }) => {
      const file = files.get(param("name"));
      if (!file) throw notFound("file");
      return new Response(file.body, {
        headers: {
          "content-type": file.type,
          "cache-control": "public, max-age=31536000, immutable",
          "x-content-type-options": "nosniff",
          "x-request-id": requestId,
        },
      });
    },
  };
}
