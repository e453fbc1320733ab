/** @jsxImportSource @hono/hono/jsx */
import { parseAccept } from "@hono/hono/utils/accept";
import type { Child } from "@hono/hono/jsx";
import { type Amount, formatAmount } from "../../base/money.ts";
import { formatShort, type ShortRounding } from "../../base/money_text.ts";
import { de } from "./de.ts";
import { en, type PayerTexts } from "./en.ts";
import { es } from "./es.ts";
import { fr } from "./fr.ts";
import { it } from "./it.ts";
import { ja } from "./ja.ts";
import { nl } from "./nl.ts";
import { pl } from "./pl.ts";
import { pt } from "./pt.ts";
import { zh } from "./zh.ts";

const languages: Readonly<Record<string, PayerTexts>> = { en, de, fr, es, pt, it, nl, pl, ja, zh };

const pluralForms: Readonly<Record<string, keyof PayerTexts>> = {
  one: "messageOne",
  few: "messageFew",
  many: "messageMany",
};

/** The languages of the pages of people who pay, as BCP 47 tags. */
export const payerLanguages: readonly string[] = Object.keys(languages);

/** What a page needs to speak its reader's language. */
export interface Reader {
  /** The language of the texts. */
  lang: string;
  texts: PayerTexts;
  /** Returns a text with its values filled in. */
  text(name: keyof PayerTexts, values?: Readonly<Record<string, string>>): string;
  /** Returns an English text of these pages in the reader's language, and any other as it is. */
  translate(message: string): string;
  /**
   * Returns a text with its values filled in, for a page. Each value has a text direction of its
   * own.
   */
  say(name: keyof PayerTexts, values: Readonly<Record<string, string>>): Child[];
  /** Formats an amount in the reader's form. */
  money(amount: Amount, currency: string, rounding?: ShortRounding): Child;
  /** Formats an amount in the reader's form, as plain text. */
  moneyText(amount: Amount, currency: string, rounding?: ShortRounding): string;
  /** Returns how many messages there were. */
  messages(count: number): string;
}

/**
 * Reads the language that fits a request best, from `Accept-Language` (RFC 9110, 12.5.4); English
 * where none fits. Amounts and dates have the form of the accepted region, such as `de-CH`.
 */
export function readerOf(request: Pick<Request, "headers">): Reader {
  const wanted = parseAccept(request.headers.get("accept-language") ?? "")
    .filter(({ q }) => q > 0)
    .map(({ type }) => type)
    .find((tag) => Object.hasOwn(languages, baseOf(tag)));
  const lang = wanted === undefined ? "en" : baseOf(wanted);
  return speak(lang, wanted !== undefined && isLocale(wanted) ? wanted : "en-US");
}

function baseOf(tag: string): string {
  return tag.split("-")[0]?.toLowerCase() ?? "";
}

/** Whether a tag is well-formed: it comes from anyone. */
function isLocale(tag: string): boolean {
  return /^[a-z]{2}(-[A-Z]{2})?$/.test(tag);
}

function speak(lang: string, locale: string): Reader {
  const texts = languages[lang] ?? en;
  const plural = new Intl.PluralRules(lang);
  const numbers = new Intl.NumberFormat(locale);
  const moneyText: Reader["moneyText"] = (amount, currency, rounding = "trunc") =>
    formatShort(amount, currency, { rounding, locale });
  return {
    lang,
    texts,
    text: (name, values = {}) =>
      texts[name].replace(/\{(\w+)\}/g, (whole, key: string) => values[key] ?? whole),
    translate: (message) => {
      const known = Object.keys(en).find((name): name is keyof PayerTexts =>
        Reflect.get(en, name) === message
      );
      return known === undefined ? message : texts[known];
    },
    say: (name, values) =>
      texts[name].split(/(\{\w+\})/).map((part) => {
        const value = /^\{\w+\}$/.test(part) ? values[part.slice(1, -1)] : undefined;
        return value === undefined ? part : <bdi>{value}</bdi>;
      }),
    moneyText,
    money: (amount, currency, rounding) => (
      <span title={`${formatAmount(amount)} ${currency.toUpperCase()}`}>
        {moneyText(amount, currency, rounding)}
      </span>
    ),
    messages(count) {
      const name = pluralForms[plural.select(count)] ?? "messageOther";
      return texts[name].replace("{count}", numbers.format(count));
    },
  };
}
