/** @jsxImportSource @hono/hono/jsx */
import type { Child } from "@hono/hono/jsx";
import { type Amount, formatAmount, formatForPeople } from "../base/money.ts";

/** A time, given in ISO 8601 or in ms: to the second, in UTC, as in logs. */
export function TimeCell({ at }: { at: string | number | null }) {
  if (at === null) return <span class="muted">never</span>;
  const iso = new Date(at).toISOString();
  return <time datetime={iso}>{`${iso.slice(0, 10)} ${iso.slice(11, 19)}`}</time>;
}

/** An amount for people, and beside it the exact one where the two differ. */
export function MoneyCell({ amount, currency }: { amount: Amount; currency: string }) {
  const forPeople = formatForPeople(amount, currency);
  const exact = formatAmount(amount);
  const same = Number(forPeople.replace(/[^\d.-]/g, "")) === Number(exact);
  return same ? <>{forPeople}</> : (
    <>
      {forPeople} <span class="exact">{exact}</span>
    </>
  );
}

/** A state as a word and a color. */
export function Badge(
  { tone = "", children }: { tone?: "good" | "bad" | "late" | ""; children?: unknown },
) {
  return <span class={`tag ${tone}`.trim()}>{children}</span>;
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

/** A column of a table: its title, or with `number` one whose cells are figures. */
export type Column = string | { title: string; number: true };

/**
 * A table that scrolls by itself where the screen is too narrow. The first cell of a row names it.
 * Without rows it shows `empty`.
 */
export function Table({ caption, columns, rows, empty }: {
  caption: string;
  columns: readonly Column[];
  rows: readonly (readonly Child[])[];
  empty: string;
}) {
  if (rows.length === 0) return <p class="muted">{empty}</p>;
  const isNumber = (at: number) => typeof columns[at] === "object";
  return (
    <div class="scroll" role="region" aria-label={caption} tabindex={0}>
      <table>
        <caption>{caption}</caption>
        <thead>
          <tr>
            {columns.map((column, at) => (
              <th scope="col" class={isNumber(at) ? "number" : undefined}>
                {typeof column === "string" ? column : column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((cells) => (
            <tr>
              {cells.map((cell, at) =>
                at === 0
                  ? <th scope="row">{cell}</th>
                  : <td class={isNumber(at) ? "number" : undefined}>{cell}</td>
              )}
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
      {newest === null ? null : <a href={newest}>{words.newest}</a>}
      {older === null ? null : <a href={older} rel="next">{words.older}</a>}
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
