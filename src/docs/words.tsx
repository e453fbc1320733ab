/** @jsxImportSource @hono/hono/jsx */
import type { Json } from "../base/json.ts";
import type { Field, TypePart } from "./schema_text.ts";

/** A text whose `pieces` in backticks are code. */
export function Words({ text }: { text: string }) {
  return <>{text.split("`").map((part, at) => (at % 2 === 1 ? <code>{part}</code> : part))}</>;
}

/** Code, which wraps rather than scrolls: on a phone nothing is out of sight. */
export function Code({ text }: { text: string }) {
  return (
    <pre>
      <code>{text}</code>
    </pre>
  );
}

/** A value as JSON, or a text as it is. */
export function Value({ value }: { value: Json }) {
  return <Code text={typeof value === "string" ? value : JSON.stringify(value, null, 2)} />;
}

/** A type's name, with links to the schemas in it. */
export function Type({ parts }: { parts: readonly TypePart[] }) {
  return (
    <>
      {parts.map((part) =>
        "schema" in part ? <a href={`#schema-${part.schema}`}>{part.schema}</a> : part.text
      )}
    </>
  );
}

/** Fields, and below them theirs. */
export function Fields({ fields }: { fields: readonly Field[] }) {
  if (fields.length === 0) return null;
  return (
    <dl>
      {fields.map(({ name, type, required, bounds, description, fields: inner }) => (
        <>
          <dt>
            <code>{name}</code>{" "}
            <span class="type">
              <Type parts={type} />
              {required ? ", required" : ""}
            </span>
          </dt>
          <dd>
            {description === "" ? null : (
              <p>
                <Words text={description} />
              </p>
            )}
            {bounds.length === 0 ? null : (
              <p class="bounds">
                <Words text={`${bounds.join("; ")}.`} />
              </p>
            )}
            <Fields fields={inner} />
          </dd>
        </>
      ))}
    </dl>
  );
}
