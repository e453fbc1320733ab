/** @jsxImportSource @hono/hono/jsx */
import type { Json } from "../base/json.ts";
import type { SchemaField, TypePart } from "./schema_text.ts";

/** A text in which `backticks` mark code. */
export function DocText({ text }: { text: string }) {
  return <>{text.split("`").map((part, at) => (at % 2 === 1 ? <code>{part}</code> : part))}</>;
}

/** Code, which wraps instead of scrolling: on a phone nothing is out of sight. */
function DocCode({ text }: { text: string }) {
  return (
    <pre>
      <code>{text}</code>
    </pre>
  );
}

/** A value as JSON, or a string as it is. */
export function DocValue({ value }: { value: Json }) {
  return <DocCode text={typeof value === "string" ? value : JSON.stringify(value, null, 2)} />;
}

/** A type's name, with links to the schemas in it, from any page beside theirs. */
export function DocType({ parts }: { parts: readonly TypePart[] }) {
  return (
    <>
      {parts.map((part) =>
        "schema" in part
          ? <a key={part.schema} href={`schemas#schema-${part.schema}`}>{part.schema}</a>
          : part.text
      )}
    </>
  );
}

/** Fields, and their own fields below them. */
export function DocFields({ fields }: { fields: readonly SchemaField[] }) {
  if (fields.length === 0) return null;
  return (
    <dl>
      {fields.map(({ name, type, required, bounds, description, fields: inner }) => (
        <>
          <dt>
            <code>{name}</code>{" "}
            <span class="type">
              <DocType parts={type} />
              {required ? ", required" : ""}
            </span>
          </dt>
          <dd>
            {description === "" ? null : (
              <p>
                <DocText text={description} />
              </p>
            )}
            {bounds.length === 0 ? null : (
              <p class="bounds">
                <DocText text={sentence(bounds.join("; "))} />
              </p>
            )}
            <DocFields fields={inner} />
          </dd>
        </>
      ))}
    </dl>
  );
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}
