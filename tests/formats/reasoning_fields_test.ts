import assert from "node:assert/strict";
import { type JsonObject, parseJson } from "../../src/base/json.ts";
import { asksReasoning, thinkingBudget } from "../../src/formats/chat/reasoning.ts";

/** A body, whether it asks for reasoning, and its budget. */
const bodies: [string, boolean, number | null][] = [
  ["{}", false, null],
  ['{"reasoning_effort":"low"}', true, null],
  ['{"reasoning_effort":"none"}', false, null],
  ['{"reasoning_effort":null}', false, null],
  ['{"include_reasoning":true}', true, null],
  ['{"include_reasoning":false}', false, null],
  ['{"enable_thinking":true}', true, null],
  ['{"enable_thinking":1}', true, null],
  ['{"enable_thinking":false}', false, null],
  ['{"enable_thinking":false,"thinking_budget":8000}', false, null],
  ['{"think":"high"}', true, null],
  ['{"prompt_mode":"reasoning"}', true, null],
  ['{"chat_template_kwargs":{"enable_thinking":true}}', true, null],
  ['{"chat_template_kwargs":{"thinking":true}}', true, null],
  ['{"chat_template_kwargs":{"reasoning_effort":"high"}}', true, null],
  ['{"chat_template_kwargs":{"enable_thinking":false}}', false, null],
  ['{"thinking_budget":8000}', true, 8_000],
  ['{"thinking_budget":"8000"}', true, 8_000],
  ['{"thinking_budget":8e3}', true, 8_000],
  ['{"thinking_budget":1e400}', true, 10_000_000],
  ['{"thinking_budget":0}', false, null],
  ['{"thinking_budget":-1}', true, null],
  ['{"thinking_budget_tokens":500}', true, 500],
  ['{"thinking":{"type":"enabled","budget_tokens":8000}}', true, 8_000],
  ['{"thinking":{"type":"adaptive"}}', true, null],
  ['{"thinking":{"type":"disabled","budget_tokens":8000}}', false, null],
  ['{"thinking":{"budget_tokens":0}}', false, null],
  ['{"thinking":"disabled"}', false, null],
  ['{"reasoning":{"max_tokens":2000}}', true, 2_000],
  ['{"reasoning":{"enabled":false,"max_tokens":2000}}', false, null],
  ['{"reasoning":{"effort":"none"}}', false, null],
  ['{"google":{"thinking_config":{"thinking_budget":700}}}', true, 700],
  ['{"google":{"thinking_config":{"thinking_budget":0,"include_thoughts":true}}}', false, null],
  ['{"google":{"thinking_config":{"include_thoughts":false}}}', false, null],
  ['{"google":{"thinking_config":{"thinking_level":"low"}}}', true, null],
  ['{"extra_body":{"google":{"thinking_config":{"thinking_budget":700}}}}', true, 700],
  ['{"extra_body":{"google":{"thinking_config":{"thinking_budget":-1}}}}', true, null],
  ['{"extra_body":{"enable_thinking":true}}', true, null],
  ['{"extra_body":{"chat_template_kwargs":{"thinking":true}}}', true, null],
  ['{"thinking_budget":100,"thinking":{"budget_tokens":8000}}', true, 8_000],
];
for (const [text, asks, budget] of bodies) {
  Deno.test(`reasoning: ${text} ${asks ? "asks" : "does not ask"} for it`, () => {
    const body = parseJson(text) as JsonObject;
    assert.deepEqual([asksReasoning(body), thinkingBudget(body)], [asks, budget]);
  });
}
