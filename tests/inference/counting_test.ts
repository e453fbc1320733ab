import assert from "node:assert/strict";
import { countTokens } from "gpt-tokenizer/o200k";
import { fromDecimal, toAmount, zero } from "../../src/base/money.ts";
import { UsageMeter } from "../../src/inference/meter/usage_meter.ts";
import { createCountingQueue } from "../../src/inference/admit/prompt_counting.ts";
import { pricedCall } from "../../src/inference/admit/priced_call.ts";
import { wholePercent } from "../../src/pricing/price.ts";
import { compilePrices } from "../../src/pricing/price_level.ts";
import type { ModelTerms } from "../../src/pricing/terms.ts";
import { chatFormat } from "../../src/formats/chat/chat_format.ts";
import { countPrompt } from "../../src/inference/admit/prompt_size.ts";
import { type PromptSize, quoteTarget } from "../../src/inference/admit/quote.ts";
import { readChatRequest } from "../../src/formats/chat/request.ts";
import { TimeSlice } from "../../src/base/time_slice.ts";
import { loadTokenizer, sliceAt } from "../../src/pricing/tokenizer.ts";
import { meterBounds } from "../support/meter.ts";
import { chat } from "../support/chat.ts";
import { countReads, createHandClock } from "../support/clock.ts";
import { mulberry32 } from "../support/random.ts";
import { createWorld } from "../support/world.ts";

const count = await loadTokenizer();
const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const media = { chars: 0, tokens: 0 };

/** The slowest kind of text: words that are not in the vocabulary. */
function randomWords(chars: number, random = mulberry32(7)): string {
  let text = "";
  while (text.length < chars) {
    for (let n = 0; n < 64; n++) text += letters[Math.floor(random() * letters.length)];
    text += " ";
  }
  return text;
}

/** Very many short messages of it. */
function manyMessages(messages: number) {
  const random = mulberry32(8);
  return Array.from({ length: messages }, () => ({
    role: "user",
    content: randomWords(390, random),
  }));
}

const readMessages = (messages: { role: string; content: string }[]) =>
  readChatRequest({ model: "m", messages }, {
    bytes: messages.length * 400,
    fields: { unknown: "refuse", allowed: [] },
  });

const realClock = {
  ...createHandClock(),
  elapsed: () => performance.now(),
  sleep: (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms)),
};

function slicesOf(text: string): string[] {
  const slices: string[] = [];
  for (let from = 0; from < text.length; from += slices.at(-1)?.length ?? 0) {
    slices.push(sliceAt(text, from));
  }
  return slices;
}

Deno.test("counting: slices of prose count as many tokens as the whole", () => {
  const texts = [
    "The quick brown fox isn't as lazy as the dog, is it?\n\n  And again.\n",
    "const x = { a: [1, 2] };\n\tif (x.a[0] === 1) {\n    return `${x}`; // why\n}\n",
    "na\u00efve caf\u00e9 \u0440\u0443\u0441\u0441\u043a\u0438\u0439 \ud83d\udc69\u200d\ud83d\ude80 and 12345 more ",
  ];
  for (const text of texts) {
    const long = text.repeat(Math.ceil(40_000 / text.length));
    const slices = slicesOf(long);
    assert.equal(slices.join(""), long);
    assert.ok(slices.length >= 20, `${slices.length}`);
    const counted = slices.reduce((sum, slice) => sum + count(slice), 0);
    assert.equal(counted, countTokens(long), text);
  }
});

Deno.test("counting: no slice ends within a character, and each cut adds at most a token", () => {
  for (const unit of ["\ud83d\ude42", "a\ud83d\ude42", "\u65e5\u672c\u8a9e"]) {
    const long = unit.repeat(10_000);
    const slices = slicesOf(long);
    assert.equal(slices.join(""), long);
    assert.ok(slices.every((slice) => slice.isWellFormed()), unit);
    assert.ok(slices.every((slice) => slice.length <= 2_048), unit);
  }
});

Deno.test("counting: others run after every few milliseconds of it, however many prompts are counted at once", async () => {
  const read = readMessages(manyMessages(1_000));
  // A millisecond passes for each thousand characters that are counted.
  let [elapsedMs, othersRanAt, worstMs, turns] = [0, 0, 0, 0];
  const clock = { ...realClock, elapsed: () => elapsedMs };
  const slowly = (text: string) => {
    elapsedMs += text.length / 1_000;
    return text.length;
  };
  const counted = Array.from({ length: 3 }, () => {
    const slice = new TimeSlice(clock);
    return countPrompt(chatFormat, read, { media, count: slowly, slice, most: Infinity });
  });
  const others = setInterval(() => {
    turns++;
    worstMs = Math.max(worstMs, elapsedMs - othersRanAt);
    othersRanAt = elapsedMs;
  }, 0);
  const results = await Promise.all(counted);
  clearInterval(others);
  assert.equal(new Set(results).size, 1);
  // Without a pause, each takes 390 ms.
  assert.ok(elapsedMs > 1_000 && turns > 100, `${elapsedMs} ms, ${turns} turns`);
  // Of all three, one continues after each pause.
  assert.ok(worstMs < 12, `${worstMs} ms`);
});

Deno.test("counting: a prompt is counted no further than it can be paid", async () => {
  const read = readMessages(manyMessages(2_000));
  let chars = 0;
  const seen = (text: string) => {
    chars += text.length;
    return count(text);
  };
  const most = 4 * 2_000 + 1_000;
  const stretch = new TimeSlice(createHandClock());
  const tokens = await countPrompt(chatFormat, read, { media, count: seen, slice: stretch, most });
  assert.ok(tokens > most && tokens < most + 2_048, `${tokens}`);
  assert.ok(chars < 5_000, `${chars}`);
});

