/** @jsxImportSource @hono/hono/jsx */
import type { Child } from "@hono/hono/jsx";

/** An input with its label above and a hint below. */
export function FormField({ name, label, value = "", hint, type = "text", required, more = {} }: {
  name: string;
  label: string;
  value?: string;
  hint?: Child;
  type?: "text" | "search" | "url" | "password" | "date" | "datetime-local";
  required?: boolean;
  /** Further attributes of the input. */
  more?: Record<string, string>;
}) {
  return (
    <div class="field">
      <label for={name}>{label}</label>
      <input
        id={name}
        name={name}
        type={type}
        value={value}
        required={required}
        aria-describedby={hint === undefined ? undefined : `${name}-hint`}
        autocomplete="off"
        {...more}
      />
      {hint === undefined ? null : <span class="hint" id={`${name}-hint`}>{hint}</span>}
    </div>
  );
}

/** A choice of one of several values, by value and label. */
export function FormSelect({ name, label, value, options, hint }: {
  name: string;
  label: string;
  value: string;
  options: readonly (readonly [value: string, label: string])[];
  hint?: Child;
}) {
  return (
    <div class="field">
      <label for={name}>{label}</label>
      <select
        id={name}
        name={name}
        aria-describedby={hint === undefined ? undefined : `${name}-hint`}
      >
        {options.map(([each, text]) => (
          <option value={each} selected={each === value} dir="auto">{text}</option>
        ))}
      </select>
      {hint === undefined ? null : <span class="hint" id={`${name}-hint`}>{hint}</span>}
    </div>
  );
}

/** A checkbox, or with `value` one of several of the same name. */
export function FormCheckbox({ name, label, on, value = "on", type = "checkbox" }: {
  name: string;
  label: Child;
  on: boolean;
  value?: string;
  type?: "checkbox" | "radio";
}) {
  return (
    <label class="check">
      <input type={type} name={name} value={value} checked={on} />
      {label}
    </label>
  );
}

/** A part of a form: its title and what it is for, beside its fields where there is room. */
export function FormSection({ title, says, id, children }: {
  title: string;
  says?: Child;
  id?: string;
  children?: unknown;
}) {
  return (
    <fieldset class="part" id={id}>
      <legend>{title}</legend>
      {says === undefined ? null : <p class="hint">{says}</p>}
      <div>{children}</div>
    </fieldset>
  );
}

/** Hidden fields. */
export function Hidden({ fields }: { fields: Record<string, string> }) {
  return (
    <>
      {Object.entries(fields).map(([name, value]) => (
        <input type="hidden" name={name} value={value} />
      ))}
    </>
  );
}

/** The error of a submitted form. */
export function FormError({ text }: { text: string | null }) {
  return text === null ? null : <p class="alert" role="alert">{text}</p>;
}

/** Asks for confirmation: what exactly will happen, a button that does it, a link back. */
export function Confirm({ says, button, action, back, fields = {}, danger = true, more }: {
  says: Child;
  button: string;
  action: string;
  back: string;
  fields?: Record<string, string>;
  danger?: boolean;
  /** Further fields. */
  more?: Child;
}) {
  return (
    <>
      {says}
      <form method="post" action={action}>
        <Hidden fields={fields} />
        {more}
        <p class="actions">
          <button type="submit" class={danger ? "danger" : "primary"}>{button}</button>
          <a class="button" href={back}>Cancel</a>
        </p>
      </form>
    </>
  );
}

/** A secret that is shown once, to its creator; one that `signs` deliveries is stored. */
export function ShownOnce(
  { label, secret, signs = false }: { label: Child; secret: string; signs?: boolean },
) {
  const kept = signs ? " and is stored encrypted, to sign deliveries with" : "";
  return (
    <>
      <p>
        <strong>{label}.</strong> It is shown only once{kept}: copy it now.
      </p>
      <code class="secret" id="secret">{secret}</code>
    </>
  );
}
