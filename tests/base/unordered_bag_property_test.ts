import assert from "node:assert/strict";
import fc from "fast-check";
import { UnorderedBag } from "../../src/base/unordered_bag.ts";
import { always } from "../support/property.ts";

Deno.test("bag: contains what was added and not removed, in any order", async () => {
  const step = fc.record({ adds: fc.boolean(), which: fc.nat() });
  await always(
    500,
    fc.property(fc.array(step), (steps) => {
      const bag = new UnorderedBag<number>();
      const inside = new Set<number>();
      const ways: { value: number; takeOut: () => void }[] = [];
      for (const [value, { adds, which }] of steps.entries()) {
        const way = ways[which % ways.length];
        if (adds || !way) {
          ways.push({ value, takeOut: bag.add(value) });
          inside.add(value);
        } else {
          way.takeOut();
          inside.delete(way.value);
        }
        assert.deepEqual(new Set(bag), inside);
        assert.equal(bag.size, inside.size);
      }
    }),
  );
});
