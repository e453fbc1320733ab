import type { EndpointAuth, EndpointDoc } from "../base/endpoint_doc.ts";
import { isObject, type Json, type JsonObject } from "../base/json.ts";
import { curlExample, exampleBody, exampleHeaders, exampleUrl } from "./curl.ts";
import type { DescribedEndpoint } from "./described.ts";

/** An example request of an endpoint in one language. */
interface RequestExample {
  language: "curl" | "JavaScript" | "Python";
  text: string;
}

/** Returns an operation's request in each language. */
export function requestExamples(given: DescribedEndpoint): RequestExample[] {
  return [
    { language: "curl", text: curlExample(given.operation, given) },
    { language: "JavaScript", text: javaScriptExample(given) },
    { language: "Python", text: pythonExample(given) },
  ];
}

/** How OpenAI's clients call a path: the method below the client, the same in both languages. */
const openAiCalls: Readonly<Record<string, string>> = {
  createChatCompletion: "chat.completions.create",
  createCompletion: "completions.create",
  createResponse: "responses.create",
  createEmbedding: "embeddings.create",
  createModeration: "moderations.create",
  createImage: "images.generate",
  listModels: "models.list",
};

const anthropicCalls: Readonly<Record<string, string>> = {
  createMessage: "messages.create",
  createTokenCount: "messages.countTokens",
};

const keyNames: Record<EndpointAuth, string | null> = {
  chat: "API_KEY",
  money: "API_KEY",
  webhooks: "API_KEY",
  operator: "ADMIN_KEY",
  metrics: "METRICS_TOKEN",
  anyone: null,
};

function javaScriptExample(given: DescribedEndpoint): string {
  const { operation, baseUrl, method } = given;
  const fields = bodyFields(operation);
  const args = fields === null ? "" : JSON.stringify(fields, null, 2);
  const openAi = openAiCalls[operation.operationId];
  if (openAi !== undefined) {
    return [
      'import OpenAI from "openai";',
      "",
      "const client = new OpenAI({",
      `  baseURL: ${JSON.stringify(`${baseUrl}/v1`)},`,
      "  apiKey: process.env.API_KEY,",
      "});",
      `const result = await client.${openAi}(${args});`,
    ].join("\n");
  }
  const anthropic = anthropicCalls[operation.operationId];
  if (anthropic !== undefined) {
    return [
      'import Anthropic from "@anthropic-ai/sdk";',
      "",
      "const client = new Anthropic({",
      `  baseURL: ${JSON.stringify(baseUrl)},`,
      "  apiKey: process.env.API_KEY,",
      "});",
      `const result = await client.${anthropic}(${args});`,
    ].join("\n");
  }
  const key = keyNames[operation.access];
  const headers = [
    ...(key === null ? [] : [`    Authorization: \`Bearer \${process.env.${key}}\`,`]),
    ...exampleHeaders(given).map(([name, value]) => `    "${name}": ${JSON.stringify(value)},`),
    ...(fields !== null && !isForm(operation) ? ['    "Content-Type": "application/json",'] : []),
  ];
  const options = [
    ...(method === "GET" ? [] : [`  method: "${method}",`]),
    ...(headers.length === 0 ? [] : ["  headers: {", ...headers, "  },"]),
    ...(fields === null
      ? []
      : isForm(operation)
      ? ["  body: form,"]
      : [`  body: JSON.stringify(${indented(args, "  ")}),`]),
  ];
  const call = options.length === 0
    ? `const response = await fetch(${JSON.stringify(exampleUrl(given))});`
    : [`const response = await fetch(${JSON.stringify(exampleUrl(given))}, {`, ...options, "});"]
      .join("\n");
  return [...formLines(operation), call, ...readLines(given)].join("\n");
}

/** The lines that make a form with a file. */
function formLines(operation: EndpointDoc): string[] {
  if (!isForm(operation)) return [];
  const fields = Object.entries(bodyFields(operation) ?? {});
  const values = fields.map(([name, value]) => {
    const file = fileOf(value);
    return file === null
      ? `form.append("${name}", ${JSON.stringify(String(value))});`
      : `form.append("${name}", await openAsBlob(${JSON.stringify(file)}), ${
        JSON.stringify(file)
      });`;
  });
  return ['import { openAsBlob } from "node:fs";', "", "const form = new FormData();", ...values];
}

