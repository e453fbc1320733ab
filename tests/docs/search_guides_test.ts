import assert from "node:assert/strict";
import { createWorld } from "../support/world.ts";

/** What people search for, and the guide that answers it. */
const searches: [query: string, guide: string][] = [
  ["no-code", "no-code"],
  ["no code tool", "no-code"],
  ["base URL key user", "no-code"],
  ["Make", "no-code"],
  ["Zapier", "no-code"],
  ["Flowise", "no-code"],
  ["Typebot", "no-code"],
  ["Botpress", "no-code"],
  ["Voiceflow", "no-code"],
  ["LibreChat", "no-code"],
  ["Open WebUI signed header", "no-code"],
  ["privacy", "privacy"],
  ["prompts stored", "privacy"],
  ["how long are texts kept", "privacy"],
  ["erase a person", "privacy"],
  ["GDPR", "privacy"],
  ["tax", "taxes"],
  ["VAT", "taxes"],
  ["invoices", "taxes"],
  ["receipt", "taxes"],
  ["negative balance", "refunds"],
  ["balance below zero", "refunds"],
  ["errors", "errors"],
  ["what errors mean", "errors"],
  ["error codes", "errors"],
  ["insufficient_funds", "errors"],
  ["store_unavailable", "errors"],
  ["upstream_unavailable", "errors"],
  ["502", "errors"],
  ["rolling restart", "postgres"],
  ["go back to an older version", "upgrading"],
];

Deno.test("docs: a search for what people ask finds the guide that answers it", async () => {
  using world = await createWorld();
  const missed: string[] = [];
  for (const [query, guide] of searches) {
    const response = await world.call(`/docs/search?q=${encodeURIComponent(query)}`, { key: null });
    assert.equal(response.status, 200);
    const [, found = ""] = (await response.text()).split("<main");
    const links = [...found.matchAll(/href="\/docs\/([^"#]+)/g)].map(([, link]) => link);
    if (!links.includes(`guides/${guide}`)) {
      missed.push(`${query}: not ${guide}, but ${links.slice(0, 6).join(" ")}`);
    }
  }
  assert.deepEqual(missed, []);
});
