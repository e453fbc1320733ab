import assert from "node:assert/strict";
import { chat, chatStream } from "../support/chat.ts";
import { assertGrowth } from "../support/growth.ts";
import { chunk } from "../support/upstream.ts";
import { createWorld } from "../support/world.ts";
import { maskOperator } from "../../src/upstreams/mask.ts";

const masked: [said: string, shown: string][] = [
  [
    "Rate limit reached for gpt-4o in organization org-abC123dEf on tokens per min: Limit 30000.",
    "Rate limit reached for gpt-4o in organization [organization] on tokens per min: Limit 30000.",
  ],
  ["Project `proj_AbCdEf123456` has no access", "Project `[project]` has no access"],
  ["Visit https://platform.openai.com/account/limits.", "Visit [URL]."],
  ["See platform.openai.com/docs/errors.", "See [URL]."],
  ["connect ECONNREFUSED 10.0.3.7:8000", "connect ECONNREFUSED [address]"],
  ["192.168.1.5 refused, ::1 too", "[address] refused, [address] too"],
  ["[fd00::12]:8000 refused", "[address] refused"],
  ["fe80::1 and 2001:db8::5 refused", "[address] and [address] refused"],
  ["http://vllm-0.models.svc:8000/v1/chat failed", "[URL] failed"],
  ["vllm.models.svc.cluster.local:8000 is down", "[address] is down"],
  ["localhost:11434 is down", "[address] is down"],
  ["Incorrect API key provided: sk-proj-****abcd.", "Incorrect API key provided: [key]."],
  ["The key ending in 4f2a is suspended", "The key ending in [key] is suspended"],
  ["gsk_abcdef123456 and AIzaSyD-abcdef123", "[key] and [key]"],
  ["Quota of project 123456789012 exceeded", "Quota of project [account] exceeded"],
  ["No quota: projects/my-proj-1/locations/us", "No quota: projects/[project]/locations/us"],
  ["arn:aws:bedrock:us-east-1:123456789012:model/x denied", "[account] denied"],
  ["Ask billing@acme.example", "Ask [email]"],
  ['File "/home/op/server.py", line 3', 'File "[path]", line 3'],
];

const unchanged = [
  "The model `gpt-4o-mini` does not exist or you do not have access to it.",
  "This model's maximum context length is 128000 tokens. However, your messages have 130000.",
  "Invalid value: 'foo'. Supported values are: 'low', 'medium', and 'high'.",
  "messages.0.content.1: Input should be a string",
  "Unknown parameter: 'messages[1].content[0].image_url'.",
  "max_tokens:4096 is above the limit of 2048 at 12:30:45",
  "organization_must_be_verified",
  "model meta-llama/Llama-3.1-8B of accounts/fireworks/models needs a project",
  "2026-01-01T10:20:30Z is not a date; version 1.2.3 is not a number",
];

Deno.test("mask: ids of accounts, URLs, addresses and keys are hidden, and the rest is not", () => {
  for (const [said, shown] of masked) assert.equal(maskOperator(said), shown);
  for (const said of unchanged) assert.equal(maskOperator(said), said);
});

Deno.test("mask: the time of a hostile text grows at most with the square of its length", async () => {
  for (
    const piece of [
      ":",
      "a.",
      "1.",
      "/app/",
      "org-",
      "https://",
      "key ",
      "*",
      "a@a.",
      "[:",
      "projects/",
    ]
  ) {
    await assertGrowth((chars) => {
      const text = piece.repeat(chars / piece.length);
      return () => maskOperator(text);
    }, { size: 500, growth: "quadratic", what: piece });
  }
});

Deno.test("mask: no more of an upstream's message is masked and shown than 2,000 characters", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const error = { message: "a.".repeat(5_000), param: "a.".repeat(5_000) };
  world.upstream.once(() => Response.json({ error }, { status: 400 }));
  const { body } = await chat(world);
  assert.equal(body.error.message.length, 2_000);
  assert.ok(body.error.param.length <= 2_000);
});

Deno.test("chat upstream: what an error says about the operator is masked, whole and in a stream", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const message = masked.map(([said]) => said).join(" ");
  const error = {
    message,
    type: "invalid_request_error",
    param: "org-abC123dEf",
    code: "proj_abc1",
  };
  const replies: (() => Response)[] = [
    () => Response.json({ error }, { status: 400 }),
    () => Response.json({ error }, { status: 429 }),
    () => Response.json({ detail: message }, { status: 422 }),
    () => Response.json({ error: { ...error, code: 400 } }),
    () => Response.json({ error: { message: "", metadata: { raw: message } } }, { status: 400 }),
  ];
  const hidden =
    /org-abC|proj_|https?:|openai\.com|10\.0\.3|192\.168|fd00|svc|localhost|abcd|4f2a|1234567|acme/;
  const assertHidden = (text: string) => assert.doesNotMatch(text, hidden);
  for (const reply of replies) {
    world.upstream.once(reply);
    assertHidden(JSON.stringify((await chat(world)).body));
    world.upstream.once(reply);
    assertHidden(await (await chatStream(world)).text());
  }
  const inStream = (data: unknown) => () => {
    const frames = [chunk({ role: "assistant", content: "Hel" }), data]
      .map((frame) => `data: ${JSON.stringify(frame)}\n\n`);
    return new Response(frames.join(""), { headers: { "content-type": "text/event-stream" } });
  };
  for (const data of [{ error }, { error: message }, [{ error }], { object: "error", message }]) {
    world.upstream.once(inStream(data));
    const text = await (await chatStream(world)).text();
    assert.match(text, /Hel[^]*"error"/);
    assertHidden(text);
  }
});
