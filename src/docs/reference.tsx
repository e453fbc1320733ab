/** @jsxImportSource @hono/hono/jsx */
import { isObject, type Json, type JsonObject } from "../base/json.ts";
import type { Operations } from "../base/operation.ts";
import { type ApiDocument, pathOf } from "./document.ts";
import { type DescribedOperation, OperationSection } from "./operation.tsx";
import { type Chapter, DocsPage } from "./page.tsx";
import { fieldsOf } from "./schema_text.ts";
import { tags } from "./tags.ts";
import { Fields, Value, Words } from "./words.tsx";

/** The reference of every operation, event and schema, on one page. */
export function Reference(
  { operations, document, base }: {
    operations: Operations;
    document: ApiDocument;
    base: string;
  },
) {
  // As it is served: what the page shows and what machines read is one text.
  const served: JsonObject = JSON.parse(JSON.stringify(document));
  const described = describedOperations(operations, served);
  const byTag = tags.map((tag) => ({
    ...tag,
    id: `chapter-${tag.name.toLowerCase()}`,
    operations: described.filter(({ operation }) => operation.tag === tag.name),
  })).filter(({ operations }) => operations.length > 0);
  const events = entriesOf(served.webhooks);
  const schemas = entriesOf(objectIn(served.components).schemas);
  const chapters: Chapter[] = [
    ...byTag.map(({ name, id, operations }) => ({
      title: name,
      id,
      entries: operations.map(({ operation: { operationId, summary } }) => ({
        id: operationId,
        title: summary,
      })),
    })),
    { title: "Events", id: "events", entries: events.map(([type]) => entry("event", type)) },
    { title: "Schemas", id: "schemas", entries: schemas.map(([name]) => entry("schema", name)) },
  ];
  return (
    <DocsPage title="Farebox API" chapters={chapters} base={base}>
      <h1>Farebox API</h1>
      <p>
        <Words text={document.info.description ?? ""} />
      </p>
      <p>
        For machines: <a href={`${base}/openapi.json`}>OpenAPI 3.1</a>.
      </p>
      {byTag.map(({ name, id, description, operations }) => (
        <section aria-labelledby={id}>
          <h2 id={id}>{name}</h2>
          <p>{description}</p>
          {operations.map((one) => <OperationSection {...one} />)}
        </section>
      ))}
      <Events events={events} />
      <Schemas schemas={schemas} />
    </DocsPage>
  );
}

function entry(kind: string, name: string) {
  return { id: `${kind}-${name}`, title: name };
}

function describedOperations(operations: Operations, served: JsonObject): DescribedOperation[] {
  const [server] = Array.isArray(served.servers) ? served.servers : [];
  const baseUrl = String(objectIn(server).url ?? "");
  const paths = objectIn(served.paths);
  return Object.entries(operations).flatMap(([address, methods]) =>
    Object.entries(methods).map(([method, operation]) => {
      const path = pathOf(address, operation);
      const found = objectIn(objectIn(paths[path])[method.toLowerCase()]);
      const parameters = Array.isArray(found.parameters) ? found.parameters : [];
      return {
        operation,
        method,
        path,
        baseUrl,
        described: { ...found, responses: withHeaders(found.responses, served) },
        parameters: parameters.map((one) => inPlace(one, served)),
      };
    })
  );
}

/** The answers, with the headers that they refer to in place. */
function withHeaders(responses: Json | undefined, served: JsonObject): JsonObject {
  return Object.fromEntries(
    entriesOf(responses).map(([status, answer]) => {
      const headers = entriesOf(answer.headers).map(([name, one]) => [name, inPlace(one, served)]);
      return [status, { ...answer, headers: Object.fromEntries(headers) }];
    }),
  );
}

function inPlace(part: Json, served: JsonObject): JsonObject {
  const { $ref } = objectIn(part);
  if (typeof $ref !== "string") return objectIn(part);
  return $ref.slice(2).split("/").reduce<JsonObject>((at, name) => objectIn(at[name]), served);
}

function objectIn(value: Json | undefined): JsonObject {
  return isObject(value) ? value : {};
}

function entriesOf(value: Json | undefined): [string, JsonObject][] {
  return Object.entries(objectIn(value)).map(([name, one]) => [name, objectIn(one)]);
}

const firstEvent =
  "Each delivery is a POST in JSON with two keys: `delivery`, which try it is, and " +
  "`event`. Check `X-Service-Signature` over the raw body before you believe it, and answer 2xx.";

function Events({ events }: { events: [string, JsonObject][] }) {
  const [first] = events;
  const headers = objectIn(first?.[1].post).parameters;
  const properties = (Array.isArray(headers) ? headers : []).map((one) => {
    const { name, schema, description } = objectIn(one);
    return [String(name), { ...objectIn(schema), description: description ?? "" }] as const;
  });
  return (
    <section aria-labelledby="events">
      <h2 id="events">Events</h2>
      <p>
        <Words text={firstEvent} />
      </p>
      <Fields fields={fieldsOf({ properties: Object.fromEntries(properties) })} />
      {events.map(([type, item]) => <EventSection type={type} post={objectIn(item.post)} />)}
    </section>
  );
}

function EventSection({ type, post }: { type: string; post: JsonObject }) {
  const body = objectIn(objectIn(objectIn(post.requestBody).content)["application/json"]);
  const event = objectIn(objectIn(objectIn(body.schema).properties).event);
  const { data } = objectIn(event.properties);
  const { value } = objectIn(objectIn(body.examples).event);
  return (
    <section>
      <h3 id={`event-${type}`}>{type}</h3>
      <p>
        <Words text={String(post.summary)} />
      </p>
      <h4>
        In <code>data</code>
      </h4>
      <Fields fields={fieldsOf(data)} />
      <details>
        <summary>Example: {type}</summary>
        <Value value={value ?? null} />
      </details>
    </section>
  );
}

function Schemas({ schemas }: { schemas: [string, JsonObject][] }) {
  return (
    <section aria-labelledby="schemas">
      <h2 id="schemas">Schemas</h2>
      {schemas.map(([name, schema]) => (
        <section>
          <h3 id={`schema-${name}`}>{name}</h3>
          {typeof schema.description === "string"
            ? (
              <p>
                <Words text={schema.description} />
              </p>
            )
            : null}
          <Fields fields={fieldsOf(schema)} />
        </section>
      ))}
    </section>
  );
}
