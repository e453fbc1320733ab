import assert from "node:assert/strict";
import { toBytes } from "../../src/base/json.ts";
import { toBase64Url } from "../../src/base/base64.ts";
import { stripePaymentKey } from "../../src/store/keys.ts";
import { storedRows } from "./books.ts";
import { chat } from "./chat.ts";
import { move, put } from "./verify.ts";
import { deliver, operate, subscribe } from "./webhooks.ts";
import { adminKey, type Body, type World } from "./world.ts";

/** A user whose name can be searched for. */
export const ada = "ada.lovelace@example.com";
/** Another user, of whom nothing may change. */
export const bob = "bob@example.com";

/** Requests the erasure of a user, once. */
export function forget(world: World, body: Body = {}, user = ada) {
  return operate(world, `/users/${encodeURIComponent(user)}/forget`, { body });
}

/** Repeats the request until it is done. */
export async function forgetWholly(world: World, body: Body = {}, user = ada): Promise<Body> {
  for (let call = 0; call < 500; call++) {
    const answer = await forget(world, body, user);
    assert.ok([200, 202].includes(answer.status), JSON.stringify(answer.body));
    if (answer.body.status === "done") return answer.body;
    if (answer.body.status === "waiting") await deliver(world);
  }
  throw new Error("it comes to no end");
}

/** Returns the rows that name a user, in whatever spelling: none, once they are erased. */
export async function rowsNaming(world: World, user: string): Promise<string[]> {
  // What is only in memory so far must name no one either.
  await world.app.flush();
  const encoded = toBase64Url(toBytes(user)).slice(2, -3);
  const spellings = [user, encodeURIComponent(user), encoded].map((text) => text.toLowerCase());
  return (await storedRows(world)).flatMap(({ key, value }) => {
    const text = `${JSON.stringify(key)} ${new TextDecoder().decode(value ?? undefined)}`;
    return spellings.some((spelling) => text.toLowerCase().includes(spelling)) ? [text] : [];
  });
}

/** Returns what is stored about one user only, to assert that it stays. */
export async function rowsAsTextOf(world: World, user: string): Promise<string> {
  const rows = await rowsNaming(world, user);
  return rows.filter((row) =>
    !/^\["(top_users|verified|requests|(expiry",\d+,\d+,")?(user_)?link)"/.test(row)
  ).join("\n");
}

/** A user with every kind of stored record, whose every delivery has ended. */
async function makeKnown(world: World, user = ada): Promise<void> {
  const deposit = (amount: string, key: string) =>
    move(world, "/v1/user/balance/deposit", { user, amount, metadata: { mail: user } }, key);
  await deposit("5", `order of ${user}`.replaceAll(" ", "-"));
  const paid = await deposit("2", `order-${user.length}`);
  const payment = { activityId: paid, ref: { projectId: world.projectId, user }, currency: "usd" };
  await put(world, stripePaymentKey(world.projectId, `pi_${user.length}`), toBytes(payment));
  const { body: { activityId: charged } } = await operate(
    world,
    `/users/${encodeURIComponent(user)}/charge`,
    { body: { amount: "1" } },
  );
  await move(world, "/v1/user/refund", { activityId: charged, amount: "0.25" });
  const headers = { "idempotency-key": `chat-${user}` };
  await chat(world, { user }, { headers });
  const short = { user, amount: "900" };
  assert.equal((await world.json("/v1/user/charge", { body: short })).body.success, false);
  const bound = { name: `app of ${user}`, scopes: ["chat"], user };
  const { body: { key } } = await operate(world, "/keys", { body: bound });
  await operate(world, `/keys/${key.id}`, { method: "DELETE" });
  await deliver(world);
}

/** A project with a subscriber that repeats what it receives, and two users. */
export async function makePeople(world: World): Promise<void> {
  await subscribe(world);
  world.subscriber.reply(({ body }) => ({
    status: 200,
    bodyHead: JSON.stringify(body.event.subject),
  }));
  await makeKnown(world);
  await makeKnown(world, bob);
}

/** The users of the project, as its operator sees them. */
export async function usersOf(world: World): Promise<Body[]> {
  const path = `/v1/admin/projects/${world.projectId}/users`;
  return (await world.json(path, { key: adminKey })).body.users;
}
