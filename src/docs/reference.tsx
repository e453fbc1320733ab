/** @jsxImportSource @hono/hono/jsx */
import type { EndpointDocs } from "../base/endpoint_doc.ts";
import type { JsonObject } from "../base/json.ts";
import { DocsFrame } from "../pages/docs_frame.tsx";
import { describedOperations, entriesIn, objectIn } from "./described.ts";
import type { ApiDocument } from "./document.ts";
import { EndpointSection } from "./endpoint_section.tsx";
import { type DocsGroup, groupOperations } from "./groups.ts";
import { schemaFields } from "./schema_text.ts";
import { DocFields, DocText, DocValue } from "./text.tsx";

/** The API reference: its pages, and what they are made of. */
export interface Reference {
  groups: readonly DocsGroup[];
  events: readonly [type: string, item: JsonObject][];
  schemas: readonly [name: string, schema: JsonObject][];
  description: string;
  /** The URL of this server. */
  baseUrl: string;
}

/** Prepares the reference from the API document, as machines read it. */
export function createReference(operations: EndpointDocs, document: ApiDocument): Reference {
  const served: JsonObject = JSON.parse(JSON.stringify(document));
  const described = describedOperations(operations, served);
  return {
    groups: groupOperations(described),
    events: entriesIn(served.webhooks),
    schemas: entriesIn(objectIn(served.components).schemas),
    description: document.info.description ?? "",
    baseUrl: described[0]?.baseUrl ?? "",
  };
}

/** A page of the reference, in the order of reading. */
interface ReferencePage {
  name: string;
  title: string;
  about: string;
  /** The anchors on it. */
  links: readonly { id: string; title: string }[];
}

/** The pages of the reference. */
function referencePages({ groups, events, schemas }: Reference): ReferencePage[] {
  return [
    ...groups.map(({ name, title, about, operations }) => ({
      name,
      title,
      about,
      links: operations.filter(({ operation: { variantOf } }) => variantOf === undefined)
        .map(({ operation: { operationId, summary } }) => ({ id: operationId, title: summary })),
    })),
    {
      name: "events",
      title: "Events",
      about: "What webhooks receive, and when.",
      links: events.map(([type]) => ({ id: `event-${type}`, title: type })),
    },
    {
      name: "schemas",
      title: "Schemas",
      about: "Objects that several operations share.",
      links: schemas.map(([name]) => ({ id: `schema-${name}`, title: name })),
    },
  ];
}

/** The address of a page of the reference. */
export function referencePath(base: string, name: string): string {
  return `${base}/docs/api/${name}`;
}

/** The first page: what all operations share, and where each of them is. */
export function OverviewPage({ reference, base }: { reference: Reference; base: string }) {
  const pages = referencePages(reference);
  return (
    <Frame reference={reference} base={base} title="API reference">
      <h1>API reference</h1>
      <p>
        <DocText text={reference.description} />
      </p>
      <p>
        For machines: <a href={`${base}/openapi.json`}>OpenAPI 3.1</a>.
      </p>
      <h2>Base URL</h2>
      <pre tabindex={0}><code>{reference.baseUrl}/v1</code></pre>
      <h2>Authentication</h2>
      <p>
        Send a key as <code>Authorization: Bearer …</code>. A project’s keys begin with{" "}
        <code>sk_</code> and have scopes. The operator’s key is{" "}
        <code>ADMIN_KEY</code>. Each operation says which key it needs.
      </p>
      <h2>Errors</h2>
      <p>
        Every error has a status from 400 on, and a body as OpenAI’s: <code>error.code</code>{" "}
        says what happened, <code>error.param</code> names the field, and <code>error.message</code>
        {" "}
        is for people. A request that is refused for lack of money is no error: the response is an
        assistant message with a link.
      </p>
      <div class="cards guides">
        {pages.slice(0, -1).map(({ name, title, about, links }) => (
          <section class="card">
            <h2>
              <a href={referencePath(base, name)}>{title}</a>
            </h2>
            <p class="muted">{about}</p>
            {name === "events" ? null : (
              <ul class="plain-list">
                {links.map(({ id, title }) => (
                  <li id={id}>
                    <a href={`${referencePath(base, name)}#${id}`}>{title}</a>
                  </li>
                ))}
              </ul>
            )}
          </section>
        ))}
      </div>
    </Frame>
  );
}

