import assert from "node:assert/strict";
import { apiDoc } from "../../src/api_doc.ts";
import { publicRefusalReasons } from "../../src/base/refusal_reasons.ts";
import { endpointErrors } from "../../src/docs/errors.ts";

/** Codes that the API document has at no operation: of paths that no route has, and of formats. */
const outside = new Map([
  ["method_not_allowed", "405"],
  ["websocket_not_supported", "426"],
  ["context_length_exceeded", "400"],
]);

const guide = await Deno.readTextFile(new URL("../../guides/errors.md", import.meta.url));
const rows = guide.split("\n").filter((line) => /^\| `/.test(line))
  .map((line) => line.split("|").slice(1, -1).map((cell) => cell.trim()));
const codeOf = (cell = "") => cell.replaceAll("`", "");

/** Every code with its statuses, as the API document has them. */
function catalogue(): Map<string, string> {
  const statuses = new Map<string, Set<number>>();
  for (const operation of Object.values(apiDoc).flatMap((methods) => Object.values(methods))) {
    for (const { code, status } of endpointErrors(operation)) {
      if (typeof code !== "string") continue;
      statuses.set(code, (statuses.get(code) ?? new Set()).add(status));
    }
  }
  const text = (all: Set<number>) => [...all].sort().join(", ");
  return new Map([...statuses].map(([code, all]) => [code, text(all)]));
}

Deno.test("errors: the guide has every code of the API once, with its statuses, and no other", () => {
  const told = rows.filter((cells) => cells.length === 4);
  const codes = told.map(([code]) => codeOf(code));
  assert.deepEqual(codes.filter((code, at) => codes.indexOf(code) !== at), [], "told twice");
  const inGuide = told.map(([code, statuses]) => `${codeOf(code)} ${statuses}`).sort();
  const inApi = [...catalogue(), ...outside].map(([code, statuses]) => `${code} ${statuses}`);
  assert.deepEqual(inGuide, inApi.sort());
});

Deno.test("errors: of each code the guide says what it means and what to do", () => {
  for (const cells of rows) {
    for (const cell of cells) assert.ok(cell.length > 2, cells.join(" | "));
  }
});

Deno.test("errors: codes beside the API document are ones that the service gives", async () => {
  const texts: string[] = [];
  for (const name of ["src/refuse_path.ts", "src/inference/kept/kept_turns.ts"]) {
    texts.push(await Deno.readTextFile(new URL(`../../${name}`, import.meta.url)));
  }
  for (const code of outside.keys()) assert.ok(texts.join().includes(`"${code}"`), code);
});

Deno.test("errors: the guide has every reason of the paywall", () => {
  const reasons = rows.filter((cells) => cells.length === 2).map(([reason]) => codeOf(reason));
  assert.deepEqual(reasons.sort(), [...publicRefusalReasons].sort());
});
