import assert from "node:assert/strict";
import { storedRows } from "./books.ts";
import { adminKey, type Body, type World } from "./world.ts";

export const subscriptionsPath = "/v1/webhooks/subscriptions";

/** A subscription, with its secret. */
export async function subscribe(world: World, fields: Record<string, unknown> = {}): Promise<Body> {
  const body = { url: "https://hooks.example.com/farebox", events: ["*"], ...fields };
  const answer = await world.json(subscriptionsPath, { body });
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  return answer.body.subscription;
}

/** The project's log, newest first. */
export async function logs(world: World, query = ""): Promise<Body[]> {
  const { status, body } = await world.json(`/v1/webhooks/logs?limit=100${query}`);
  assert.equal(status, 200, JSON.stringify(body));
  return body.logs;
}

/** Asserts that nothing is left over once all deliveries have ended. */
export async function assertClean(world: World): Promise<void> {
  const rows = await storedRows(world);
  for (const kind of ["outbox", "due"]) {
    assert.deepEqual(rows.filter(({ key }) => key[0] === kind), [], kind);
  }
}

/** Lets everything that is due be delivered, and its results be written. */
export async function deliver(world: World): Promise<void> {
  await world.app.dispatcher.idle();
  await world.app.dispatcher.poll();
  await world.app.dispatcher.idle();
}

/** Advances the clock to the next retry of the newest delivery, and delivers. */
export async function retry(world: World): Promise<number> {
  const [entry] = await logs(world, "&status=pending");
  assert.ok(entry?.nextRetryAt, "nothing is pending");
  const wait = Date.parse(entry.nextRetryAt) - world.clock.now();
  await world.clock.advance(wait);
  await deliver(world);
  return wait;
}

/** Calls the operator's API of the world's project. */
export function operate(
  world: World,
  path: string,
  { method = "POST", body = {} }: { method?: string; body?: unknown } = {},
) {
  const options = { method, key: adminKey, ...(method === "GET" ? {} : { body }) };
  return world.json(`/v1/admin/projects/${world.projectId}${path}`, options);
}
