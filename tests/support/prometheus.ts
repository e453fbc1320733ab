import assert from "node:assert/strict";
import { chat } from "./chat.ts";
import { settle } from "./clock.ts";
import { createScriptedStore, type ScriptedStore } from "./store.ts";
import { createWorld, type World } from "./world.ts";

export const metricsToken = "a-token-for-prometheus";

/** A page of metrics, as Prometheus reads it. */
interface MetricsPage {
  /** By family: its type. */
  types: Map<string, string>;
  /** By series, such as `a_total{of="chat"}`: its value. */
  series: Map<string, number>;
}

const name = "[a-zA-Z_:][a-zA-Z0-9_:]*";
const label = `[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\\\\n]|\\\\["\\\\n])*"`;
const sample = new RegExp(`^(${name})(\\{${label}(?:,${label})*\\})? (\\S+)$`);

/**
 * Reads the text format 0.0.4. Fails at an invalid line, a duplicate series, a series whose family
 * was not declared, and a histogram whose buckets do not add up.
 */
function parseMetrics(text: string): MetricsPage {
  const page: MetricsPage = { types: new Map(), series: new Map() };
  assert.ok(text.endsWith("\n"));
  for (const line of text.split("\n")) {
    if (line === "" || /^# HELP \S+ \S/.test(line)) continue;
    const type = /^# TYPE (\S+) (counter|gauge|histogram)$/.exec(line);
    if (type?.[1] && type[2]) {
      assert.ok(!page.types.has(type[1]), line);
      page.types.set(type[1], type[2]);
      continue;
    }
    const [, metric = "", labels = "", value = ""] = sample.exec(line) ?? assert.fail(line);
    assert.ok(familyOf(page, metric), line);
    assert.ok(!page.series.has(metric + labels), line);
    assert.ok(/^nan$/i.test(value) || Number.isFinite(Number(value)), line);
    page.series.set(metric + labels, Number(value));
  }
  assertBuckets(page);
  return page;
}

/** Returns the family of a series' name. */
export function familyOf({ types }: MetricsPage, metric: string): string | undefined {
  if (types.has(metric)) return metric;
  const base = metric.replace(/_(bucket|sum|count)$/, "");
  return types.get(base) === "histogram" ? base : undefined;
}

function assertBuckets({ series }: MetricsPage): void {
  let before = 0;
  for (const [key, value] of series) {
    if (!key.includes("_bucket{")) {
      before = 0;
      continue;
    }
    assert.ok(value >= before, key);
    before = value;
    if (!key.includes('le="+Inf"')) continue;
    const rest = key.replace(/,?le="\+Inf"/, "").replace("_bucket", "_count").replace("{}", "");
    assert.equal(series.get(rest), value, key);
    before = 0;
  }
}

/** Reads a world's metrics. */
export async function scrape(world: World): Promise<MetricsPage> {
  const response = await world.call("/metrics", { key: metricsToken });
  const text = await response.text();
  assert.equal(response.status, 200, text);
  assert.equal(response.headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  return parseMetrics(text);
}

/** How to set up a world. */
export type Options = Parameters<typeof createWorld>[0];

/** A world that serves its metrics, and whose store can be made to fail. */
export async function openMetered(
  options: Options = {},
): Promise<World & { store: ScriptedStore }> {
  const store = createScriptedStore();
  const env = { METRICS_TOKEN: metricsToken, ...options?.env };
  const world = await createWorld({ wrapKv: store.wrap, ...options, env });
  return Object.assign(world, { store });
}

/** A response that does not end before `meanwhile` has. */
export async function whileAnswering(
  world: World,
  meanwhile: () => Promise<unknown>,
): Promise<void> {
  const gate = Promise.withResolvers<Response>();
  world.upstream.once(() => gate.promise);
  const answer = chat(world);
  await settle();
  await meanwhile();
  gate.resolve(Response.json({ choices: [] }));
  await answer;
}
