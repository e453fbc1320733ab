/** @jsxImportSource @hono/hono/jsx */
import { createHash } from "node:crypto";
import type { Handler } from "../base/handler.ts";
import type { EndpointDocs } from "../base/endpoint_doc.ts";
import { corsHeaders } from "../base/response.ts";
import { publicPath } from "../config.ts";
import type { Deps } from "../deps.ts";
import { pageResponse } from "../pages/response.tsx";
import { createDocument } from "./document.ts";
import { ReferencePage } from "./reference.tsx";

/** The API document: for machines, and as a page for people. */
export function docsRoutes(
  { deps, operations }: { deps: Pick<Deps, "config">; operations: EndpointDocs },
) {
  const document = once(() => createDocument(operations, deps.config));
  const text = once(() => new TextEncoder().encode(JSON.stringify(document())));
  const openapi: Handler = (incoming) => cached(incoming, text(), "application/json");
  const page = once(() => {
    const base = publicPath(deps.config, "");
    const html = <ReferencePage operations={operations} document={document()} base={base} />;
    return new TextEncoder().encode(`<!doctype html>${html}`);
  });
  const reference: Handler = ({ requestId }) =>
    sharedResponse(page(), pageResponse(200, "", { requestId }));
  return { openapi, reference };
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

/**
 * Returns a text that never changes while the process runs; 304 for a client that has it already.
 */
function cached(
  { request, requestId }: Parameters<Handler>[0],
  text: Uint8Array<ArrayBuffer>,
  type: string,
) {
  const etag = `"${createHash("sha256").update(text).digest("base64url")}"`;
  const headers = { ...corsHeaders, "cache-control": "no-cache", etag, "x-request-id": requestId };
  const known = (request.headers.get("if-none-match") ?? "").split(/,\s*/)
    .some((tag) => tag.replace(/^W\//, "") === etag);
  if (known) return new Response(null, { status: 304, headers });
  return sharedResponse(text, { headers: { ...headers, "content-type": type } });
}