/** A page of operations, of events or of schemas; null where there is none of that name. */
export function referencePage(reference: Reference, name: string, base: string): unknown {
  const pages = referencePages(reference);
  const at = pages.findIndex((page) => page.name === name);
  const page = pages[at];
  if (!page) return null;
  const group = reference.groups.find((group) => group.name === name);
  const pageOf = (operationId: string) =>
    reference.groups.find(({ operations }) =>
      operations.some(({ operation }) => operation.operationId === operationId)
    )?.name ?? "";
  return (
    <Frame reference={reference} base={base} title={page.title} here={name}>
      <h1>{page.title}</h1>
      <p class="muted">{page.about}</p>
      {group?.operations.map((one) => <EndpointSection {...one} pageOf={pageOf} />)}
      {name === "events" ? <Events events={reference.events} /> : null}
      {name === "schemas" ? <Schemas schemas={reference.schemas} /> : null}
      <nav class="pager" aria-label="Next pages">
        {[pages[at - 1], pages[at + 1]].map((other, side) =>
          other === undefined ? null : (
            <a class="button" href={referencePath(base, other.name)}>
              {side === 0 ? "Before: " : "Next: "}
              {other.title}
            </a>
          )
        )}
      </nav>
    </Frame>
  );
}

/** The frame of every page of the reference. */
export function Frame({ reference, base, title, here, query, children }: {
  reference: Reference;
  base: string;
  title: string;
  /** The name of the page. */
  here?: string;
  /** What was searched for. */
  query?: string;
  children?: unknown;
}) {
  const pages = referencePages(reference);
  const current = pages.find(({ name }) => name === here);
  const contents = [
    {
      title: "API reference",
      links: pages.map(({ name, title }) => ({ href: referencePath(base, name), title })),
    },
    ...(current
      ? [{
        title: current.title,
        links: current.links.map(({ id, title }) => ({ href: `#${id}`, title })),
      }]
      : []),
  ];
  const frame = { title: `${title} · Farebox`, base, contents };
  const path = here === undefined ? undefined : referencePath(base, here);
  return (
    <DocsFrame {...frame} here={path} query={query} part="reference" isWide>
      {children}
    </DocsFrame>
  );
}

const firstEvent =
  "Each delivery is a POST in JSON with two keys: `delivery`, which describes the attempt, and " +
  "`event`. Verify `X-Service-Signature` over the raw body before you trust it, and respond with 2xx.";

function Events({ events }: Pick<Reference, "events">) {
  const [first] = events;
  const headers = objectIn(first?.[1].post).parameters;
  const properties = (Array.isArray(headers) ? headers : []).map((one) => {
    const { name, schema, description } = objectIn(one);
    return [String(name), { ...objectIn(schema), description: description ?? "" }] as const;
  });
  return (
    <>
      <p>
        <DocText text={firstEvent} />
      </p>
      <DocFields fields={schemaFields({ properties: Object.fromEntries(properties) })} />
      {events.map(([type, item]) => <EventSection type={type} post={objectIn(item.post)} />)}
    </>
  );
}

function EventSection({ type, post }: { type: string; post: JsonObject }) {
  const body = objectIn(objectIn(objectIn(post.requestBody).content)["application/json"]);
  const event = objectIn(objectIn(objectIn(body.schema).properties).event);
  const { data } = objectIn(event.properties);
  const { value } = objectIn(objectIn(body.examples).event);
  return (
    <section class="operation" aria-labelledby={`event-${type}`}>
      <div>
        <h2 id={`event-${type}`}>{type}</h2>
        <p>
          <DocText text={String(post.summary)} />
        </p>
        <h3>
          In <code>data</code>
        </h3>
        <DocFields fields={schemaFields(data)} />
      </div>
      <div class="examples">
        <details>
          <summary>Example: {type}</summary>
          <DocValue value={value ?? null} />
        </details>
      </div>
    </section>
  );
}

function Schemas({ schemas }: Pick<Reference, "schemas">) {
  return (
    <>
      {schemas.map(([name, schema]) => (
        <section aria-labelledby={`schema-${name}`}>
          <h2 id={`schema-${name}`}>{name}</h2>
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
    </>
  );
}
