import assert from "node:assert/strict";
import { responsesFormat } from "../../../src/formats/responses/responses_format.ts";
import { UsageMeter } from "../../../src/inference/meter/usage_meter.ts";
import type { KeptIds } from "../../../src/inference/upstream_response.ts";
import { meterBounds } from "../../support/meter.ts";
import {
  functionCall,
  message,
  upstreamEvents,
  upstreamResponse,
} from "../../support/responses.ts";
import type { Body } from "../../support/world.ts";

const head = { id: "resp_01K9Z0C8Q4R7T2V5X8Z1B3D5F7", created: 1, model: "m" };
const output = [message("Hi"), functionCall()];

function requestOf(fields: Body) {
  const policy = { unknown: "refuse", allowed: [] } as const;
  const body = { model: "m", input: "Hi", ...fields };
  return responsesFormat.readRequest(body, { bytes: 100, fields: policy });
}

function keptWhole(response: Body, fields: Body) {
  const bytes = new TextEncoder().encode(JSON.stringify(response));
  const options = { request: requestOf(fields), head, apiKey: null };
  return idsOf(responsesFormat.readResponse(bytes, options).kept);
}

function keptStreamed(events: Body[], fields: Body) {
  const meter = new UsageMeter({
    choices: 1,
    ...meterBounds(1_000, 1_000),
    countInput: () => Promise.resolve(1),
    clock: {
      elapsed: () => 0,
      now: () => 0,
      after: () => () => {},
      sleep: () => Promise.resolve(),
    },
  });
  const notice = { atLength: null, atEnd: null };
  const request = requestOf(fields);
  const stream = responsesFormat.createStream({ request, meter, head, apiKey: null, notice });
  stream.takeAll(events.map((event) => ({
    id: undefined,
    event: event.type,
    data: JSON.stringify(event),
  })));
  return idsOf(stream.kept);
}

function idsOf(kept: KeptIds | null | undefined) {
  return kept ? { response: kept.response, items: kept.items } : null;
}

Deno.test("responses: what the upstream keeps is named by its own ids, unless nothing is stored", () => {
  const all = { response: "resp_up", items: ["msg_up", "fc_up"] };
  const stored: [Body, Body, unknown][] = [
    [{}, {}, all],
    [{ store: true }, {}, all],
    [{ store: null }, {}, all],
    [{ store: false }, {}, null],
    [{}, { store: false }, null],
    [{}, { id: undefined }, null],
  ];
  for (const [fields, more, kept] of stored) {
    const response = upstreamResponse({ output, ...more });
    assert.deepEqual(keptWhole(response, fields), kept);
    assert.deepEqual(keptStreamed(upstreamEvents(response), fields), kept);
  }
  const broken = upstreamEvents(upstreamResponse({ output })).slice(0, 8);
  assert.deepEqual(keptStreamed(broken, {}), { response: "resp_up", items: ["msg_up"] });
  const bare = message("Hi", { id: undefined });
  const response = upstreamResponse({ output: [bare] });
  assert.deepEqual(keptWhole(response, {}), { response: "resp_up", items: [] });
  assert.deepEqual(keptStreamed(upstreamEvents(response), {}), { response: "resp_up", items: [] });
});
