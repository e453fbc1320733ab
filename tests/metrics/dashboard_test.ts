import assert from "node:assert/strict";
import { chat } from "../support/chat.ts";
import { familyOf, metricsToken, scrape } from "../support/prometheus.ts";
import { completion } from "../support/upstream.ts";
import { deliver, subscribe } from "../support/webhooks.ts";
import { routedProject } from "../support/targets.ts";
import { createWorld } from "../support/world.ts";

const read = (name: string) =>
  Deno.readTextFile(new URL(`../../examples/${name}`, import.meta.url));

/** The series that a Prometheus expression reads: ours, and those of a process. */
function seriesOf(expression: string): string[] {
  return [...expression.matchAll(/\b(?:farebox|process)_\w+/g)].map(([name]) => name);
}

async function usedWorld() {
  const world = await createWorld({
    env: { METRICS_TOKEN: metricsToken },
    project: routedProject,
  });
  await subscribe(world);
  await world.deposit("ada", "1");
  await chat(world);
  world.upstream.once(() => completion({ model: "gpt-4o" }));
  await chat(world, { model: "gpt-4o" });
  await deliver(world);
  // The metrics page counts itself from its second request on.
  await scrape(world);
  return world;
}

interface Dashboard {
  panels: { title: string; targets: { expr: string; legendFormat: string }[] }[];
}

Deno.test("dashboard: its queries use existing metrics, and show all of them", async () => {
  using world = await usedWorld();
  const page = await scrape(world);
  const names = new Set([...page.series.keys()].map((series) => series.replace(/\{.*/, "")));
  const { panels }: Dashboard = JSON.parse(await read("grafana.json"));
  const shown = new Set<string>();
  for (const { title, targets } of panels) {
    for (const { expr, legendFormat } of targets) {
      const asked = seriesOf(expr);
      assert.ok(asked.length > 0, title);
      for (const name of asked) {
        assert.ok(names.has(name), `${title}: ${name}`);
        shown.add(familyOf(page, name) ?? "");
      }
      const labels = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label);
      const series = [...page.series.keys()].filter((key) => key.startsWith(asked[0] ?? ""));
      for (const label of labels.filter((label) => label !== "instance")) {
        assert.ok(series.some((key) => key.includes(`${label}="`)), `${title}: ${label}`);
      }
    }
  }
  for (const family of page.types.keys()) assert.ok(shown.has(family), `${family} is not shown`);
});

Deno.test("alerts: they use existing metrics, with existing labels", async () => {
  using world = await usedWorld();
  const { series } = await scrape(world);
  const keys = [...series.keys()];
  const expressions = [...(await read("alerts.yml")).matchAll(/^ +expr: (.+)$/gm)];
  assert.equal(expressions.length, 8);
  for (const [, expression = ""] of expressions) {
    for (const [, name, label = ""] of expression.matchAll(/\b(farebox_\w+)(?:\{(.*?)\})?/g)) {
      assert.ok(keys.some((key) => key.startsWith(name ?? "") && key.includes(label)), expression);
    }
  }
});
