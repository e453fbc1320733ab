import assert from "node:assert/strict";
import fc from "fast-check";
import { countTokens } from "gpt-tokenizer/o200k";
import { TimeSlice } from "../../src/base/time_slice.ts";
import { chatFormat } from "../../src/formats/chat/chat_format.ts";
import { readChatRequest } from "../../src/formats/chat/request.ts";
import { createCountingBudget } from "../../src/inference/admit/prompt_counting.ts";
import { boundByBytes, countPrompt, leastTokens } from "../../src/inference/admit/prompt_size.ts";
import { loadTokenizer, withTokenizerMargin } from "../../src/pricing/tokenizer.ts";
import { chat, until, usageOf } from "../support/chat.ts";
import { countReads, createHandClock } from "../support/clock.ts";
import { always } from "../support/property.ts";
import { completion, usage } from "../support/upstream.ts";
import { createWorld, type World } from "../support/world.ts";

const count = await loadTokenizer();
const media = { chars: 0, tokens: 0 };
const bytesOf = (text: string) => new TextEncoder().encode(text).length;
const anyAmount = { slice: new TimeSlice(createHandClock()), most: Infinity };

const from = (units: string, maxLength: number, separator = "") =>
  fc.array(fc.constantFrom(...units.split("|")), { maxLength })
    .map((parts) => parts.join(separator));
const codePoints = (low: number, high: number, maxLength: number) =>
  fc.array(fc.integer({ min: low, max: high }), { maxLength })
    .map((points) => String.fromCodePoint(...points));
const run = (unit: string, max: number) => fc.nat(max).map((times) => unit.repeat(times));

/** Texts in several scripts, and those that tokenizers join or split most. */
const scripts: Record<string, fc.Arbitrary<string>> = {
  latin: from("the|quick|Fox|isn't|naïve|Straße|a|I|antidisestablishment|e.g.|42", 80, " "),
  "code and comments": from("//|\n|//\n|}|;| |\t|x|=|*/|/*|#|();|if|{|0", 120),
  chinese: codePoints(0x4e00, 0x9fff, 200),
  japanese: codePoints(0x3041, 0x30ff, 200),
  korean: codePoints(0xac00, 0xd7a3, 200),
  arabic: codePoints(0x621, 0x64a, 200),
  devanagari: codePoints(0x905, 0x94d, 200),
  emoji: from("🙂|👩‍🚀|🏳️‍🌈|🇩🇪|✈️|👍🏽|😀| ", 60),
  base64: fc.uint8Array({ maxLength: 400 }).map((bytes) => bytes.toBase64()),
  digits: from("0|1|9|123|4567| |.|,|-", 200),
  "runs of blanks": from(" |  |\n|\t|\r\n|\u00a0|\u3000|a", 200),
  "one run of blanks": run(" ", 600),
  "one run of letters": run("x", 600),
  "words and blanks": run("a ", 400),
  "single signs": run(". ", 400),
  "blanks of two kinds": run(" \u00a0", 300),
  "special tokens": from("<|endoftext|>|<|im_start|>|user|\n", 40),
  "any characters": codePoints(0, 0x10ffff, 100),
  json: fc.json({ maxDepth: 4 }),
};

for (const [name, texts] of Object.entries(scripts)) {
  Deno.test(`prompt bounds: lower bound, count and upper bound are in order: ${name}`, () =>
    always(
      80,
      fc.asyncProperty(texts, async (text) => {
        const real = countTokens(text, { disallowedSpecial: new Set() });
        const { tokens: least, chars } = await leastTokens([text], anyAmount);
        assert.ok(least <= real, `${least} > ${real}`);
        assert.ok(withTokenizerMargin(count(text)) >= real, `${count(text)} < ${real}`);
        assert.ok(real <= bytesOf(text), `${real} > ${bytesOf(text)}`);
        assert.equal(chars, text.length);
        const body = { model: "m", messages: [{ role: "user", content: text }] };
        const bytes = bytesOf(JSON.stringify(body));
        const read = readChatRequest(body, { bytes, fields: { unknown: "refuse", allowed: [] } });
        const counted = await countPrompt(chatFormat, read, { media, count, ...anyAmount });
        const texts = chatFormat.promptTexts(read);
        assert.ok((await leastTokens(texts, anyAmount)).tokens <= counted);
        assert.ok(real <= boundByBytes(read, media));
      }),
    ));
}

Deno.test("prompt bounds: the lower bound is found without blocking others, and stops when it is enough", async () => {
  const texts = ["word ".repeat(4_000_000), "word ".repeat(1_000)];
  let [yields, elapsed] = [0, 0];
  const clock = {
    ...createHandClock(),
    elapsed: () => (elapsed += 1),
    sleep: () => Promise.resolve(),
  };
  const onYield = () => void yields++;
  const all = await leastTokens(texts, { slice: new TimeSlice(clock), most: Infinity, onYield });
  assert.deepEqual(all, { tokens: 4_001_000, chars: 20_005_000 });
  assert.ok(yields > 50, `${yields}`);
  const { tokens, chars } = await leastTokens(texts, { ...anyAmount, most: 200_000 });
  assert.ok(tokens > 200_000 && tokens < 250_000 && chars < 1_200_000, `${tokens}, ${chars}`);
  const left = new Error("left");
  const leave = () => {
    throw left;
  };
  const leaving = leastTokens(texts, {
    slice: new TimeSlice(clock),
    most: Infinity,
    onYield: leave,
  });
  await assert.rejects(leaving, left);
});

