import assert from "node:assert/strict";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { createParser } from "eventsource-parser";
import { createDocument } from "../../src/docs/document.ts";
import { apiDoc } from "../../src/api_doc.ts";
import type { Body } from "./world.ts";

/** The document's name for the validator. */
const name = "api";
const methods = ["get", "post", "patch", "delete"];
/** Headers that tell a caller something. */
const telling =
  /^(x-service-|x-ratelimit-|idempoten|retry-after$|www-authenticate$|x-next-cursor$)/;
/** Types of answers of any length whose parts have no schema of their own. */
const endless = ["application/jsonl", "application/octet-stream"];

let made: { document: Body; ajv: Ajv2020; addresses: Address[] } | null = null;

interface Address {
  path: string;
  pattern: RegExp;
}

/**
 * The API document of a server at an address of its own, and what validates against it; made once.
 */
export function apiDocument() {
  if (made) return made;
  const document: Body = JSON.parse(
    JSON.stringify(createDocument(apiDoc, { baseUrl: "https://farebox.test" })),
  );
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateSchema: false });
  addFormats.default(ajv);
  ajv.addSchema(document, name);
  const addresses = Object.keys(document.paths).map((path) => ({ path, pattern: patternOf(path) }));
  // What names a user is matched after what is written out.
  addresses.sort((one, other) => one.path.split("{").length - other.path.split("{").length);
  return made = { document, ajv, addresses };
}

/** A path of the document as it matches a request's; a model's name has slashes. */
function patternOf(path: string): RegExp {
  const source = path.replaceAll("{model}", ".+").replace(/\{\w+\}/g, "[^/]+");
  return new RegExp(`^${source}$`);
}

/** The part of the document at a pointer made of these names. */
export function at(...names: string[]): Body | undefined {
  let part: Body | undefined = apiDocument().document;
  for (const one of names) part = part?.[one];
  return part && resolved(part);
}

/** A part of the document, or the one that it refers to. */
export function resolved(part: Body): Body {
  if (typeof part.$ref !== "string") return part;
  return at(...part.$ref.slice(2).split("/")) ?? assert.fail(part.$ref);
}

const validators = new Map<string, ValidateFunction>();

/** The validator of the schema at a pointer made of these names. */
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

/** What is wrong with a value for a schema, or nothing. */
export function faultsOf(validator: ValidateFunction, value: unknown): string {
  if (validator(value)) return "";
  const faults = (validator.errors ?? []).map(({ instancePath, message, params }) =>
    `${instancePath || "the whole"} ${message} ${JSON.stringify(params)}`
  );
  return `${faults.join("\n")}\nin ${JSON.stringify(value)?.slice(0, 2_000)}`;
}

/** Where the document has the operation of a request; null for one that it does not know. */
export function operationOf({ method, url }: Request): string[] | null {
  const path = new URL(url).pathname.replace(/\/{2,}/g, "/").replace(/(.)\/$/, "$1");
  const found = apiDocument().addresses.find(({ pattern }) => pattern.test(path));
  const verb = method.toLowerCase();
  if (!found || !methods.includes(verb) || !at("paths", found.path, verb)) return null;
  return ["paths", found.path, verb];
}

/**
 * The same answer, whose status and headers are as the document says; of JSON the body too, and of
 * a stream each event as its reader takes it. Throws what is wrong; of a stream it tells
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
  // Nothing is read of what may be without end before it is asked for.
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
  // Of what is no JSON the document says nothing more; it may be a stream that a test cuts off.
  if (type !== "application/json") return response;
  const bytes = await response.bytes();
  const fault = faultsOf(validator, JSON.parse(new TextDecoder().decode(bytes)));
  assert.equal(fault, "", `${what}: ${fault}`);
  return new Response(bytes, { status, headers });
}

/** What is wrong with a delivery for the document's webhooks, or nothing. */
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

/**
 * Passes a stream on read by read, and shows its events; nothing is read before it is asked for.
 */
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
