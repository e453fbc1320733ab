import assert from "node:assert/strict";
import { connectionKey } from "../../src/store/keys.ts";
import { storedRows } from "../support/books.ts";
import {
  formFields,
  hiddenFields,
  type Shown,
  signedIn,
  textOf,
  Visitor,
} from "../support/console.ts";
import { ownerStripe } from "../support/payments.ts";
import { deliver, logs, operate, subscribe } from "../support/webhooks.ts";
import { adminKey, createWorld, type World } from "../support/world.ts";

/** A form of the console: the page that shows it, and what is filled in. */
interface FilledIn {
  /** The page; absent where it is the form's own path. */
  page?: string;
  fields?: Record<string, string>;
  /** Sent as a form with a file is. */
  inParts?: true;
  /** Only the operator may send it. */
  operator?: true;
}

const upstream = "upstreams/one?name=main";
const project = "/console/projects/:projectId";
const webhook = `${project}/webhooks/:subscriptionId`;
const prices = JSON.stringify({
  date: "2026-11-25",
  prices: { openai: { "gpt-9": { input: "1", output: "4" } } },
});

/** Two wallets that nobody can open. */
const wallets = ["per_01K9Z0C8Q4R7T2V5X8Z1B3D5F7", "per_01K9Z0C8Q4R7T2V5X8Z1B3D5F8"] as const;

/** Every form that gives money or access, or says where people pay or data goes. */
const asking: Readonly<Record<string, FilledIn>> = {
  "/console/projects/new": { operator: true, fields: { name: "Another" } },
  "/console/catalogue": { operator: true, fields: { file: prices }, inParts: true },
  "/console/wallets/join": {
    operator: true,
    fields: {
      ...{ from: wallets[0], into: wallets[1] },
      "reasons.from": "It was on a lost device.",
      "reasons.into": "It was on a lost device.",
    },
  },
  [`${project}/users/limits`]: { page: "users/limits?user=ada", fields: { spendPerDay: "9" } },
  [`${project}/users/erase`]: { page: "users/erase?user=ada", fields: { forfeit: "on" } },
  [`${project}/deposit`]: { page: "deposit?user=ada", fields: { amount: "100000" } },
  [`${project}/refund`]: { page: "refund?user=ada&activityId=:activityId" },
  [`${project}/keys`]: { fields: { scopes: "chat" } },
  [`${project}/keys/:keyId/revoke`]: {},
  [`${project}/payments`]: { fields: { secretKey: ownerStripe.secretKey } },
  [`${project}/pricing`]: { fields: { markupPercent: "1", action: "save" } },
  [`${project}/upstreams/one`]: {
    operator: true,
    page: upstream,
    fields: { url: "https://elsewhere.example/v1" },
  },
  [`${project}/upstreams/usual`]: {
    operator: true,
    fields: { url: "https://elsewhere.example/v1" },
  },
  [`${project}/upstreams/test`]: { operator: true, fields: { model: "test-model" } },
  [`${project}/upstreams/route`]: {
    operator: true,
    fields: { model: "smart", targets: "main gpt-4o" },
  },
  [`${project}/limits`]: { fields: { "user.spendPerDay": "1000" } },
  [`${project}/alerts`]: { fields: { emails: "someone@elsewhere.example" } },
  [`${project}/messages`]: { page: "messages", fields: { insufficient_funds: "Pay: {{url}}" } },
  [`${project}/settings`]: { fields: { trialCredits: "500" } },
  [`${project}/archive`]: { fields: { name: "Test" } },
  [`${project}/webhooks`]: { fields: { url: "https://hooks.example.com/other" } },
  [`${webhook}/deactivate`]: {},
  [`${webhook}/enable`]: { page: webhook },
  [`${webhook}/rotate`]: {},
  [`${webhook}/test`]: { page: webhook },
  [`${webhook}/redeliver`]: {},
  [`${project}/deliveries/:deliveryId`]: {},
};

/** Forms that do neither. */
const notAsking = [
  "/console/sign-in",
  "/console/sign-out",
  `${project}/alerts/test`,
  `${project}/alerts/confirm`,
];

const downloads = ["activity", "audit", "requests", "users"].map((name) =>
  `${project}/${name}.csv`
);
const instanceDownloads = ["/console/audit.csv"];

/** A world with something to act on, and what the parameters of its paths stand for. */
async function preparedWorld(path: string): Promise<[World, fill: (path: string) => string]> {
  const upstreams = { main: { url: "https://main.example/v1" } };
  const world = await createWorld({
    project: { upstreams },
    sendMail: () => Promise.resolve(),
  });
  const { id: subscriptionId } = await subscribe(world);
  await world.deposit("ada", "5");
  await deliver(world);
  const [{ id: deliveryId } = { id: "" }] = await logs(world);
  const { key: { id: keyId } } = (await operate(world, "/keys", { body: {} })).body;
  const [{ id: activityId } = { id: "" }] = await world.activities("ada");
  if (path.endsWith("/enable")) {
    await world.call(`/v1/webhooks/subscriptions/${subscriptionId}`, { method: "DELETE" });
  }
  const sets = wallets.map((id) => ({
    key: connectionKey(id, world.projectId, "ada"),
    value: new Uint8Array(),
  }));
  await world.deps.committer.commit({ checks: [], sets, deletes: [] });
  const values = { projectId: world.projectId, subscriptionId, deliveryId, keyId, activityId };
  return [
    world,
    (text) => Object.entries(values).reduce((at, [name, id]) => at.replace(`:${name}`, id), text),
  ];
}

