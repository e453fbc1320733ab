/** @jsxImportSource @hono/hono/jsx */
import type { Child } from "@hono/hono/jsx";
import type { Brand } from "./brand.ts";
import { Icon, type IconName } from "./icons.tsx";
import type { Reader } from "./texts/texts.tsx";

/** Whose page it is: the logo or the first letter of an app, its name, and what is asked. */
export function AppHeader({ brand: { name, logoUrl }, title }: { brand: Brand; title: Child }) {
  const letter = [...name.trim()][0]?.toUpperCase() ?? "?";
  // Where the image does not load, the style shows its text as it shows the letter.
  return (
    <div class="app">
      {logoUrl === null
        ? <span class="letter" aria-hidden="true">{letter}</span>
        : <img src={logoUrl} alt={letter} aria-hidden="true" width="40" height="40" />}
      <div>
        <p class="name">
          <bdi>{name}</bdi>
        </p>
        <h1>{title}</h1>
      </div>
    </div>
  );
}

/** Amounts to choose from as tiles, and a field for another one. */
export function AmountTiles({ name, legend, amounts, other, chosen }: {
  name: string;
  legend: string;
  amounts: readonly { value: string; label: Child }[];
  /** The field for another amount: its label, and what was entered. */
  other: { label: string; value: string };
  /** Which tile is chosen; -1 for none. */
  chosen: number;
}) {
  return (
    <fieldset class="tiles">
      <legend>{legend}</legend>
      {amounts.map(({ value, label }, at) => (
        <label>
          <input type="radio" name={name} value={value} checked={at === chosen} />
          {label}
        </label>
      ))}
      <div class="field other">
        <label for="other">{other.label}</label>
        <input
          id="other"
          name="other"
          value={other.value}
          inputmode="decimal"
          autocomplete="transaction-amount"
          data-instead-of={name}
        />
      </div>
    </fieldset>
  );
}

/** What has just happened, as a sign and a sentence. */
export function PayerState({ icon, title, isMain = false, children }: {
  icon: Extract<IconName, "check" | "clock">;
  title: Child;
  /** Whether it is the heading of the page. */
  isMain?: boolean;
  children?: unknown;
}) {
  return (
    <div class={icon === "clock" ? "state waiting" : "state"}>
      <Icon name={icon} />
      {isMain ? <h1>{title}</h1> : <h2>{title}</h2>}
      {children}
    </div>
  );
}

/** Below the card: where help is, and whose account it is. */
export function PayerFooter({ brand: { supportUrl }, reader, user }: {
  brand: Pick<Brand, "supportUrl">;
  reader: Reader;
  user?: string | undefined;
}) {
  return (
    <footer>
      {user === undefined ? null : <p>{reader.say("account", { user })}</p>}
      {supportUrl === null ? null : (
        <p>
          <a href={supportUrl}>{reader.texts.help}</a>
        </p>
      )}
    </footer>
  );
}
