import assert from "node:assert/strict";
import { completionsPath as chatPath } from "../support/chat.ts";
import { eventually, makeFolder, serviceEnv, startFarebox } from "../support/process.ts";
import { receiverEnv, startReceiver } from "../support/receiver.ts";
import { makeProject, startSlowUpstream } from "../support/traffic.ts";
import { adminKey, type Body } from "../support/world.ts";

interface Span {
  name: string;
  traceId: string;
  spanId: string;
  parentSpanId: string;
  links: string[];
  attributes: Record<string, unknown>;
}

/** A collector of traces, by OTLP in JSON. */
function startCollector() {
  const spans: Span[] = [];
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const body: Body = await request.json();
    for (const { scopeSpans } of body.resourceSpans ?? []) {
      for (const scope of scopeSpans) spans.push(...scope.spans.map(toSpan));
    }
    return Response.json({});
  });
  return {
    url: `http://127.0.0.1:${server.addr.port}`,
    spans,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

function toSpan({ name, traceId, spanId, parentSpanId, links, attributes }: Body): Span {
  const values = attributes.map(({ key, value }: Body) => [key, Object.values(value)[0]]);
  return {
    name,
    traceId,
    spanId,
    parentSpanId,
    links: (links ?? []).map(({ spanId }: Body) => spanId),
    attributes: Object.fromEntries(values),
  };
}

Deno.test("tracing: a chat and its delivery are traced step by step", async () => {
  await using folder = await makeFolder();
  await using collector = startCollector();
  await using upstream = startSlowUpstream(() => 5);
  await using receiver = startReceiver();
  const { spans } = collector;
  const env = {
    ...serviceEnv,
    ...receiverEnv,
    UPSTREAM_URL: upstream.url,
    OTEL_DENO: "true",
    OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_BSP_SCHEDULE_DELAY: "100",
  };
  await using farebox = await startFarebox({ folder: folder.path, env });
  const key = await makeProject(farebox);
  await farebox.json("/v1/webhooks/subscriptions", {
    key,
    body: { url: receiver.url, events: ["proxy.request.completed"] },
  });
  await farebox.json("/v1/user/balance/deposit", { key, body: { user: "ada", amount: "1" } });
  const traceId = "0af7651916cd43dd8448eb211c80319c";
  const caller = "b7ad6b7169203331";
  const answer = await fetch(farebox.url + chatPath, {
    method: "POST",
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      traceparent: `00-${traceId}-${caller}-01`,
    },
    body: JSON.stringify({
      model: "test-model",
      user: "ada",
      messages: [{ role: "user", content: "a secret of Ada's" }],
    }),
  });
  assert.equal(answer.status, 200, await answer.text());
  await eventually(() => receiver.events.size === 1, { what: "the delivery" });
  farebox.signal("SIGTERM");
  assert.equal((await farebox.ended).code, 0);
  const find = (name: string) => {
    const [span, another] = spans.filter((span) => span.name === name);
    assert.ok(span && !another, `${name} is there once`);
    return span;
  };

  const request = find("POST /v1/chat/completions");
  assert.deepEqual(
    [request.traceId, request.parentSpanId],
    [traceId, caller],
    "the caller's trace",
  );
  assert.equal(request.attributes["http.route"], "/v1/chat/completions");
  const chat = find("chat");
  assert.deepEqual([chat.traceId, chat.parentSpanId], [traceId, request.spanId]);
  assert.equal(chat.attributes["farebox.outcome"], "completed");
  assert.equal(chat.attributes["gen_ai.request.model"], "test-model");
  for (const step of ["admit", "forward", "meter", "settle"]) {
    assert.equal(find(step).parentSpanId, chat.spanId, step);
  }
  const calls = spans.filter(({ name }) => name === "POST");
  const call = calls.find(({ traceId }) => traceId === chat.traceId);
  assert.equal(call?.parentSpanId, find("forward").spanId, "the model's server is asked within it");

  const delivery = find("delivery");
  assert.notEqual(delivery.traceId, traceId, "it may come much later, and more than once");
  assert.deepEqual([delivery.parentSpanId, delivery.links], ["", [chat.spanId]]);
  assert.equal(delivery.attributes["farebox.event_type"], "proxy.request.completed");
  assert.equal(Number(delivery.attributes["farebox.attempt"]), 1);
  assert.equal(delivery.attributes["farebox.result"], "2xx");
  for (const step of ["prepare", "send", "record"]) {
    assert.equal(find(step).parentSpanId, delivery.spanId, step);
  }
  const post = calls.find(({ traceId }) => traceId === delivery.traceId);
  assert.equal(post?.parentSpanId, find("send").spanId);

  const told = JSON.stringify(spans);
  for (const secret of [key, adminKey, "secret of Ada"]) assert.ok(!told.includes(secret));
  const lines = farebox.output().split("\n").filter((line) => line.startsWith("{"));
  const line = lines.map((line) => JSON.parse(line)).find(({ path }) => path === chatPath);
  assert.equal(line.traceId, traceId, "the log leads to the trace");
});
