/** @jsxImportSource @hono/hono/jsx */
import { isObject, type Json, type JsonObject } from "../base/json.ts";
import type { EndpointDocs } from "../base/endpoint_doc.ts";
import { type ApiDocument, docTags, openApiPath } from "./document.ts";
import { type DescribedEndpoint, EndpointSection } from "./endpoint_section.tsx";
import { type DocsChapter, DocsPage } from "./page.tsx";
import { schemaFields } from "./schema_text.ts";
import { DocFields, DocText, DocValue } from "./text.tsx";

/** The reference of all endpoints, events and schemas, on one page. */
export function ReferencePage(
  { operations, document, base }: {
    operations: EndpointDocs;
    document: ApiDocument;
    base: string;
  },
) {
  // Serialized as it is served: the page and the document that machines read are the same.
  const served: JsonObject = JSON.parse(JSON.stringify(document));
  const described = describedOperations(operations, served);
  const byTag = docTags.map((tag) => ({
    ...tag,
    id: `chapter-${tag.name.toLowerCase()}`,
    operations: described.filter(({ operation }) => operation.tag === tag.name),
  })).filter(({ operations }) => operations.length > 0);
  const events = entriesOf(served.webhooks);
  const schemas = entriesOf(objectIn(served.components).schemas);
  const chapters: DocsChapter[] = [
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
        <DocText text={document.info.description ?? ""} />
      </p>
      <p>
        For machines: <a href={`${base}/openapi.json`}>OpenAPI 3.1</a>.
      </p>
      {byTag.map(({ name, id, description, operations }) => (
        <section aria-labelledby={id}>
          <h2 id={id}>{name}</h2>
          <p>{description}</p>
          {operations.map((one) => <EndpointSection key={one.operation.operationId} {...one} />)}
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

function describedOperations(operations: EndpointDocs, served: JsonObject): DescribedEndpoint[] {
  const [server] = Array.isArray(served.servers) ? served.servers : [];
  const baseUrl = String(objectIn(server).url ?? "");
  const paths = objectIn(served.paths);
  return Object.entries(operations).flatMap(([address, methods]) =>
    Object.entries(methods).map(([method, operation]) => {
      const path = openApiPath(address, operation);
      const found = objectIn(objectIn(paths[path])[method.toLowerCase()]);
      const parameters = Array.isArray(found.parameters) ? found.parameters : [];
      const type = operation.body?.type ?? "application/json";
      const body = objectIn(objectIn(objectIn(found.requestBody).content)[type]);
      return {
        operation,
        method,
        path,
        baseUrl,
        described: { ...found, responses: withHeaders(found.responses, served) },
        // Parameters that every request may have are shown once, at the top of the page.
        parameters: parameters.map((one) => inPlace(one, served))
          .filter(({ name }) => name !== "X-Request-Id"),
        body: body.schema === undefined ? null : inPlace(body.schema, served),
      };
    })
  );
}

/** Returns the responses with references to headers resolved. */
function withHeaders(responses: Json | undefined, served: JsonObject): JsonObject {
  return Object.fromEntries(
    entriesOf(responses).map(([status, answer]) => {
      const headers = entriesOf(answer.headers).map(([name, one]) => [name, inPlace(one, served)]);
      const own = headers.filter(([name]) => name !== "X-Request-Id");
      return [status, { ...answer, headers: Object.fromEntries(own) }];
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
  "Each delivery is a POST in JSON with two keys: `delivery`, which describes the attempt, and " +
  "`event`. Verify `X-Service-Signature` over the raw body before you trust it, and respond with 2xx.";

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
        <DocText text={firstEvent} />
      </p>
      <DocFields fields={schemaFields({ properties: Object.fromEntries(properties) })} />
      {events.map(([type, item]) => (
        <EventSection key={type} type={type} post={objectIn(item.post)} />
      ))}
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
        <DocText text={String(post.summary)} />
      </p>
      <h4>
        In <code>data</code>
      </h4>
      <DocFields fields={schemaFields(data)} />
      <details>
        <summary>Example: {type}</summary>
        <DocValue value={value ?? null} />
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
                <DocText text={schema.description} />
              </p>
            )
            : null}
          <DocFields fields={schemaFields(schema)} />
        </section>
      ))}
    </section>
  );
}
