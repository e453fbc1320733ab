import assert from "node:assert/strict";
import { payerLanguages } from "../../src/pages/texts/texts.tsx";
import { createWorld } from "../support/world.ts";

Deno.test("links: one that is no longer valid says so in the reader's language", async () => {
  using world = await createWorld();
  const titles = new Set<string>();
  for (const language of payerLanguages) {
    const headers = { "accept-language": language };
    for (const path of ["/t/0dL4KQki5SmUP2PDv", "/a/0dL4KQki5SmUP2PDv"]) {
      const response = await world.call(path, { key: null, headers });
      const html = await response.text();
      assert.equal(response.status, 404);
      assert.match(html, new RegExp(`<html lang="${language}"`));
      titles.add(/<h1>([^<]+)</.exec(html)?.[1] ?? "");
      const isEnglish = /Go back to your chat/.test(html);
      assert.equal(isEnglish, language === "en", `${language}: ${html}`);
    }
  }
  assert.equal(titles.size, payerLanguages.length);
});