/** The store without sessions, which change with each request. */
async function settledRows(world: World): Promise<string> {
  await world.app.flush();
  const rows = await storedRows(world);
  const others = rows.filter(({ key }) => !String(key[0]).startsWith("console_"));
  return others.map(({ key, version }) => JSON.stringify([key, version])).join("\n");
}

const send = (visitor: Visitor, path: string, fields: Record<string, string>, inParts = false) =>
  inParts ? visitor.upload(path, fields) : visitor.post(path, fields);

function assertAsked({ status, html }: Shown, path: string): void {
  assert.equal(status, 401, path);
  assert.match(textOf(html), /Enter your key again.*Nothing has been changed/, path);
}

const minuteMs = 60_000;

Deno.test("console: every form either asks for the key again or is known not to need it", async () => {
  using world = await createWorld();
  const posts = Object.entries(world.app.routes)
    .filter(([path, route]) => path.startsWith("/console") && route.POST)
    .map(([path]) => path);
  const known = [...Object.keys(asking), ...notAsking, ...downloads, ...instanceDownloads];
  assert.deepEqual(posts.sort(), known.sort());
});

for (const [path, { page, fields = {}, inParts, operator }] of Object.entries(asking)) {
  const keys = operator ? ["operator"] : ["owner", "operator"];
  for (const holder of keys) {
    Deno.test(`console: ${path} asks an old session of the ${holder} for the key`, async () => {
      const [world, fill] = await preparedWorld(path);
      using _ = world;
      const key = holder === "operator" ? adminKey : world.ownerKey;
      const visitor = await signedIn(world, key);
      await visitor.stayFor(23 * minuteMs);
      const shown = await visitor.get(fill(page ?? path));
      assert.equal(shown.status, 200, shown.html);
      const form = inParts ? fields : { ...formFields(shown.html, fill(path)), ...fields };
      const before = await settledRows(world);
      for (
        const wrong of [{}, { sessionKey: `sk_${"w".repeat(43)}` }, { sessionKey: world.apiKey }]
      ) {
        const asked = await send(visitor, fill(path), { ...form, ...wrong }, inParts);
        assertAsked(asked, path);
        assert.deepEqual(hiddenFields(asked.html, fill(path)), form, "nothing is typed again");
        for (const tried of Object.values(wrong)) assert.ok(!asked.html.includes(tried), path);
        const changed = (await settledRows(world)).split("\n").filter((row) =>
          !before.includes(row) && !row.includes('["audit"')
        );
        assert.deepEqual(changed, [], path);
      }
      const refused = await settledRows(world);
      const done = await send(visitor, fill(path), { ...form, sessionKey: key }, inParts);
      assert.ok([200, 303].includes(done.status), `${done.status} ${textOf(done.html)}`);
      assert.doesNotMatch(done.html, /Enter your key again/);
      const isReview = /deposit|refund|catalogue/.test(path);
      const after = await settledRows(world);
      assert.equal(after === refused, isReview, "and it did what it says");
      const audited = (rows: string) => rows.split('["audit"').length;
      assert.equal(audited(after) > audited(refused), !isReview, "as the audit trail records");
    });
  }
}

Deno.test("console: a deposit with an old session is asked for its key once, then reviewed and recorded", async () => {
  const [world, fill] = await preparedWorld("");
  using _ = world;
  const visitor = await signedIn(world);
  await visitor.stayFor(23 * minuteMs);
  const asked = await visitor.post("deposit", { user: "ada", amount: "7", reason: "gift" });
  assertAsked(asked, "deposit");
  const fields = hiddenFields(asked.html, "/deposit");
  const review = await visitor.post("deposit", { ...fields, sessionKey: world.ownerKey });
  assert.match(textOf(review.html), /Record this deposit\?/);
  const recorded = await visitor.post("deposit", hiddenFields(review.html, "/deposit"));
  assert.equal(recorded.status, 303, recorded.html);
  assert.equal((await world.balance("ada")).balance, "12");
  await visitor.stayFor(11 * minuteMs);
  const late = await visitor.post("deposit", hiddenFields(review.html, "/deposit"));
  assertAsked(late, fill("deposit"));
});

Deno.test("console: downloads ask for the key again, and are in the audit trail", async () => {
  const [world, fill] = await preparedWorld("");
  using _ = world;
  for (const key of [world.ownerKey, adminKey]) {
    const paths = key === adminKey ? [...downloads, ...instanceDownloads] : downloads;
    for (const path of paths.map((each) => fill(each))) {
      const visitor = await signedIn(world, key);
      await visitor.stayFor(23 * minuteMs);
      const address = `${path}?actor=operator&sort=balance`;
      const asked = await visitor.get(address);
      assertAsked(asked, path);
      assert.ok(asked.html.includes(`action="${address.replace("&", "&amp;")}"`), path);
      assert.equal(asked.headers.get("content-disposition"), null);
      const file = await visitor.post(address, { sessionKey: key });
      assert.equal(file.status, 200, path);
      assert.match(file.headers.get("content-type") ?? "", /text\/csv/);
      assert.match((await visitor.get(address)).headers.get("content-type") ?? "", /text\/csv/);
      const trail = path.startsWith("/console/audit")
        ? await world.json("/v1/admin/audit?action=data.exported", { key: adminKey })
        : await operate(world, "/audit?action=data.exported", { method: "GET" });
      const [row] = trail.body.actions;
      const name = /(\w+)\.csv/.exec(path)?.[1];
      assert.deepEqual([row.target, row.detail.filters], [name, ["actor", "sort"]]);
      assert.equal(row.actor.type, key === adminKey ? "operator" : "key");
    }
  }
});
