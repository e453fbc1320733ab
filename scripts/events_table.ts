// Generates the guide's table of events from their schemas: `deno run -A scripts/events_table.ts`.
import { z } from "zod";
import { catalogue } from "../src/events/catalogue.ts";

const guide = new URL("../guides/events.md", import.meta.url);
const marked = /(<!-- events -->\n)[^]*?(<!-- \/events -->)/;

/** Returns the table of all events and their data, in Markdown. */
export function eventsTable(): string {
  const rows = Object.entries(catalogue).map(([type, schema]) => {
    const { properties = {} } = z.toJSONSchema(schema);
    const fields = Object.entries(properties).map(([name, property]) => {
      const note = noteOf(property);
      return note ? `${name} (${note})` : name;
    });
    return [`\`${type}\``, fields.join(", ")];
  });
  return markdown([["Event", "`data`, besides `paywallId` and `ownerUserId`"], ...rows]);
}

/** Returns the note of a field that is not a plain string. */
function noteOf(property: unknown): string {
  const { type, anyOf, items } = Object(property);
  const types = Array.isArray(anyOf) ? anyOf.map((one) => one.type) : type;
  if (Array.isArray(types)) return types.includes("null") ? "or null" : "";
  if (type === "array") return `list of ${items?.type ?? "values"}s`;
  return type === "string" ? "" : String(type);
}

function markdown([head = [], ...rows]: string[][]): string {
  const line = (cells: string[]) => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}

if (import.meta.main) {
  const text = await Deno.readTextFile(guide);
  await Deno.writeTextFile(guide, text.replace(marked, `$1\n${eventsTable()}\n\n$2`));
  await new Deno.Command(Deno.execPath(), { args: ["fmt", "-q", guide.pathname] }).output();
}
