/** @jsxImportSource @hono/hono/jsx */
import { createHash } from "node:crypto";
import { ApiError } from "../base/errors.ts";
import { guidePassages } from "../guides/search.ts";
import type { Handler } from "../base/handler.ts";
import type { EndpointDocs } from "../base/endpoint_doc.ts";
import { corsHeaders } from "../base/response.ts";
import { publicPath } from "../config/config.ts";
import type { Deps } from "../deps.ts";
import { asPage, pageResponse } from "../pages/response.tsx";
import { createDocument } from "./document.ts";
import { createReference, OverviewPage, referencePage } from "./reference.tsx";
import { referenceEntries, searchCharsMax, searchDocs } from "./search.ts";
import { SearchPage } from "./search_page.tsx";

/** The API document: for machines, and as pages for people, with a search. */
export function docsRoutes({ deps: { config, guides }, operations }: {
  deps: Pick<Deps, "config" | "guides">;
  operations: EndpointDocs;
}): Record<"openapi" | "overview" | "page" | "search", Handler> {
  const base = publicPath(config, "");
  const document = once(() => createDocument(operations, config));
  const text = once(() => new TextEncoder().encode(JSON.stringify(document())));
  const packed = once(() => pack(text()));
  const reference = once(() => createReference(operations, document()));
  const overview = once(() => encoded(<OverviewPage reference={reference()} base={base} />));
  const pages = new Map<string, Uint8Array<ArrayBuffer>>();
  const entries = once(() => [
    ...referenceEntries(reference(), base),
    ...guidePassages(guides, `${base}/docs/guides`).map((
      { title, guide, href, explains, text },
    ) => ({
      title,
      place: guide === title ? "Guide" : `Guide: ${guide}`,
      href,
      names: guide,
      explains,
      text,
    })),
  ]);

  function pageOf(name: string): Uint8Array<ArrayBuffer> {
    const known = pages.get(name);
    if (known) return known;
    const page = referencePage(reference(), name, base);
    if (page === null) {
      throw new ApiError(404, {
        message: `The reference has no page '${name.slice(0, 64)}'. All pages are at ${base}/docs.`,
      });
    }
    const bytes = encoded(page);
    pages.set(name, bytes);
    return bytes;
  }

  return {
    openapi: async (incoming) => cached(incoming, await packed(), "application/json"),
    overview: ({ requestId }) => sharedResponse(overview(), pageResponse(200, "", { requestId })),
    page: asPage(
      ({ param, requestId }) =>
        sharedResponse(pageOf(param("page")), pageResponse(200, "", { requestId })),
      config,
      "This page does not exist",
    ),
    search: ({ query: parameter, requestId }) => {
      const query = (parameter("q") ?? "").trim();
      const isLong = query.length > searchCharsMax;
      const results = isLong ? null : searchDocs(entries(), query);
      const shown = {
        reference: reference(),
        base,
        query: query.slice(0, searchCharsMax),
        results,
      };
      return pageResponse(isLong ? 400 : 200, String(<SearchPage {...shown} />), { requestId });
    },
  };
}

function encoded(page: unknown): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(`<!doctype html>${page}`);
}

/** Built at the first request, and then kept: most processes of a test never need it. */
function once<T>(make: () => T): () => T {
  let made: { value: T } | null = null;
  return () => (made ??= { value: make() }).value;
}

const sliceBytes = 16 * 1024;

/** Sends the same bytes to all: a slow reader keeps a slice of them, not a copy. */
function sharedResponse(bytes: Uint8Array<ArrayBuffer>, init: ResponseInit): Response {
  let at = 0;
  const slices = new ReadableStream({
    pull(controller) {
      controller.enqueue(bytes.subarray(at, at + sliceBytes));
      at += sliceBytes;
      if (at >= bytes.length) controller.close();
    },
  }, { highWaterMark: 0 });
  const response = new Response(slices, init);
  response.headers.set("content-length", String(bytes.length));
  return response;
}

/** A text that never changes while the process runs, plain and compressed. */
interface Packed {
  text: Uint8Array<ArrayBuffer>;
  gzip: Uint8Array<ArrayBuffer>;
  /** Tells it from that of another version. */
  hash: string;
}

async function pack(text: Uint8Array<ArrayBuffer>): Promise<Packed> {
  const compressed = new Blob([text]).stream().pipeThrough(new CompressionStream("gzip"));
  return {
    text,
    gzip: new Uint8Array(await new Response(compressed).arrayBuffer()),
    hash: createHash("sha256").update(text).digest("base64url"),
  };
}

/** Returns such a text as its client can read it; 304 for a client that has it already. */
function cached(
  { request, requestId }: Parameters<Handler>[0],
  { text, gzip, hash }: Packed,
  type: string,
) {
  const encoding = takesGzip(request.headers.get("accept-encoding") ?? "") ? "gzip" : null;
  const etag = encoding ? `"${hash}-${encoding}"` : `"${hash}"`;
  const headers = {
    ...corsHeaders,
    "cache-control": "no-cache",
    vary: "accept-encoding",
    etag,
    "x-request-id": requestId,
  };
  const known = (request.headers.get("if-none-match") ?? "").split(/,\s*/)
    .some((tag) => tag.replace(/^W\//, "") === etag);
  if (known) return new Response(null, { status: 304, headers });
  const encoded = encoding ? { "content-encoding": encoding } : {};
  const sent = { headers: { ...headers, ...encoded, "content-type": type } };
  return sharedResponse(encoding ? gzip : text, sent);
}

/** Whether an `Accept-Encoding` names gzip, with a weight above zero (RFC 9110, 12.5.3). */
function takesGzip(accepted: string): boolean {
  return accepted.toLowerCase().split(",").some((one) => {
    const [name = "", ...parameters] = one.split(";").map((part) => part.trim());
    const weight = parameters.find((part) => part.startsWith("q="))?.slice(2);
    return name === "gzip" && (weight === undefined || Number(weight) > 0);
  });
}
