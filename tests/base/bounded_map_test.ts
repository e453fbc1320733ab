import assert from "node:assert/strict";
import { BoundedMap } from "../../src/base/bounded_map.ts";

Deno.test("bounded map: a new key in a full one makes it forget a sixteenth, the oldest", () => {
  const map = new BoundedMap<number, number>(32);
  for (let n = 0; n < 32; n++) map.set(n, n);
  assert.deepEqual([map.size, map.get(0)], [32, 0]);
  map.set(5, 55);
  assert.deepEqual([map.size, map.get(0), map.get(5)], [32, 0, 55], "it is no new key");
  map.set(32, 32);
  assert.deepEqual([...map.keys()].slice(0, 3), [2, 3, 4]);
  assert.deepEqual([...map.keys()].slice(-2), [5, 32], "what is set again is the newest");
  for (let n = 33; n < 1_000; n++) {
    map.set(n, n);
    assert.ok(map.size <= 32);
    for (let age = 0; age < 28; age++) assert.ok(map.has(n - age), "most of it stays");
  }
});

Deno.test("bounded map: what is over is forgotten first, and each that is forgotten is told", () => {
  let now = 0;
  const forgotten: number[] = [];
  const map = new BoundedMap<string, number>(16, {
    isOver: (until) => until <= now,
    onForgotten: (until) => void forgotten.push(until),
  });
  for (let n = 1; n <= 16; n++) map.set(`${n}`, n % 2 === 0 ? n : 100 + n);
  now = 50;
  map.set("new", 200);
  assert.deepEqual(forgotten, [2, 4, 6, 8, 10, 12, 14, 16]);
  assert.equal(map.get("1"), 101);
  for (let n = 1; n <= 8; n++) map.set(`more ${n}`, 300);
  assert.deepEqual(forgotten.slice(8), [101]);
  map.delete("3");
  map.clear();
  assert.equal(forgotten.length, 9, "what is deleted is not told");
});

Deno.test("bounded map: a value is made once, also where it is null", () => {
  const map = new BoundedMap<string, string | null>(10);
  let made = 0;
  const make = (key: string) => (made++, key === "none" ? null : key.toUpperCase());
  for (let n = 0; n < 3; n++) {
    assert.deepEqual([map.getOrMake("a", make), map.getOrMake("none", make)], ["A", null]);
  }
  assert.equal(made, 2);
});