function readLines({ operation }: DescribedEndpoint): string[] {
  const types = Object.values(operation.answers).flatMap(({ content }) => Object.keys(content));
  const [type] = types;
  if (type === undefined) return [];
  return type === "application/json"
    ? ["const result = await response.json();"]
    : ["const result = await response.blob();"];
}

function pythonExample(given: DescribedEndpoint): string {
  const { operation, baseUrl, method } = given;
  const fields = bodyFields(operation);
  const openAi = openAiCalls[operation.operationId];
  const anthropic = anthropicCalls[operation.operationId];
  const client = openAi !== undefined ? "OpenAI" : anthropic !== undefined ? "Anthropic" : null;
  if (client !== null) {
    const url = openAi !== undefined ? `${baseUrl}/v1` : baseUrl;
    const call = openAi ?? anthropic?.replace("countTokens", "count_tokens");
    const args = Object.entries(fields ?? {}).map(([name, value]) =>
      `    ${name}=${indented(pythonValue(value), "    ")},`
    );
    return [
      "import os",
      `from ${client.toLowerCase()} import ${client}`,
      "",
      `client = ${client}(base_url=${JSON.stringify(url)}, api_key=os.environ["API_KEY"])`,
      ...(args.length === 0
        ? [`result = client.${call}()`]
        : [`result = client.${call}(`, ...args, ")"]),
    ].join("\n");
  }
  const key = keyNames[operation.access];
  const headers = [
    ...(key === null ? [] : [`        "Authorization": f"Bearer {os.environ['${key}']}",`]),
    ...exampleHeaders(given).map(([name, value]) => `        "${name}": ${JSON.stringify(value)},`),
  ];
  return [
    ...(key === null ? [] : ["import os"]),
    "import requests",
    "",
    `response = requests.${method.toLowerCase()}(`,
    `    ${JSON.stringify(exampleUrl(given))},`,
    ...(headers.length === 0 ? [] : ["    headers={", ...headers, "    },"]),
    ...pythonBody(operation, fields),
    ")",
    "result = response.json()",
  ].join("\n");
}

function pythonBody(operation: EndpointDoc, fields: JsonObject | null): string[] {
  if (fields === null) return [];
  if (!isForm(operation)) return [`    json=${indented(pythonValue(fields), "    ")},`];
  const files = Object.entries(fields).filter(([, value]) => fileOf(value) !== null);
  const others = Object.entries(fields).filter(([, value]) => fileOf(value) === null);
  const opened = files.map(([name, value]) =>
    `"${name}": open(${JSON.stringify(fileOf(value))}, "rb")`
  );
  return [
    `    files={${opened.join(", ")}},`,
    `    data=${indented(pythonValue(Object.fromEntries(others)), "    ")},`,
  ];
}

/** A file's name, where a form's value is one as curl writes it. */
function fileOf(value: Json | undefined): string | null {
  return typeof value === "string" && value.startsWith("@") ? value.slice(1) : null;
}

function isForm({ body }: EndpointDoc): boolean {
  return body?.type !== undefined;
}

function bodyFields({ body }: EndpointDoc): JsonObject | null {
  if (!body) return null;
  const fields: Json = JSON.parse(JSON.stringify(exampleBody(body) ?? {}));
  return isObject(fields) ? fields : {};
}

/** A JSON value as Python writes it. */
function pythonValue(value: Json, indent = ""): string {
  const inner = `${indent}    `;
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) {
    if (value.length === 0) return "[]";
    return `[\n${value.map((one) => `${inner}${pythonValue(one, inner)},\n`).join("")}${indent}]`;
  }
  if (isObject(value)) {
    const members = Object.entries(value);
    if (members.length === 0) return "{}";
    const lines = members.map(([name, one]) =>
      `${inner}${JSON.stringify(name)}: ${pythonValue(one ?? null, inner)},\n`
    );
    return `{\n${lines.join("")}${indent}}`;
  }
  return JSON.stringify(value);
}

function indented(text: string, indent: string): string {
  return text.replaceAll("\n", `\n${indent}`);
}
