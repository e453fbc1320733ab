import assert from "node:assert/strict";
import { endpoints } from "../../src/base/endpoints.ts";
import { baseOfEndpointUrl } from "../../src/base/upstream_url.ts";

const azure = "https://my.openai.azure.com";
const cases: [url: string, base: string | null][] = [
  ...Object.values(endpoints).map(({ path }): [string, string] => [
    `https://api.test/v1${path}`,
    "https://api.test/v1",
  ]),
  ["https://api.test/v1/models", "https://api.test/v1"],
  ["https://api.test/v1/chat/completions/", "https://api.test/v1"],
  ["https://api.test/v1/Chat/Completions", "https://api.test/v1"],
  ["https://api.test/v1//chat/completions//", "https://api.test/v1"],
  ["https://api.test/chat/completions", "https://api.test"],
  ["http://localhost:11434/api/v1/responses", "http://localhost:11434/api/v1"],
  [`${azure}/openai/deployments/gpt/chat/completions`, azure],
  [`${azure}/openai/v1/responses`, `${azure}/openai/v1`],
  ["https://api.test/v1", null],
  ["https://api.test", null],
  ["https://messages", null],
  ["https://models.test/inference", null],
  ["https://api.test/my-models", null],
  ["https://api.test/chat/completions/v1", null],
  // Nothing of these may be repeated.
  ["https://user:secret@api.test/v1/chat/completions", null],
  ["https://api.test/v1/chat/completions?key=secret", null],
];
for (const [url, base] of cases) {
  Deno.test(`upstream URL: the base of ${url} is ${base ?? "itself"}`, () => {
    assert.equal(baseOfEndpointUrl(url), base);
  });
}
