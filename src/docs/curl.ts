import { isObject, type Json, type JsonObject } from "../base/json.ts";
import type { DocContent, EndpointAuth, EndpointDoc } from "../base/endpoint_doc.ts";

/** Returns an endpoint's request as a command to paste, with an example's body. */
export function curlExample(
  operation: EndpointDoc,
  { method, path, baseUrl, parameters }: {
    method: string;
    path: string;
    baseUrl: string;
    parameters: readonly JsonObject[];
  },
): string {
  const lines = [`curl -s ${shellQuote(exampleUrl({ baseUrl, path, parameters }))}`];
  if (method !== "GET" && !(method === "POST" && operation.body)) lines.push(`-X ${method}`);
  const key = keyNames[operation.access];
  if (key !== null) lines.push(`-H "Authorization: Bearer $${key}"`);
  for (const [name, value] of exampleHeaders({ operation, parameters })) {
    lines.push(`-H ${shellQuote(`${name}: ${value}`)}`);
  }
  if (operation.body?.type) {
    const fields = exampleBody(operation.body);
    for (const [name, value] of Object.entries(isObject(fields) ? fields : {})) {
      lines.push(`-F ${shellQuote(`${name}=${value}`)}`);
    }
  } else if (operation.body) {
    lines.push(`-H "Content-Type: application/json"`);
    lines.push(`-d ${shellQuote(JSON.stringify(exampleBody(operation.body), null, 2))}`);
  }
  return lines.join(" \\\n  ");
}

const keyNames: Record<EndpointAuth, string | null> = {
  chat: "API_KEY",
  money: "API_KEY",
  webhooks: "API_KEY",
  operator: "ADMIN_KEY",
  metrics: "METRICS_TOKEN",
  anyone: null,
};

/** An endpoint's address, with examples for what it needs. */
export function exampleUrl({ baseUrl, path, parameters }: {
  path: string;
  baseUrl: string;
  parameters: readonly JsonObject[];
}): string {
  return baseUrl + fillPath(path, parameters);
}

/** The headers of an example besides its key: those that its body does not make superfluous. */
export function exampleHeaders({ operation, parameters }: {
  operation: EndpointDoc;
  parameters: readonly JsonObject[];
}): [string, string][] {
  return examplesIn("header", parameters).filter(([name]) =>
    name !== "X-Service-User" || !namesUser(operation.body)
  );
}

function fillPath(path: string, parameters: readonly JsonObject[]): string {
  const named = new Map(examplesIn("query", parameters));
  const query = named.size > 0 ? `?${new URLSearchParams([...named])}` : "";
  return path.replace(/\{(\w+)\}/g, (_, name) => samples[name] ?? `YOUR_${name}`) + query;
}

const samples: Record<string, string> = { user: "ada", model: "gpt-4o-mini" };

function examplesIn(place: string, parameters: readonly JsonObject[]): [string, string][] {
  return parameters.flatMap(({ in: where, name, schema }) => {
    const example = isObject(schema) ? schema.example : undefined;
    return where === place && example !== undefined ? [[String(name), String(example)]] : [];
  });
}

/** Whether a body names its user, so that no header has to. */
function namesUser(body: DocContent | undefined): boolean {
  const example = body && exampleBody(body);
  return typeof example === "object" && example !== null && "user" in example;
}

/** The first example of a body. */
export function exampleBody({ examples }: DocContent): unknown {
  return Object.values(examples)[0];
}

/** Quotes a word for a POSIX shell. */
function shellQuote(text: string | Json): string {
  return `'${String(text).replaceAll("'", "'\\''")}'`;
}
