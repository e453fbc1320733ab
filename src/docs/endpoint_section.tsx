/** @jsxImportSource @hono/hono/jsx */
import { isObject, type Json, type JsonObject } from "../base/json.ts";
import type { EndpointAuth, EndpointDoc, ErrorDoc } from "../base/endpoint_doc.ts";
import { curlExample } from "./curl.ts";
import { endpointErrors } from "./errors.ts";
import { schemaFields, schemaName, schemaType } from "./schema_text.ts";
import { DocCode, DocFields, DocText, DocType, DocValue } from "./text.tsx";

/** An endpoint, and its description in the document. */
export interface DescribedEndpoint {
  operation: EndpointDoc;
  method: string;
  path: string;
  baseUrl: string;
  /** As in the document, with references resolved. */
  described: JsonObject;
  parameters: readonly JsonObject[];
  /** The schema of its body. */
  body: JsonObject | null;
}

const authDescriptions: Record<EndpointAuth, string> = {
  chat: "A project's key with the scope `chat`.",
  money: "A project's key with the scope `money`.",
  webhooks: "A project's key with the scope `webhooks`.",
  operator: "The operator's `ADMIN_KEY`.",
  metrics: "The server's `METRICS_TOKEN`.",
  anyone: "No key.",
};

/** Shows everything about one endpoint. */
export function EndpointSection(given: DescribedEndpoint) {
  const { operation, method, path, described } = given;
  const { operationId, summary, description, access } = operation;
  return (
    <section>
      <h3 id={operationId}>{summary}</h3>
      <p class="address">
        <code>
          <strong>{method}</strong> {path}
        </code>
      </p>
      {description === undefined ? null : (
        <p>
          <DocText text={description} />
        </p>
      )}
      <p>
        Key: <DocText text={authDescriptions[access]} />
      </p>
      <Parameters {...given} />
      <Body {...given} />
      <h4>Example request</h4>
      <DocCode text={curlExample(operation, given)} />
      <Responses responses={described.responses} />
      <Errors cases={endpointErrors(operation)} />
    </section>
  );
}

const parameterLocations = { path: "in the path", query: "in the query", header: "header" };

function Parameters({ parameters }: DescribedEndpoint) {
  const fields = parameters.flatMap(({ name, in: place, required, schema, description }) => {
    const properties = { value: isObject(schema) ? { ...schema, description } : {} };
    const [field] = schemaFields({ properties, required: required ? ["value"] : [] } as const);
    const where = Object.entries(parameterLocations).find(([one]) => one === place)?.[1] ?? "";
    return field
      ? [{ ...field, name: String(name), type: [...field.type, { text: `, ${where}` }] }]
      : [];
  });
  if (fields.length === 0) return null;
  return (
    <>
      <h4>Parameters</h4>
      <DocFields fields={fields} />
    </>
  );
}

function Body({ body, operation }: DescribedEndpoint) {
  if (body === null) return null;
  return (
    <>
      <h4>{operation.body?.optional ? "Body (optional)" : "Body"}</h4>
      <Schema schema={body} />
    </>
  );
}

/** A schema by its name, or by its fields where it has none. */
function Schema({ schema }: { schema: Json | undefined }) {
  const fields = schemaFields(schema);
  if (fields.length > 0 && isObject(schema) && schemaName(schema.$ref) === null) {
    return <DocFields fields={fields} />;
  }
  return (
    <p>
      <DocType parts={schemaType(schema)} />
    </p>
  );
}

function Responses({ responses }: { responses: Json | undefined }) {
  const good = Object.entries(isObject(responses) ? responses : {})
    .filter(([status]) => Number(status) < 400);
  return (
    <>
      {good.map(([status, answer]) => {
        if (!isObject(answer)) return null;
        const contents = Object.entries(isObject(answer.content) ? answer.content : {});
        return (
          <>
            <h4>Response {status}</h4>
            <p>
              <DocText text={String(answer.description)} />
            </p>
            <Headers headers={answer.headers} />
            {contents.map(([type, content]) => (
              <Content key={type} type={type} content={content} />
            ))}
          </>
        );
      })}
    </>
  );
}

function Headers({ headers }: { headers: Json | undefined }) {
  const described = Object.entries(isObject(headers) ? headers : {}).flatMap(([name, header]) =>
    isObject(header) && isObject(header.schema)
      ? [[name, { ...header.schema, description: header.description ?? "" }] as const]
      : []
  );
  return <DocFields fields={schemaFields({ properties: Object.fromEntries(described) })} />;
}

function Content({ type, content }: { type: string; content: Json }) {
  if (!isObject(content)) return null;
  const examples = Object.entries(isObject(content.examples) ? content.examples : {});
  return (
    <>
      <p>
        As <code>{type}</code>:
      </p>
      <Schema schema={content.schema} />
      {examples.map(([name, example]) => (
        <details>
          <summary>Example: {name}</summary>
          <DocValue value={isObject(example) ? example.value ?? null : null} />
        </details>
      ))}
    </>
  );
}

function Errors({ cases }: { cases: readonly ErrorDoc[] }) {
  const sorted = [...cases].sort((one, other) => one.status - other.status);
  return (
    <>
      <h4>Errors</h4>
      <table>
        <thead>
          <tr>
            <th scope="col">Status</th>
            <th scope="col">Code</th>
            <th scope="col">When</th>
          </tr>
        </thead>
        <tbody>
          {sorted.map(({ status, code, when }) => (
            <tr>
              <td>{status}</td>
              <td>
                {typeof code === "string" ? <code>{code}</code> : code === null ? "null" : "any"}
              </td>
              <td>
                <DocText text={when} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}
