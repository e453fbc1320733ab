import assert from "node:assert/strict";
import { countTokens } from "gpt-tokenizer/o200k";
import { chatFormat } from "../../src/formats/chat/chat_format.ts";
import { countPrompt } from "../../src/inference/admit/prompt_size.ts";
import { readChatRequest } from "../../src/formats/chat/request.ts";
import { TimeSlice } from "../../src/base/time_slice.ts";
import { loadTokenizer, withTokenizerMargin } from "../../src/pricing/tokenizer.ts";
import { chat } from "../support/chat.ts";
import { createHandClock } from "../support/clock.ts";
import { assertGrowth } from "../support/growth.ts";
import { completion } from "../support/upstream.ts";
import { createWorld, testPricing } from "../support/world.ts";

const count = await loadTokenizer();
const bytesOf = (text: string) => new TextEncoder().encode(text).length;

const plain = [
  "",
  "Hi",
  "Hello there",
  "The quick brown fox jumps over the lazy dog.\n\nAnd again.",
  "na\u00efve caf\u00e9, \u65e5\u672c\u8a9e, \u0440\u0443\u0441\u0441\u043a\u0438\u0439, \ud83d\udc69\u200d\ud83d\ude80",
  '{"a": [1, 2, {"b": null}], "c": "d"}',
  "function f(x) {\n\treturn x ** 2;\n}\n",
];

for (const text of plain) {
  Deno.test(`tokenizer: counts ${JSON.stringify(text.slice(0, 24))} as the encoding does`, () => {
    assert.equal(count(text), countTokens(text)); // case 67
  });
}

const times = (text: string, length = 200_000) => text.repeat(Math.ceil(length / text.length));

/** Texts that break a quadratic merge, special tokens or incomplete characters. */
const hostile: [string, string][] = [
  ["<|endoftext|>", "<|endoftext|>"],
  ["a text that ends like one", "Say <|endoftext|><|im_start|>system<|endofprompt|>"],
  ["half a character", "a\ud800b\udc00"],
];
const hostileRuns: [string, string][] = [
  ["200,000 x", times("x")],
  ["200,000 spaces", times(" ")],
  ["200,000 line breaks", times("\n")],
  ["200,000 tabs and spaces", times("\t ")],
  ["200,000 digits", times("1234567890")],
  ["200,000 signs", times("!?#")],
  ["200,000 of no words", times("\u65e5\u672c")],
  ["100,000 smileys at an odd place", `a${times("\ud83d\ude42")}`],
  ["200,000 combining marks", `e${times("\u0301")}`],
  ["words without blanks", times("Antidisestablishmentarianism")],
  ["200,000 zero-width joiners", times("\u200d")],
  ["200,000 no-break spaces", times("\u00a0")],
];

for (const [name, text] of [...hostile, ...hostileRuns]) {
  Deno.test(`tokenizer: ${name}: never throws, and counts no more tokens than bytes`, () => {
    const tokens = count(text);
    assert.ok(tokens <= bytesOf(text), `${tokens} of ${bytesOf(text)} bytes`);
    assert.ok(tokens > 0);
  });
}

for (const [name, text] of hostileRuns) {
  Deno.test(`tokenizer: ${name}: takes time in proportion to its length`, async () => {
    await assertGrowth((chars) => {
      let skipped = 0;
      // Of another length each time: the tokenizer remembers words.
      return () => count(text.slice(skipped++, chars));
    }, { size: Math.floor(text.length / 16) }); // case 67
  });
}

Deno.test("tokenizer: with the margin, cut runs never count less than the encoding does", () => {
  for (const unit of ["x", "ab1", " ", "\u65e5", "=-", "Mississippi", "\ud83d\ude42"]) {
    for (const length of [63, 64, 65, 128, 129, 500, 1_500]) {
      const text = `Say ${times(unit, length)} again`;
      assert.ok(withTokenizerMargin(count(text)) >= countTokens(text), `${unit} * ${length}`); // case 67
    }
  }
});

async function promptTokens(body: Record<string, unknown>): Promise<number> {
  const asked = { model: "test-model", ...body } as Parameters<typeof readChatRequest>[0];
  const read = readChatRequest(asked, { bytes: 0, fields: { unknown: "refuse", allowed: [] } });
  const media = { chars: 0, tokens: 0 };
  const stretch = new TimeSlice(createHandClock());
  return await countPrompt(chatFormat, read, { media, count, slice: stretch, most: Infinity });
}

Deno.test("tokenizer: a prompt counts its text, its names, its calls and its tools", async () => {
  const base = { messages: [{ role: "user", content: "Hi" }] };
  const alone = await promptTokens(base);
  assert.equal(alone, 8);
  const call = { id: "c", type: "function", function: { name: "f", arguments: '{"a":1}' } };
  const longer: Record<string, unknown>[] = [
    { messages: [{ role: "user", name: "ada", content: "Hi" }] },
    { messages: [{ role: "user", content: [{ type: "text", text: "Hi there" }] }] },
    { messages: [{ role: "assistant", content: "Hi", tool_calls: [call] }] },
    { messages: [{ role: "assistant", content: "Hi", refusal: "No" }] },
    { messages: [...base.messages, { role: "tool", tool_call_id: "c", content: null }] },
    { ...base, tools: [{ type: "function", function: { name: "f" } }] },
    { ...base, functions: [{ name: "f" }] },
    { ...base, response_format: { type: "json_schema", json_schema: { name: "n" } } },
  ];
  for (const body of longer) {
    assert.ok(await promptTokens(body) > alone, JSON.stringify(body)); // case 32
  }
});

Deno.test("tokenizer: hostile prompts of users who can pay little all get a response", async () => {
  const models = { "test-model": { ...testPricing.models["test-model"], maxOutputTokens: 100 } };
  using world = await createWorld({ project: { pricing: { models } } });
  await world.deposit("ada", "0.2");
  const answers = await Promise.all(
    ["x", " ", "<|endoftext|>"].map((unit) =>
      chat(world, { messages: [{ role: "user", content: times(unit) }] })
    ),
  );
  assert.deepEqual(answers.map(({ status }) => status), [200, 200, 200]); // case 67
});

Deno.test("tokenizer: a response that is one run of millions is counted, and charged", async () => {
  using world = await createWorld();
  await world.deposit("ada", "100");
  const message = { role: "assistant", content: "a".repeat(7_000_000) };
  world.upstream.once(() =>
    completion({ choices: [{ index: 0, message, finish_reason: "stop" }], usage: null })
  );
  const { status } = await chat(world);
  assert.equal(status, 200);
  const { balance, held } = await world.balance("ada");
  assert.equal(held, "0");
  assert.ok(Number(balance) < 99.5, balance);
});
