import assert from "node:assert/strict";
import { createIds } from "../../src/base/ids.ts";
import { toBytes } from "../../src/base/json.ts";
import {
  commitMarkerKey,
  commitMarkersPrefix,
  consoleFormKey,
  consoleSessionEndKey,
  consoleSessionEndsPrefix,
  consoleSessionKey,
  requestsKey,
  requestsPrefix,
  targetHealthKey,
  targetHealthPrefix,
  topUsersKey,
  topUsersPrefix,
} from "../../src/store/keys.ts";
import { emptyWrite, type Key, type Write } from "../../src/store/kv.ts";
import { createWorld, type World } from "../support/world.ts";

const day = 24 * 60 * 60 * 1000;
const many = 1_500;

async function putAll({ deps: { kv } }: World, rows: Write["sets"]): Promise<void> {
  for (let at = 0; at < rows.length; at += 400) {
    await kv.atomic({ ...emptyWrite(), sets: rows.slice(at, at + 400) });
  }
}

const rowsOf = (count: number, keyOf: (n: number) => Key, value = toBytes([])) =>
  Array.from({ length: count }, (_, n) => ({ key: keyOf(n), value }));

const keysUnder = async ({ deps: { kv } }: World, prefix: Key) =>
  (await kv.list({ prefix, limit: 10_000 })).map(({ key }) => key);

Deno.test("upkeep: one sweep removes all old requests and top users of a project, and no new ones", async () => {
  using world = await createWorld();
  const { projectId } = world;
  const now = world.clock.now();
  const oldId = createIds(() => now - 31 * day, Math.random);
  const newKey = requestsKey(projectId, createIds(() => now - day, Math.random)("rql"));
  await putAll(world, rowsOf(many, () => requestsKey(projectId, oldId("rql"))));
  await putAll(world, rowsOf(1, () => newKey));
  const hourOf = (n: number) => new Date(Date.UTC(2024, 0, 1, n)).toISOString().slice(0, 13);
  await putAll(world, rowsOf(many, (n) => topUsersKey(projectId, `h${hourOf(n)}`)));
  const kept = topUsersKey(projectId, `h${new Date(now - day).toISOString().slice(0, 13)}`);
  await putAll(world, rowsOf(1, () => kept));
  await world.app.sweep();
  assert.deepEqual(await keysUnder(world, requestsPrefix(projectId)), [newKey]);
  assert.deepEqual(await keysUnder(world, topUsersPrefix(projectId)), [kept]);
});

Deno.test("upkeep: one sweep removes all sessions that have ended, with all forms sent in them", async () => {
  using world = await createWorld();
  const now = world.clock.now();
  const hashOf = (n: number) => `hash-${n}`;
  await putAll(world, rowsOf(many, (n) => consoleSessionKey(hashOf(n))));
  await putAll(world, rowsOf(many, (n) => consoleSessionEndKey(now - 1 - n, hashOf(n))));
  await putAll(world, rowsOf(many, (n) => consoleFormKey(hashOf(7), `form-${n}`)));
  const live = consoleSessionEndKey(now + day, "live");
  await putAll(world, rowsOf(1, () => live));
  await world.app.sweep();
  assert.deepEqual(await keysUnder(world, consoleSessionEndsPrefix), [live]);
  assert.deepEqual(await keysUnder(world, ["console_session"]), []);
  assert.deepEqual(await keysUnder(world, ["console_form"]), []);
});

Deno.test("upkeep: breakers that are no longer open go, however many are open before them", async () => {
  using world = await createWorld();
  const now = world.clock.now();
  const keyOf = (prefix: string) => (n: number) => targetHealthKey(`${prefix}-${n}`, "model");
  await putAll(world, rowsOf(many, keyOf("a"), toBytes(now + day)));
  await putAll(world, rowsOf(many, keyOf("b"), toBytes(now - 1)));
  await world.app.sweep();
  assert.equal((await keysUnder(world, targetHealthPrefix)).length, many);
});

Deno.test("upkeep: all markers that dead processes left go after ten minutes, and none before", async () => {
  using world = await createWorld();
  await putAll(world, rowsOf(many, (n) => commitMarkerKey(`batch-${n}`)));
  const left = async () =>
    (await keysUnder(world, commitMarkersPrefix)).filter(([, id]) => /^batch-/.test(String(id)));
  await world.app.sweep();
  await world.clock.advance(9 * 60_000);
  await world.app.sweep();
  assert.equal((await left()).length, many);
  await world.clock.advance(2 * 60_000);
  await world.app.sweep();
  assert.deepEqual(await left(), []);
});
