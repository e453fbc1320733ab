/** @jsxImportSource @hono/hono/jsx */
import { isObject, type Json } from "../base/json.ts";
import type { EndpointAuth, ErrorDoc } from "../base/endpoint_doc.ts";
import { type DescribedEndpoint, entriesIn } from "./described.ts";
import { CodeBlock } from "../pages/parts.tsx";
import { endpointErrors } from "./errors.ts";
import { requestExamples } from "./examples.ts";
import { schemaFields, schemaName, schemaType } from "./schema_text.ts";
import { DocFields, DocText, DocType, DocValue } from "./text.tsx";

const authDescriptions: Record<EndpointAuth, string> = {
  chat: "A project's key with the scope `chat`.",
  money: "A project's key with the scope `money`.",
  webhooks: "A project's key with the scope `webhooks`.",
  operator: "The operator's `ADMIN_KEY`.",
  metrics: "The server's `METRICS_TOKEN`.",
  anyone: "No key.",
};

/** Returns the page of an operation, as a relative address. */
type PageOf = (operationId: string) => string;

/** Shows one endpoint: what it does at the left, and how it is called at the right. */
export function EndpointSection(given: DescribedEndpoint & { pageOf: PageOf }) {
  const { operation, described } = given;
  const { operationId, summary, description, variantOf } = operation;
  return (
    <section class="operation" aria-labelledby={operationId}>
      <div>
        <h2 id={operationId}>{summary}</h2>
        <Address {...given} />
        {(description?.split("\n\n") ?? []).map((paragraph) => (
          <p>
            <DocText text={paragraph} />
          </p>
        ))}
        <p>
          Key: <DocText text={authDescriptions[operation.access]} />
        </p>
        {variantOf === undefined
          ? (
            <>
              <Parameters {...given} />
              <Body {...given} />
              <Responses responses={described.responses} />
              <Errors cases={endpointErrors(operation)} />
            </>
          )
          : (
            <p>
              Everything else is as in{" "}
              <a href={`${given.pageOf(variantOf)}#${variantOf}`}>the operation that it repeats</a>.
            </p>
          )}
      </div>
      <div class="examples">
        <RequestTabs {...given} />
        {variantOf === undefined ? <ResponseExamples responses={described.responses} /> : null}
      </div>
    </section>
  );
}

function Address({ method, path }: DescribedEndpoint) {
  return (
    <p class="address">
      <span class="method">{method}</span> <code>{path}</code>
    </p>
  );
}

/** The request in each language; a radio button chooses, so that no script is needed. */
function RequestTabs(given: DescribedEndpoint) {
  const { operationId } = given.operation;
  const examples = requestExamples(given);
  return (
    <fieldset class="code-tabs">
      <legend class="hidden">Language of the example</legend>
      {examples.map(({ language }, at) => (
        <>
          <input
            type="radio"
            name={`language-${operationId}`}
            id={`${operationId}-${language}`}
            checked={at === 0}
          />
          <label for={`${operationId}-${language}`}>{language}</label>
        </>
      ))}
      <div class="panels">
        {examples.map(({ language, text }) => (
          <div data-language={language}>
            <CodeBlock id={`${operationId}-${language}-text`} text={text} />
          </div>
        ))}
      </div>
    </fieldset>
  );
}

/** An example of each kind of response; the first is open. */
function ResponseExamples({ responses }: { responses: Json | undefined }) {
  const examples = goodResponses(responses).flatMap(([status, answer]) =>
    entriesIn(answer.content).flatMap(([type, content]) =>
      entriesIn(content.examples).map(([name, { value }]) => ({ status, type, name, value }))
    )
  );
  return (
    <>
      {examples.map(({ status, type, name, value }, at) => (
        <details open={at === 0}>
          <summary>
            Response {status}: {name}
            {type === "application/json" ? "" : `, ${type}`}
          </summary>
          <DocValue value={value ?? null} />
        </details>
      ))}
    </>
  );
}

function goodResponses(responses: Json | undefined) {
  return entriesIn(responses).filter(([status]) => Number(status) < 400);
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
      <h3>Parameters</h3>
      <DocFields fields={fields} />
    </>
  );
}

function Body({ body, operation }: DescribedEndpoint) {
  if (body === null) return null;
  return (
    <>
      <h3>{operation.body?.optional ? "Body (optional)" : "Body"}</h3>
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
  return (
    <>
      {goodResponses(responses).map(([status, answer]) => (
        <>
          <h3>Response {status}</h3>
          <p>
            <DocText text={String(answer.description)} />
          </p>
          <Headers headers={answer.headers} />
          {entriesIn(answer.content).map(([type, content]) => (
            <>
              <p>
                As <code>{type}</code>:
              </p>
              <Schema schema={content.schema} />
            </>
          ))}
        </>
      ))}
    </>
  );
}

function Headers({ headers }: { headers: Json | undefined }) {
  const described = entriesIn(headers).flatMap(([name, { schema, description }]) =>
    isObject(schema) ? [[name, { ...schema, description: description ?? "" }] as const] : []
  );
  return <DocFields fields={schemaFields({ properties: Object.fromEntries(described) })} />;
}

function Errors({ cases }: { cases: readonly ErrorDoc[] }) {
  const sorted = [...cases].sort((one, other) => one.status - other.status);
  return (
    <>
      <h3>Errors</h3>
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
