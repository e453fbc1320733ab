/** @jsxImportSource @hono/hono/jsx */
import { ApiError } from "../base/errors.ts";
import type { Handler } from "../base/handler.ts";
import { headerValue } from "../base/response.ts";
import { type Config, publicPath } from "../config/config.ts";
import type { Brand } from "./brand.ts";
import { MessagePage } from "./page.tsx";
import { readerOf } from "./texts/texts.tsx";

/**
 * The response for a personal page: not stored, not framed, loads nothing from other origins but
 * the logo of its `brand`, and sends no referrer. `formTargets` are CSP sources that its forms may
 * submit to, `script` is the hash of a script of its own that may run, `cookie` is set.
 */
export function pageResponse(
  status: number,
  page: unknown,
  { requestId, headers, formTargets = [], script = "", brand, cookie }: {
    requestId: string;
    headers?: Record<string, string>;
    formTargets?: readonly string[];
    script?: string;
    brand?: Pick<Brand, "allowed"> | undefined;
    cookie?: string | undefined;
  },
): Response {
  const policy = [
    "default-src 'none'",
    `style-src 'self' ${brand?.allowed.style ?? ""}`.trim(),
    "font-src 'self'",
    `img-src data: ${brand?.allowed.image ?? ""}`.trim(),
    `script-src 'self' ${script}`.trim(),
    "connect-src 'self'",
    `form-action 'self' ${formTargets.join(" ")}`.trim(),
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ];
  return new Response(`<!doctype html>${page}`, {
    status,
    headers: {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": policy.join("; "),
      // With no referrer at all, our own forms would also come from "null".
      "referrer-policy": "same-origin",
      "x-content-type-options": "nosniff",
      "cache-control": "no-store",
      "x-request-id": requestId,
      ...(cookie === undefined ? {} : { "set-cookie": cookie }),
      ...headers,
    },
  });
}

/**
 * Redirects after a form; the browser then sends a GET, so that going back submits nothing twice.
 * `cookies` are set with the redirect.
 */
export function seeOther(
  location: string,
  requestId: string,
  cookies: readonly string[] = [],
): Response {
  const headers = new Headers({
    location: headerValue(location),
    "x-request-id": requestId,
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
  });
  for (const cookie of cookies) headers.append("set-cookie", cookie);
  return new Response(null, { status: 303, headers });
}

/**
 * Shows what a person may read of an error, with a link back; internal errors are thrown on, and
 * logged. `lost` is the title of a 404. Without it the page is one of people who pay, and speaks
 * their language.
 */
export function asPage(
  handler: Handler,
  site: Pick<Config, "baseUrl">,
  lost?: string,
): Handler {
  return async (incoming) => {
    try {
      return await handler(incoming);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const { requestId, path, request } = incoming;
      const { headers } = error;
      const reader = readerOf(lost === undefined ? request : { headers: new Headers() });
      const title = error.status === 404 ? lost ?? reader.text("linkEnded") : reader.text("wrong");
      const back = error.status === 404
        ? undefined
        : { href: publicPath(site, path), text: reader.text("back") };
      const base = publicPath(site, "");
      const text = reader.translate(error.message);
      const page = <MessagePage {...{ title, text, base, back }} lang={reader.lang} />;
      return pageResponse(error.status, String(page), { requestId, headers });
    }
  };
}
