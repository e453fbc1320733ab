import assert from "node:assert/strict";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { createParser } from "eventsource-parser";
import { createDocument } from "../../src/docs/document.ts";
import { apiDoc } from "../../src/api_doc.ts";
import type { Body } from "./body.ts";

/** The document's id for the validator. */
const name = "api";
const methods = ["get", "post", "patch", "delete"];
/** Headers that concern a caller. */
const telling =
  /^(x-service-|x-ratelimit-|idempoten|retry-after$|www-authenticate$|x-next-cursor$)/;
/** Content types of any length whose parts have no schema of their own. */
const endless = ["application/jsonl", "application/octet-stream"];

let made: { document: Body; ajv: Ajv2020; addresses: Address[] } | null = null;

interface Address {
  path: string;
  pattern: RegExp;
}

/** The API document of a server with its own URL, and its validators; created once. */
export function apiDocument() {
  if (made) return made;
  const document: Body = JSON.parse(
    JSON.stringify(createDocument(apiDoc, { baseUrl: "https://farebox.test" })),
  );
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateSchema: false });
  addFormats.default(ajv);
  ajv.addSchema(document, name);
  const addresses = Object.keys(document.paths).map((path) => ({ path, pattern: patternOf(path) }));
  // Path parameters are matched after literal segments.
  addresses.sort((one, other) => one.path.split("{").length - other.path.split("{").length);
  return made = { document, ajv, addresses };
}

/** Returns a path of the document as a pattern for requests; a model's name contains slashes. */
function patternOf(path: string): RegExp {
  const source = path.replaceAll("{model}", ".+").replace(/\{\w+\}/g, "[^/]+");
  return new RegExp(`^${source}$`);
}

/** Returns the part of the document at a pointer of these names. */
export function at(...names: string[]): Body | undefined {
  let part: Body | undefined = apiDocument().document;
  for (const one of names) part = part?.[one];
  return part && resolved(part);
}

/** Returns a part of the document, or the one that it references. */
export function resolved(part: Body): Body {
  if (typeof part.$ref !== "string") return part;
  return at(...part.$ref.slice(2).split("/")) ?? assert.fail(part.$ref);
}

const validators = new Map<string, ValidateFunction>();

/** Returns the validator of the schema at a pointer of these names. */
export function validatorAt(...names: string[]): ValidateFunction {
  const pointer = names.map((one) =>
    encodeURIComponent(one.replaceAll("~", "~0").replaceAll("/", "~1"))
  ).join("/");
  const known = validators.get(pointer);
  if (known) return known;
  const validator = apiDocument().ajv.compile({ $ref: `${name}#/${pointer}` });
  validators.set(pointer, validator);
  return validator;
}

/** Returns what is invalid in a value for a schema, or nothing. */
export function faultsOf(validator: ValidateFunction, value: unknown): string {
  if (validator(value)) return "";
  const faults = (validator.errors ?? []).map(({ instancePath, message, params }) =>
    `${instancePath || "the whole"} ${message} ${JSON.stringify(params)}`
  );
  return `${faults.join("\n")}\nin ${JSON.stringify(value)?.slice(0, 2_000)}`;
}

/** Returns the operation of a request in the document; null for an unknown one. */
function operationOf({ method, url }: Request): string[] | null {
  const path = new URL(url).pathname.replace(/\/{2,}/g, "/").replace(/(.)\/$/, "$1");
  const found = apiDocument().addresses.find(({ pattern }) => pattern.test(path));
  const verb = method.toLowerCase();
  if (!found || !methods.includes(verb) || !at("paths", found.path, verb)) return null;
  return ["paths", found.path, verb];
}

/**
 * Returns the same response, after validating its status and headers; for JSON the body too, and
 * for a stream each event as it is read. Throws what is invalid; for a stream it calls
 * `complain`.
 */
export async function checkedAnswer(
  request: Request,
  response: Response,
  complain: (fault: string) => void,
): Promise<Response> {
  const operation = operationOf(request);
  if (!operation) return response;
  const { status, headers } = response;
  const what = `${request.method} ${new URL(request.url).pathname}: ${status}`;
  const place = [...operation, "responses", String(status)];
  const described = at(...place);
  assert.ok(described, `${what} is not in the API document`);
  checkHeaders(headers, place, what);
  const type = (headers.get("content-type") ?? "").split(";")[0] ?? "";
  if (!response.body || !described.content) {
    assert.equal(Boolean(response.body), Boolean(described.content), `${what}: a body, or none`);
    return response;
  }
  assert.ok(described.content[type], `${what} of type '${type}' is not in the API document`);
  // An endless body is not read before its reader reads it.
  if (endless.includes(type)) return response;
  const validator = validatorAt(...place, "content", type, "schema");
  if (type === "text/event-stream") {
    return new Response(
      checkedEvents(response.body, (data) => {
        const fault = data === "[DONE]" ? "" : faultsOf(validator, JSON.parse(data));
        if (fault) complain(`${what}, an event: ${fault}`);
      }),
      { status, headers },
    );
  }
  // For other content the document states nothing more; a test may cut such a stream off.
  if (type !== "application/json" || headers.has("x-service-unparsed")) return response;
  const bytes = await response.bytes();
  const fault = faultsOf(validator, JSON.parse(await textOf(bytes, headers)));
  assert.equal(fault, "", `${what}: ${fault}`);
  return new Response(bytes, { status, headers });
}

async function textOf(bytes: Uint8Array<ArrayBuffer>, headers: Headers): Promise<string> {
  if (headers.get("content-encoding") !== "gzip") return new TextDecoder().decode(bytes);
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return await new Response(plain).text();
}

/** Returns what is invalid in a delivery for the document's webhooks, or nothing. */
export function faultOfDelivery(headers: Record<string, string>, body: Body): string {
  const place = ["webhooks", String(body.event?.type), "post"];
  const described = at(...place);
  if (!described) return `${body.event?.type} is not in the API document`;
  const bodyPlace = [...place, "requestBody", "content", "application/json", "schema"];
  const faults = [
    faultsOf(validatorAt(...bodyPlace), body),
    ...described.parameters.map(resolved).map(({ name, schema }: Body) =>
      faultsOf(apiDocument().ajv.compile(schema), headers[name.toLowerCase()])
    ),
  ].filter(Boolean);
  return faults.length > 0 ? `${body.event.type}: ${faults.join("\n")}` : "";
}

function checkHeaders(headers: Headers, place: string[], what: string): void {
  const known = Object.keys(at(...place, "headers") ?? {});
  for (const header of headers.keys()) {
    const isKnown = known.some((one) => one.toLowerCase() === header);
    assert.ok(isKnown || !telling.test(header), `${what}: '${header}' is not in the API document`);
  }
  for (const header of known) {
    const described = at(...place, "headers", header);
    const value = headers.get(header);
    if (value === null) assert.ok(!described?.required, `${what} lacks '${header}'`);
    else {
      const fault = faultsOf(apiDocument().ajv.compile(described?.schema), value);
      assert.equal(fault, "", `${what}, '${header}': ${fault}`);
    }
  }
}

/** Passes a stream on read by read, and shows its events; nothing is read in advance. */
function checkedEvents(
  body: ReadableStream<Uint8Array>,
  show: (data: string) => void,
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const parser = createParser({ onEvent: ({ data }) => show(data) });
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await reader.read();
      if (done) return controller.close();
      parser.feed(decoder.decode(value, { stream: true }));
      controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  }, { highWaterMark: 0 });
}
