import { parseAmount, zero } from "../base/money.ts";
import { formatExact } from "../base/money_text.ts";
import { printable } from "./printable.ts";
import type { LogFields } from "../deps.ts";
import type { FormatLine } from "./log.ts";

const widths = { method: 6, what: 26, ms: 6, user: 14, model: 22 };
/** Where the lines of a cause begin: below what happened. */
const indent = " ".repeat(10);

type Paint = (text: string) => string;
const codes = { dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 } as const;
type Paints = Readonly<Record<keyof typeof codes, Paint>>;

/**
 * Formats lines of the log for people: a request or a call of a model in aligned columns, anything
 * else in words. Whatever comes from outside is made printable.
 */
export function createTextLines({ color }: { color: boolean }): FormatLine {
  const paints = createPaints(color);
  return ({ now, level, event, fields }) => {
    const time = paints.dim(new Date(now).toTimeString().slice(0, 8));
    const { cause, ...others } = fields;
    const line = lineOf(paints, { level, event, fields: others });
    return line === null ? "" : `${time}  ${line}\n${causeLines(cause)}`;
  };
}

function createPaints(color: boolean): Paints {
  const paint = (code: number): Paint => (text) => color ? `\x1b[${code}m${text}\x1b[0m` : text;
  const { dim, red, green, yellow, cyan } = codes;
  return {
    dim: paint(dim),
    red: paint(red),
    green: paint(green),
    yellow: paint(yellow),
    cyan: paint(cyan),
  };
}

function lineOf(
  paints: Paints,
  { level, event, fields }: { level: string; event: string; fields: LogFields },
): string | null {
  if (event === "call") return callLine(paints, fields);
  // The line of the call shows the request.
  if (event === "request") return fields.shown === "call" ? null : requestLine(paints, fields);
  const said = { error: paints.red, warn: paints.yellow }[level] ?? paints.dim;
  return `${said(column(level, widths.method))}${event.replaceAll("_", " ")}${pairsOf(fields)}`;
}

/** `POST  chat  200  31 ms  ada  gpt-4o  $0.00125` */
function callLine(paints: Paints, fields: LogFields): string {
  const { status, reason, endpoint, latencyMs, cost, currency } = fields;
  const [user, model] = [fields.user, fields.model].map((it) => String(it ?? "-"));
  const amount = parseAmount(cost) ?? zero;
  const price = amount > 0n ? `  ${formatExact(amount, String(currency))}` : "";
  const why = typeof reason === "string"
    ? `  ${paintOf(paints, Number(status), reason)(printable(reason))}`
    : "";
  const head = headOf(paints, {
    method: "POST",
    what: String(endpoint),
    status: Number(status),
    ms: Number(latencyMs),
  });
  const about = `${column(`${user}`, widths.user)} ${column(`${model}`, widths.model)}`;
  return `${head}  ${`${about}${price}${why}`.trimEnd()}`;
}

function requestLine(paints: Paints, fields: LogFields): string {
  const { method, path, status, ms, code } = fields;
  const head = headOf(paints, {
    method: String(method),
    what: String(path),
    status: Number(status),
    ms: Number(ms),
  });
  const isRefused = typeof code === "string";
  return isRefused ? `${head}  ${paintOf(paints, Number(status))(printable(code))}` : head;
}

function headOf(
  paints: Paints,
  { method, what, status, ms }: { method: string; what: string; status: number; ms: number },
): string {
  const took = `${String(Math.round(ms)).padStart(widths.ms)} ms`;
  const shown = column(method, widths.method) + column(what, widths.what);
  return `${shown}${paintOf(paints, status)(String(status))}${paints.dim(took)}`;
}

/** The color of a status. A response with a reason, such as the paywall, is no success. */
function paintOf(paints: Paints, status: number, reason: string | null = null): Paint {
  if (status >= 500) return paints.red;
  if (status >= 400 || reason !== null) return paints.yellow;
  return status >= 300 ? paints.cyan : paints.green;
}

/** A column of this width or more, and a space. */
function column(text: string, width: number): string {
  return `${printable(text).padEnd(width - 1)} `;
}

function pairsOf(fields: LogFields): string {
  return Object.entries(fields).map(([name, value]) =>
    value === undefined || value === null ? "" : `  ${printable(name)}=${valueText(value)}`
  ).join("");
}

function valueText(value: unknown): string {
  if (typeof value !== "string") return printable(JSON.stringify(value) ?? "");
  return /^[^\s"]+$/.test(value) ? printable(value) : printable(JSON.stringify(value));
}

/** The cause of an error, line by line. */
function causeLines(cause: unknown): string {
  if (cause === undefined || cause === null) return "";
  return String(cause).trimEnd().split(/\r?\n/).map((line) => `${indent}${printable(line)}\n`)
    .join("");
}
