import assert from "node:assert/strict";
import fc from "fast-check";
import {
  type Candidate,
  type ChoiceCall,
  orderTargets,
} from "../../src/upstreams/target_choice.ts";
import type { Targets } from "../../src/upstreams/upstream.ts";
import { always } from "../support/property.ts";
import { choiceCall, namesOf, targetsOf } from "../support/targets.ts";
import { mulberry32 } from "../support/random.ts";

const drawsMax = 20_000;
const random = mulberry32(7);

function orderOf(
  { route, targets }: Targets,
  call: ChoiceCall,
  facts: Partial<Record<string, Partial<Candidate>>> = {},
): string[] {
  assert(route);
  const candidates = targets.map((target) => ({
    target,
    isReady: true,
    firstByteMs: null,
    ...facts[target.upstream.name],
  }));
  return namesOf(orderTargets(route, candidates, call));
}

/** The share of each name among the first ones of many calls. */
function sharesOf(firstOf: (index: number) => string | undefined): (name: string) => number {
  const counts = new Map<string, number>();
  for (let index = 0; index < drawsMax; index++) {
    const name = firstOf(index) ?? "";
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return (name) => (counts.get(name) ?? 0) / drawsMax;
}

/** Within four standard deviations and a little. */
function assertShare(actual: number, expected: number): void {
  const margin = 4 * Math.sqrt(expected * (1 - expected) / drawsMax) + 0.002;
  assert(Math.abs(actual - expected) <= margin, `${actual} instead of ${expected}`);
}

Deno.test("no strategy loses or repeats a target, and those that are not ready come last", () =>
  always(
    500,
    fc.property(
      fc.constantFrom("order", "weight", "cheapest", "fastest"),
      fc.boolean(),
      fc.array(
        fc.record({
          weight: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 1e6, noNaN: true })),
          isReady: fc.boolean(),
          firstByteMs: fc.option(fc.nat(1_000)),
          cost: fc.option(fc.bigInt({ min: 0n, max: 1n << 70n })),
        }),
        { minLength: 1, maxLength: 16 },
      ),
      fc.integer(),
      (strategy, sticky, facts, seed) => {
        const named = Object.fromEntries(facts.map((fact, at) => [`u${at}`, fact]));
        const weights = Object.fromEntries(facts.map(({ weight }, at) => [`u${at}`, weight]));
        const call = choiceCall(mulberry32(seed), {
          costOf: ({ upstream }) => named[upstream.name]?.cost ?? null,
        });
        const order = orderOf(targetsOf(weights, strategy, { sticky }), call, named);
        assert.deepEqual([...order].sort(), Object.keys(weights).sort());
        const ready = order.map((name) => named[name]?.isReady);
        assert.deepEqual(ready, [...ready].sort((a, b) => Number(b) - Number(a)));
      },
    ),
  ));

Deno.test("order: the targets stay as they are listed", () => {
  assert.deepEqual(orderOf(targetsOf({ b: 1, a: 5, c: 0 }), choiceCall(random)), ["b", "a", "c"]);
});

for (const sticky of [false, true]) {
  const kind = sticky ? "by the conversation" : "by chance";

  Deno.test(`weight, ${kind}: each comes first, and second, with the share of its weight`, () => {
    const weights = { a: 3, b: 1, c: 1 };
    const orders = Array.from({ length: drawsMax }, (_, index) =>
      orderOf(
        targetsOf(weights, "weight", { sticky }),
        choiceCall(random, { stickyKey: `c${index}` }),
      ));
    const first = sharesOf((index) => orders[index]?.[0]);
    assertShare(first("a"), 0.6);
    assertShare(first("b"), 0.2);
    // Without a: equal. Without b or c: a three times in four.
    const second = sharesOf((index) => orders[index]?.[1]);
    assertShare(second("a"), 0.4 * 0.75);
    assertShare(second("c"), 0.6 * 0.5 + 0.2 * 0.25);
  });

  Deno.test(`weight, ${kind}: the weight 0 is asked last, but before an open breaker`, () => {
    for (let index = 0; index < 100; index++) {
      const order = orderOf(
        targetsOf({ zero: 0, a: 1, open: 9, b: 0.001 }, "weight", { sticky }),
        choiceCall(random, { stickyKey: `u${index}` }),
        { open: { isReady: false } },
      );
      assert.deepEqual(order.slice(2), ["zero", "open"]);
    }
  });
}

