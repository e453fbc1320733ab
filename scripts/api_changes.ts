/**
 * `deno task api-changes`: compares the API document with the last release's, and asks for a line
 * in the unreleased part of CHANGELOG.md for each change. Prints what is missing, and exits 1 then.
 * With `--release`, keeps today's document as that of the release.
 */
import { gunzipSync, gzipSync } from "node:zlib";
import { apiDoc } from "../src/api_doc.ts";
import { createDocument } from "../src/docs/document.ts";
import { changesBetween, unnamedIn } from "./api/changes.ts";
import { type ApiFacts, factsOf } from "./api/facts.ts";

const root = new URL("../", import.meta.url);
const kept = new URL("scripts/api/last_release.gz", root);

async function main(): Promise<number> {
  const now = factsOf(createDocument(apiDoc, { baseUrl: "https://farebox.test" }));
  if (Deno.args.includes("--release")) {
    await Deno.writeFile(kept, pack(now));
    return 0;
  }
  const changes = changesBetween(unpack(await Deno.readFile(kept)), now);
  const changelog = await Deno.readTextFile(new URL("CHANGELOG.md", root));
  const missing = unnamedIn(unreleasedPart(changelog), changes);
  for (const { name, what, places: [first = "", ...others] } of missing) {
    const more = others.length === 0 ? "" : `, and in ${others.length} more places`;
    console.log(`CHANGELOG.md does not name \`${name}\`, which is ${what}: ${first}${more}`);
  }
  if (missing.length > 0) return 1;
  console.log(`api: ${changes.length} changes since the last release, all in CHANGELOG.md`);
  return 0;
}

/** The part of the changelog about what is not released yet. */
function unreleasedPart(changelog: string): string {
  const [, part = ""] = /^## Unreleased\n([^]*?)(?=^## |$(?![^]))/m.exec(changelog) ?? [];
  return part;
}

function pack(facts: ApiFacts): Uint8Array {
  const lines = [...facts].map(([place, types]) => `${place}\t${types}`).sort();
  return gzipSync(lines.join("\n"), { level: 9 });
}

function unpack(bytes: Uint8Array): ApiFacts {
  const lines = new TextDecoder().decode(gunzipSync(bytes)).split("\n");
  return new Map(lines.map((line) => {
    const [place = "", types = ""] = line.split("\t");
    return [place, types];
  }));
}

if (import.meta.main) Deno.exit(await main());