Deno.test("prompt bounds: a user's budget of counted tokens fills up within a minute, each its own", async () => {
  const clock = createHandClock();
  const budget = createCountingBudget(clock);
  const [ada, bob] = [{ projectId: "p", user: "ada" }, { projectId: "p", user: "bob" }];
  assert.equal(budget.remaining(ada), 500_000);
  budget.take(ada, 400_000);
  budget.take(ada, 150_000);
  assert.deepEqual([budget.remaining(ada), budget.remaining(bob)], [0, 500_000]);
  await clock.advance(30_000);
  assert.equal(budget.remaining(ada), 200_000);
  await clock.advance(60_000);
  assert.equal(budget.remaining(ada), 500_000);
});

Deno.test("prompt bounds: budgets of very many users do not grow without limit", () => {
  const budget = createCountingBudget(createHandClock());
  for (let at = 0; at < 30_000; at++) budget.take({ projectId: "p", user: `user-${at}` }, 1_000);
  assert.equal(budget.remaining({ projectId: "p", user: "user-29999" }), 499_000);
  assert.equal(budget.remaining({ projectId: "p", user: "user-1" }), 500_000);
});

const models = { "test-model": { input: "1", output: "1", maxOutputTokens: 100 } };
/** 80,000 tokens in 480,000 bytes: a balance of 0.2 pays for the tokens, not for the bytes. */
const messages = [{ role: "user", content: "words ".repeat(80_000) }];

async function poorWorld(): Promise<World> {
  const world = await createWorld({ project: { pricing: { models } } });
  for (const user of ["ada", "bob"]) await world.deposit(user, "0.2");
  world.upstream.reply(() => completion({ usage: usage(100, 10) }));
  return world;
}

Deno.test("prompt bounds: counting is repeated until the user's budget is used up, then bytes are held", async () => {
  using world = await poorWorld();
  const reasons: string[] = [];
  for (let n = 0; n < 8; n++) {
    const { body } = await until(world, chat(world, { messages }), 10);
    reasons.push(body.paywall?.reason ?? "paid");
  }
  assert.deepEqual(reasons.slice(0, 5), new Array(5).fill("paid"));
  assert.deepEqual(reasons.slice(-2), new Array(2).fill("insufficient_funds"));
  const other = await until(world, chat(world, { messages, user: "bob" }), 10);
  assert.equal(other.body.paywall, undefined);
  await world.clock.advance(60_000);
  const later = await until(world, chat(world, { messages }), 10);
  assert.equal(later.body.paywall, undefined);
  // Whoever can pay for the bytes needs no count.
  await world.deposit("ada", "5");
  for (let n = 0; n < 8; n++) {
    assert.equal((await chat(world, { messages })).body.paywall, undefined);
  }
  assert.ok((await usageOf(world)).length >= 14);
});

Deno.test("prompt bounds: prompts that are refused use up the budget too", async () => {
  using world = await createWorld({ project: { pricing: { models } } });
  await world.deposit("ada", "1");
  // Without words the lower bound is low, so that it has to be counted.
  const hostile = [{ role: "user", content: "日本".repeat(700_000) }];
  const reads = countReads(world.clock);
  const steps: number[] = [];
  for (let n = 0; n < 4; n++) {
    const before = reads();
    const { body } = await chat(world, { messages: hostile });
    assert.equal(body.paywall?.reason, "insufficient_funds");
    steps.push(reads() - before);
  }
  const [first = 0, last = Infinity] = [steps[0], steps.at(-1)];
  assert.ok(first > 200 && last < 50, steps.join(", "));
  assert.equal(world.upstream.calls.length, 0);
});

Deno.test("prompt bounds: what is counted for refused prompts of ever new users takes from their key", async () => {
  using world = await createWorld({ project: { pricing: { models }, trialCredits: "0.1" } });
  world.upstream.reply(() => completion({ usage: usage(100, 10) }));
  const payable = [{ role: "user", content: "words ".repeat(40_000) }];
  const hostile = [{ role: "user", content: "日本".repeat(200_000) }];
  const reasonOf = async (user: string, messages: unknown) =>
    (await until(world, chat(world, { user, messages }), 10)).body.paywall?.reason;
  assert.equal(await reasonOf("first", payable), undefined);
  for (let n = 0; n < 12; n++) {
    assert.equal(await reasonOf(`hostile-${n}`, hostile), "insufficient_funds");
  }
  // Bytes are held, as where a user's own budget is used up.
  assert.equal(await reasonOf("second", payable), "insufficient_funds");
  await world.clock.advance(60_000);
  assert.equal(await reasonOf("third", payable), undefined);
  // What is paid for takes nothing from it.
  for (let n = 0; n < 30; n++) assert.equal(await reasonOf(`paid-${n}`, payable), undefined);
});
