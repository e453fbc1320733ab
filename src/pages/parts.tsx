/** @jsxImportSource @hono/hono/jsx */
import type { Child } from "@hono/hono/jsx";
import { type Amount, formatAmount } from "../base/money.ts";
import { formatExact, formatShort } from "../base/money_text.ts";
import { Icon, type IconName } from "./icons.tsx";

/**
 * A time, given in ISO 8601 or in ms: to the second, in UTC. Where scripts run, it is how long ago
 * that was, or as a `stamp`, for what is compared with other logs, the reader's own time.
 */
export function TimeCell({ at, as = "ago" }: {
  at: string | number | null;
  as?: "ago" | "stamp";
}) {
  if (at === null) return <span class="muted">never</span>;
  const iso = new Date(at).toISOString();
  const text = `${iso.slice(0, 10)} ${iso.slice(11, 19)}`;
  return <time datetime={iso} title={`${text} UTC`} data-show={as}>{text}</time>;
}

/** An amount, short enough to be read; its title is the exact one. */
export function MoneyCell({ amount, currency, balance = false }: {
  amount: Amount;
  currency: string;
  /** What someone has is cut, never rounded up. */
  balance?: boolean;
}) {
  const text = formatShort(amount, currency, { rounding: balance ? "trunc" : "halfEven" });
  const exact = `${formatAmount(amount)} ${currency.toUpperCase()}`;
  return <span class="figure" title={exact}>{text}</span>;
}

/** An amount with every digit that it has, where it is decided on. */
export function ExactMoney({ amount, currency }: { amount: Amount; currency: string }) {
  return <span class="figure">{formatExact(amount, currency)}</span>;
}

/** A state as a word, a shape and a color. */
export function Badge(
  { tone = "", children }: { tone?: "good" | "bad" | "late" | ""; children?: unknown },
) {
  return <span class={`tag ${tone}`.trim()}>{children}</span>;
}

/** A part of a page, with its heading and what can be done there. */
export function Card({ title, note, actions, id, children }: {
  title?: Child;
  note?: Child;
  actions?: Child;
  id?: string;
  children?: unknown;
}) {
  return (
    <section class="card" id={id}>
      {title === undefined ? null : (
        <header>
          <h2>{title}</h2>
          {note === undefined ? null : <p>{note}</p>}
          {actions}
        </header>
      )}
      {children}
    </section>
  );
}

/** What stands where there is nothing yet: what it is for, and the next step. */
export function EmptyState({ icon, title, children }: {
  icon: IconName;
  title: string;
  children?: unknown;
}) {
  return (
    <div class="empty">
      <Icon name={icon} />
      <h3>{title}</h3>
      {children}
    </div>
  );
}

/** Figures side by side. */
export function Stats({ figures }: { figures: { label: string; value: Child; note?: Child }[] }) {
  return (
    <dl class="stats">
      {figures.map(({ label, value, note }) => (
        <div>
          <dt>{label}</dt>
          <dd>{value}</dd>
          {note === undefined ? null : <dd class="note">{note}</dd>}
        </div>
      ))}
    </dl>
  );
}

/** Names and values below each other: what something is and consists of. */
export function DetailList({ rows }: { rows: readonly (readonly [name: string, value: Child])[] }) {
  return (
    <dl class="details">
      {rows.map(([name, value]) => (
        <div>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/**
 * A column of a table: its title, or one whose cells are figures. On a phone the `lead` column
 * stands beside the name of its row, and the others below with their titles, unless `phone` says
 * otherwise: without a title in a line of their own, in the left or the right half of one, or not
 * at all, where the row leads to a page that has it.
 */
export type Column = string | {
  title: string;
  number?: true;
  lead?: true;
  phone?: "line" | "left" | "right" | "none";
};

/** From so many columns on, a table is set closer. */
const denseColumns = 9;

/**
 * A table whose rows stack on a phone. The first cell of a row names it. Without rows it shows
 * `empty`.
 */
export function Table({ caption, columns, rows, empty }: {
  caption: string;
  columns: readonly Column[];
  rows: readonly (readonly Child[])[];
  empty: Child;
}) {
  if (rows.length === 0) return typeof empty === "string" ? <p class="muted">{empty}</p> : empty;
  const details = columns.map((column) => typeof column === "string" ? { title: column } : column);
  const classOf = ({ number, lead, phone }: Exclude<Column, string>) =>
    [number && "number", lead && "lead", phone && `phone-${phone}`].filter(Boolean).join(" ") ||
    undefined;
  return (
    <div class="table stacks" role="region" aria-label={caption} tabindex={0}>
      <table class={columns.length >= denseColumns ? "dense" : undefined}>
        <caption>{caption}</caption>
        <thead>
          <tr>
            {details.map((column) => <th scope="col" class={classOf(column)}>{column.title}</th>)}
          </tr>
        </thead>
        <tbody>
          {rows.map((cells) => (
            <tr>
              {cells.map((cell, at) => {
                const column = details[at] ?? { title: "" };
                return at === 0
                  ? <th scope="row">{cell}</th>
                  : <td class={classOf(column)} data-label={column.title}>{cell}</td>;
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Links to older rows, where there are any, and back to the newest. */
export function Pager({ older, newest, words = { older: "Older", newest: "Newest" } }: {
  older: string | null;
  newest: string | null;
  words?: { older: string; newest: string };
}) {
  if (older === null && newest === null) return null;
  return (
    <nav class="pager" aria-label="Pages">
      {newest === null ? null : <a class="button small" href={newest}>{words.newest}</a>}
      {older === null ? null : <a class="button small" href={older} rel="next">{words.older}</a>}
    </nav>
  );
}

/** Links that select what is shown. */
export function Tabs(
  { label, tabs }: { label: string; tabs: { title: string; href: string; shown: boolean }[] },
) {
  return (
    <nav aria-label={label}>
      <ul class="tabs">
        {tabs.map(({ title, href, shown }) => (
          <li>
            <a href={href} aria-current={shown ? "true" : undefined}>{title}</a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

/** A block of code or commands, with a button that copies it where scripts run. */
export function CodeBlock({ id, text }: { id: string; text: string }) {
  return (
    <div class="copy">
      <pre id={id} tabindex={0}>{text}</pre>
      <CopyButton of={id} />
    </div>
  );
}

/** A button that copies the text of the element `of`; hidden where no script runs. */
export function CopyButton({ of, label = "Copy" }: { of: string; label?: string }) {
  return (
    <button type="button" class="small" data-copy={of} data-copied="Copied" hidden>
      <Icon name="copy" />
      <span>{label}</span>
    </button>
  );
}
