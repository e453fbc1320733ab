import assert from "node:assert/strict";
import { ApiError } from "../../src/base/errors.ts";
import { type Bound, guardKv, type Kv } from "../../src/store/kv.ts";
import { MemoryStore } from "../simulation/memory_store.ts";

const row = { key: ["row"], value: new Uint8Array(1) };
const calls: Record<string, (kv: Kv) => Promise<unknown>> = {
  "a read": (kv) => kv.get(["row"]),
  "a read of many": (kv) => kv.getMany([["row"], ["other"]]),
  "a listing": (kv) => kv.list({ prefix: ["row"], limit: 1 }),
  "a write": (kv) => kv.atomic({ checks: [], sets: [row], deletes: [] }),
};

const never = () => new Promise<never>(() => {});
const limits = { checks: 100, readKeys: 10, inFlight: 1, isShared: false };
const silent: Kv = { limits, get: never, getMany: never, list: never, atomic: never, close() {} };

for (const [what, call] of Object.entries(calls)) {
  Deno.test(`store: ${what} without a response within 5 s is 503`, async () => {
    const waited: number[] = [];
    const bound: Bound = async (_work, deadlineMs, late) => {
      waited.push(deadlineMs);
      throw late();
    };
    await assert.rejects(
      call(guardKv(silent, bound)),
      (error) => error instanceof ApiError && error.code === "store_unavailable",
    );
    // Half a second is left to find out whether a write has landed.
    assert.deepEqual(waited, [what === "a write" ? 4_500 : 5_000]);
  });

  Deno.test(`store: ${what} that fails is 503, but a write's own error is left to the committer`, async () => {
    const { kv } = new MemoryStore();
    const broken = () => Promise.reject(new TypeError("connection reset"));
    const failing = { ...kv, get: broken, getMany: broken, list: broken, atomic: broken };
    await assert.rejects(
      call(guardKv(failing, (work) => work)),
      (error) => error instanceof (what === "a write" ? TypeError : ApiError),
    );
  });
}