Deno.test("sticky: a key stays with its targets, and keys spread over all", () => {
  const orderFor = (stickyKey: string) =>
    orderOf(
      targetsOf({ a: 1, b: 1, c: 1 }, "weight", { sticky: true }),
      choiceCall(random, { stickyKey }),
    );
  const firsts = new Set<string | undefined>();
  for (let index = 0; index < 50; index++) {
    const order = orderFor(`c${index}`);
    assert.deepEqual(orderFor(`c${index}`), order);
    firsts.add(order[0]);
  }
  assert.equal(firsts.size, 3);
});

Deno.test("the target that a conversation has had comes first, unless its breaker is open", () => {
  for (const strategy of ["order", "weight"] as const) {
    const targets = targetsOf({ a: 1, b: 1, c: 1 }, strategy, { sticky: true });
    const preferred = targets.targets[2] ?? null;
    const call = choiceCall(random, { preferred });
    assert.equal(orderOf(targets, call)[0], "c");
    assert.equal(orderOf(targets, call, { c: { isReady: false } })[2], "c");
  }
});

Deno.test("sticky: a changed weight moves only conversations to or from its target", () => {
  let moved = 0;
  for (let index = 0; index < drawsMax; index++) {
    const call = choiceCall(random, { stickyKey: `c${index}` });
    const firstBy = (weights: Record<string, number>) =>
      orderOf(targetsOf(weights, "weight", { sticky: true }), call)[0];
    const before = firstBy({ a: 1, b: 1, c: 2 });
    const after = firstBy({ a: 2, b: 1, c: 2 });
    if (before === after) continue;
    moved++;
    assert.equal(after, "a");
  }
  assertShare(moved / drawsMax, 2 / 5 - 1 / 4);
});

Deno.test("sticky: where a conversation's target is not ready, its second takes over", () => {
  const call = choiceCall(random, { stickyKey: "c" });
  const targets = targetsOf({ a: 1, b: 1, c: 1 }, "weight", { sticky: true });
  const [first = "", second] = orderOf(targets, call);
  assert.equal(orderOf(targets, call, { [first]: { isReady: false } })[0], second);
});

Deno.test("cheapest: by this call's exact cost, equal ones as listed, unknown ones last", () => {
  const costs = new Map<string, bigint>([
    ["dear", 10n ** 30n + 1n],
    ["b", 10n ** 30n],
    ["c", 10n ** 30n],
    ["free", 0n],
  ]);
  const order = orderOf(
    targetsOf({ unknown: 1, dear: 1, b: 1, c: 1, free: 1 }, "cheapest"),
    choiceCall(random, { costOf: ({ upstream }) => costs.get(upstream.name) ?? null }),
  );
  assert.deepEqual(order, ["free", "b", "c", "dear", "unknown"]);
});

Deno.test("fastest: by the first byte, equal ones as listed; 5 % of calls ask an unknown one", () => {
  const facts = { a: { firstByteMs: 300 }, b: { firstByteMs: 200 }, c: { firstByteMs: 200 } };
  const targets = targetsOf({ a: 1, x: 1, b: 1, c: 1, y: 1 }, "fastest");
  assert.deepEqual(orderOf(targets, choiceCall(() => 0.9), facts), ["b", "c", "a", "x", "y"]);
  const share = sharesOf(() => orderOf(targets, choiceCall(random), facts)[0]);
  assertShare(share("b"), 0.95);
  assertShare(share("x"), 0.025);
  assertShare(share("y"), 0.025);
});

Deno.test("fastest: once all are known, 5 % of calls ask one that is slower", () => {
  const facts = { a: { firstByteMs: 300 }, b: { firstByteMs: 200 } };
  const targets = targetsOf({ a: 1, b: 1 }, "fastest");
  const share = sharesOf(() => orderOf(targets, choiceCall(random), facts)[0]);
  assertShare(share("a"), 0.05);
});
