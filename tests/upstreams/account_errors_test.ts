import assert from "node:assert/strict";
import { isAccountError } from "../../src/upstreams/account_errors.ts";
import { readUpstreamError } from "../../src/upstreams/error_body.ts";
import { chat, chatStream, usageOf } from "../support/chat.ts";
import { askedOf, replies, routedWorld } from "../support/routing.ts";
import { completion, sse } from "../support/upstream.ts";
import { createWorld } from "../support/world.ts";

const openai = (message: string, more = {}) => ({
  error: { message, type: "invalid_request_error", param: null, code: null, ...more },
});
const anthropic = (message: string, type = "invalid_request_error") => ({
  type: "error",
  error: { type, message },
});
const google = (message: string, more = {}) => [{ error: { code: 400, message, ...more } }];
const keyInvalid = { details: [{ reason: "API_KEY_INVALID" }] };

/** Errors about the operator's account or key, as providers send them. */
const accounts: [whose: string, status: number, body: unknown][] = [
  [
    "Anthropic",
    400,
    anthropic(
      "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.",
    ),
  ],
  [
    "Anthropic",
    400,
    anthropic(
      "You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.",
    ),
  ],
  ["Anthropic", 400, anthropic("This organization has been disabled.")],
  ["Anthropic", 404, anthropic("invalid x-api-key", "authentication_error")],
  ["Google", 400, google("API key not valid. Please pass a valid API key.", keyInvalid)],
  ["Google", 400, google("API key not valid. Please pass a valid API key.")],
  ["Google", 400, google("API key expired. Please renew the API key.")],
  ["Google", 400, google("User location is not supported for the API use.")],
  [
    "Google",
    429,
    google("You exceeded your current quota, please check your plan and billing details."),
  ],
  ["Google", 429, google("Your prepayment credits are depleted.")],
  ["OpenAI", 429, openai("You exceeded your current quota.", { code: "insufficient_quota" })],
  [
    "OpenAI",
    429,
    openai("You exceeded your current quota, please check your plan and billing details."),
  ],
  ["OpenAI", 400, openai("Billing hard limit has been reached")],
  [
    "OpenAI",
    400,
    openai("Your organization must be verified to stream this model.", { param: "stream" }),
  ],
  ["OpenAI", 404, openai("No such organization: org-abc.", { code: "invalid_organization" })],
  ["OpenRouter", 400, openai("Insufficient credits. Add more using https://openrouter.ai/credits")],
  [
    "OpenRouter",
    404,
    openai("No endpoints found matching your data policy (Free model publication)."),
  ],
  [
    "OpenRouter",
    404,
    openai("All providers have been ignored. To change your default ignored providers, visit: x"),
  ],
  [
    "OpenRouter, of a provider behind it",
    400,
    {
      error: {
        code: 400,
        message: "Provider returned error",
        metadata: { raw: JSON.stringify(anthropic("Your credit balance is too low to go on.")) },
      },
    },
  ],
  ["Mistral", 400, { message: "Unauthorized", request_id: "x" }],
  ["Mistral", 429, { message: "Your workspace has been suspended", type: "x", code: "1300" }],
  ["DeepSeek", 400, openai("Insufficient Balance", { type: "unknown_error" })],
  ["DeepSeek", 400, openai("Authentication Fails, Your api key: ****abcd is invalid")],
  ["xAI", 400, { code: "invalid argument", error: "Incorrect API key provided: xa***yz." }],
  ["xAI", 429, { error: "Your team has used all available credits." }],
  ["Groq", 400, openai("Organization has been restricted.", { code: "organization_restricted" })],
  [
    "Moonshot",
    429,
    openai("Your account org-1 <ak> is suspended", {
      type: "exceeded_current_quota_error",
    }),
  ],
  ["Alibaba", 400, openai("Access denied.", { code: "Arrearage" })],
  ["Fireworks", 412, openai("Account acme is suspended, possibly due to the spending limit.")],
];
for (const [whose, status, body] of accounts) {
  const text = JSON.stringify(body);
  Deno.test(`account errors: ${whose}'s ${status} ${text.slice(0, 110)} is the owner's`, () => {
    assert.equal(isAccountError(readUpstreamError(status, text)), true);
  });
}

/** Errors that the caller, or a pause, can mend. */
const others: [status: number, body: unknown][] = [
  [400, openai("Invalid value: 'credit balance is too low'. Supported values are: 'a'.")],
  [400, openai('Unknown tool "Incorrect API key provided"')],
  [400, openai("The billing details of this schema are not valid", { param: "tools[0]" })],
  [400, openai("This model's maximum context length is 8192 tokens.")],
  [400, anthropic("max_tokens: 1000 > 400, which is the maximum allowed number of output tokens")],
  [400, anthropic("prompt is too long: 210000 tokens > 200000 maximum")],
  [400, google("Unable to submit request: tools[0] has no name")],
  [
    400,
    openai("Invalid prompt: your prompt was flagged as potentially violating our usage policy."),
  ],
  [404, openai("The model `gpt-9` does not exist or you do not have access to it.")],
  [404, openai("Previous response with id 'resp_1' not found.")],
  [404, openai("No endpoints found that support tool use.")],
  [
    429,
    openai(
      "Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Used 29000. You can increase your rate limit by adding a payment method to your account.",
    ),
  ],
  [
    429,
    anthropic(
      "This request would exceed your organization's rate limit of 30,000 input tokens per minute.",
      "rate_limit_error",
    ),
  ],
  [
    429,
    google(
      "You exceeded your current quota, please check your plan and billing details. Please retry in 34.07s.",
    ),
  ],
  [429, { message: "Service tier capacity exceeded for this model.", code: "3505" }],
];
for (const [status, body] of others) {
  const text = JSON.stringify(body);
  Deno.test(`account errors: ${status} ${text.slice(0, 110)} is not the owner's`, () => {
    assert.equal(isAccountError(readUpstreamError(status, text)), false);
  });
}

const tooLow = anthropic("Your credit balance is too low to access the Anthropic API.");
const answers: [string, () => Response][] = [
  ["with status 400", () => Response.json(tooLow, { status: 400 })],
  ["with status 200", () => Response.json(tooLow)],
  ["as an event", () => sse([tooLow], { done: false })],
];
for (const [how, answer] of answers) {
  Deno.test(`account errors: one ${how} is 502 for the caller, and a text for the owner's log`, async () => {
    using world = await createWorld();
    await world.deposit("ada", "1");
    world.upstream.reply(answer);
    for (const response of [await chatStream(world), (await chat(world)).response]) {
      assert.equal(response.status, 502);
      if (response.bodyUsed) continue;
      const { error } = await response.json();
      assert.equal(error.code, "upstream_unavailable");
      assert.ok(!/credit|balance/.test(error.message), error.message);
    }
    assert.match(JSON.stringify(world.logged), /credit balance is too low/);
    assert.deepEqual(await usageOf(world), []);
  });

  Deno.test(`account errors: after one ${how} the next target answers`, async () => {
    using world = await routedWorld();
    replies(world, { main: answer, spare: () => completion({ model: "b" }) });
    assert.equal((await chat(world, { model: "smart" })).status, 200);
    assert.deepEqual(askedOf(world), ["main a", "spare b"]);
  });
}