Deno.test("counting: a chat of 5 MB that a cent cannot pay is refused at once", async () => {
  using world = await createWorld();
  await world.deposit("ada", "0.01");
  const messages = manyMessages(12_000);
  const steps = countReads(world.clock);
  const { status, response, body } = await chat(world, { messages });
  assert.equal(status, 200);
  assert.equal(response.headers.get("x-service-paywall"), "insufficient_funds");
  assert.equal(body.paywall.reason, "insufficient_funds");
  // Counting all of it takes a step for each message.
  assert.ok(steps() < 4_000, `${steps()} steps`);
  assert.deepEqual(await world.balance("ada"), { balance: "0.01", held: "0", available: "0.01" });
});

const rate = fromDecimal("1");
const terms: ModelTerms = {
  price: {
    table: compilePrices({ input: "1", output: "1" }).always,
    requestFee: zero,
    minimum: zero,
    percent: wholePercent,
    statedPercent: null,
  },
  listPrice: null,
  fromCatalogue: false,
  maxToolCalls: null,
  maxOutputTokens: 100,
  modelOutputTokens: Infinity,
  usualOutputTokens: 16_384,
  minOutputTokens: 10,
  minStructuredOutputTokens: 10,
  mediaTokens: {},
  reasoning: false,
  onAbort: null,
  displayName: null,
  description: null,
};

/** The response where the balance pays for this many tokens. */
function quoteFor(tokens: number, prompt: Partial<PromptSize>, its = terms) {
  const asked = readMessages([{ role: "user", content: "Hi" }]);
  const size = { bound: 1_000_000, counted: null, atLeast: 0, ...prompt };
  const money = toAmount(rate * BigInt(tokens) / 1_000_000n);
  const funds = { available: money, balanceOnly: money, withoutOwnHolds: money, balance: money };
  const priced = pricedCall(asked, its, { hasMedia: false });
  return quoteTarget(asked, its, { priced, prompt: size, reasons: false })(funds);
}

Deno.test("counting: it stops at what the shortest response leaves money for, and does not go further again", () => {
  assert.deepEqual(quoteFor(1_000, {}), { countTo: 990 });
  assert.equal(quoteFor(9, {}), null);
  assert.equal(quoteFor(1_000, { atLeast: 991 }), null, "what is known of it is too much already");
  assert.deepEqual(quoteFor(2_000, { atLeast: 991 }), { countTo: 1_990 }, "money came meanwhile");
  assert.deepEqual(quoteFor(1_000, { counted: 990 }), {
    amount: toAmount(rate / 1_000n),
    cap: 10,
    limitedBy: "balance",
    reducedByHolds: false,
    balance: toAmount(rate / 1_000n),
  });
  assert.equal(quoteFor(1_000, { counted: 991 }), null);
});

Deno.test("counting: a prompt that costs nothing is not counted", () => {
  const { always: table } = compilePrices({ input: "0", output: "1" });
  const price = { ...terms.price, table };
  const quote = quoteFor(50, {}, { ...terms, price });
  assert.equal(quote && "cap" in quote && quote.cap, 50);
  assert.equal(quoteFor(9, {}, { ...terms, price }), null);
});

Deno.test("counting: a response that is counted twice at once is counted once, and completely", async () => {
  const text = randomWords(100_000);
  const countInput = () => Promise.resolve(0);
  const meter = new UsageMeter({ choices: 1, ...meterBounds(1, 1), countInput, clock: realClock });
  meter.addText(text);
  const both = await Promise.all([meter.countOutput(), meter.countOutput()]);
  meter.addText("Hi");
  assert.deepEqual(both, [count(text), count(text)]);
  assert.equal(await meter.countOutput(), count(text) + 1);
});

Deno.test("counting: a prompt with more words than can be paid is refused without being counted", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const messages = [{ role: "user", content: "word ".repeat(3_800_000) }];
  const steps = countReads(world.clock);
  const { body } = await chat(world, { messages });
  assert.equal(body.paywall?.reason, "insufficient_funds");
  // Counting a million tokens of it takes thousands of steps.
  assert.ok(steps() < 500, `${steps()} steps`);
});

Deno.test("counting: prompts of one user are counted one after the other, those of others at once", async () => {
  const queue = createCountingQueue();
  const running = new Map<string, number>();
  let most = 0;
  const count = (user: string) => async () => {
    running.set(user, (running.get(user) ?? 0) + 1);
    assert.equal(running.get(user), 1, user);
    most = Math.max(most, [...running.values()].reduce((sum, n) => sum + n, 0));
    await new Promise((resolve) => setTimeout(resolve, 1));
    running.set(user, (running.get(user) ?? 0) - 1);
    if (user === "eve") throw new Error("left");
    return user;
  };
  const users = ["ada", "ada", "eve", "bob", "eve", "ada"];
  const counted = await Promise.allSettled(
    users.map((user) => queue({ projectId: "p", user }, count(user))),
  );
  assert.deepEqual(
    counted.map((one) => (one.status === "fulfilled" ? one.value : "left")),
    ["ada", "ada", "left", "bob", "left", "ada"],
  );
  assert.equal(most, 3);
});

Deno.test("counting: it ends when the caller has left", async () => {
  const left = new Error("left");
  const asked = readMessages([{ role: "user", content: randomWords(400_000) }]);
  let yields = 0;
  const counting = countPrompt(chatFormat, asked, {
    media,
    count,
    slice: new TimeSlice(realClock),
    most: Infinity,
    onYield() {
      if (++yields === 3) throw left;
    },
  });
  await assert.rejects(counting, left);
});
