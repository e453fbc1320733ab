import assert from "node:assert/strict";
import { serveWorld } from "../support/served_world.ts";
import { deliver, logs } from "../support/webhooks.ts";
import { createWorld } from "../support/world.ts";

const linesOf = (text: string) => text.trimEnd().split("\n");
const hook = "https://hooks.my.app/in";

Deno.test("farebox: webhooks are created, rotated, removed and enabled again", async () => {
  using world = await createWorld();
  await using service = await serveWorld(world);
  const { projectId: id } = world;
  const run = (command: string, ...args: string[]) =>
    service.run(["webhooks", command, id, ...args]);
  const made = await run("create", "--url", hook, "--event", "balance.*", "--description", "CRM");
  assert.equal(made.code, 0, made.complaint);
  assert.match(
    made.printed,
    /^secret +whsec_\S+\nid +sub_\w+\nurl +https:\S+\nevents +balance\.\*\n$/,
  );
  assert.match(made.complaint, /^The secret is shown only once/);
  const sub = /sub_\w+/.exec(made.printed)?.[0] ?? assert.fail();
  assert.match((await run("list")).printed, new RegExp(`^${sub} +active +${hook} +balance`, "m"));
  const keys = linesOf((await service.run(["keys", "list", id, "--json"])).printed)
    .map((line) => JSON.parse(line)).filter(({ name }) => name?.startsWith("farebox"));
  assert.deepEqual(keys.map(({ revokedAt }) => revokedAt !== null), [true], "its key is revoked");

  await world.deposit("ada", "5");
  await deliver(world);
  assert.equal(world.subscriber.received.length, 1, "it is subscribed without the key");

  const rotated = JSON.parse((await run("rotate", sub, "--overlap", "60", "--json")).printed);
  assert.match(rotated.secret, /^whsec_/);
  assert.ok(!made.printed.includes(rotated.secret));
  const mine = "a-secret-of-my-own-0123";
  const given = await service.run(["webhooks", "rotate", id, sub, "--secret"], `${mine}\n`);
  assert.match(given.printed, new RegExp(`^secret +${mine}$`, "m"));

  const removed = await run("remove", sub);
  assert.match(removed.printed, new RegExp(`^${sub} gets no events any more\\.`));
  assert.match((await run("list")).printed, /inactive/);
  const again = await run("remove", sub);
  assert.deepEqual([again.code, again.printed], [1, ""]);
  assert.match(again.complaint, /^The project has no active webhook 'sub_/);
  assert.equal(JSON.parse((await run("enable", sub, "--json")).printed).isActive, true);
});

Deno.test("farebox: a webhook that failed gets again what it missed", async () => {
  using world = await createWorld();
  await using service = await serveWorld(world);
  const { projectId: id } = world;
  const made = await service.run(["webhooks", "create", id, "--url", hook, "--json"]);
  const { id: sub, events } = JSON.parse(made.printed);
  assert.deepEqual(events, ["*"]);
  const redeliver = (...since: string[]) =>
    service.run(["webhooks", "redeliver", id, sub, ...since]);
  const none = await redeliver("--since", "2026-01-01");
  assert.equal(none.printed, "0 deliveries are on their way again.\n", none.complaint);
  world.subscriber.reply(() => ({ status: 404 }));
  await world.deposit("ada", "5");
  await deliver(world);
  world.subscriber.reply(() => ({}));
  const one = await redeliver("--since", "2026-01-01");
  assert.equal(one.printed, "1 delivery is on its way again.\n", one.complaint);
  await deliver(world);
  assert.equal((await logs(world)).at(0)?.status, "success");
  for (const since of [[], ["--since", "yesterday"], ["--since", "2026-02-30"]]) {
    assert.equal((await redeliver(...since)).code, 2);
  }
});

Deno.test("farebox: a webhook that cannot be is refused, and leaves no key behind", async () => {
  using world = await createWorld();
  await using service = await serveWorld(world);
  const { projectId: id } = world;
  const create = (args: string[], input = "") =>
    service.run(["webhooks", "create", id, ...args], input);
  const cases: [args: string[], code: number, complaint: RegExp][] = [
    [[], 2, /required option '--url <url>'/],
    [["--url", "http://hooks.my.app/in"], 1, /'url' must start with https:\/\//],
    [["--url", "https://localhost/in"], 1, /'url' /],
    [["--url", hook, "--event", "balance.depeted"], 1, /the closest is 'balance\.depleted'/],
    [["--url", hook, "--settings", '{"secret":"0123456789abcdef"}'], 2, /other users of this/],
    [["--url", hook, "--settings", '{"customHeaders":{"x-key":"k"}}'], 2, /'customHeaders'/],
    [["--url", hook, "--settings", '{"odd":1}'], 1, /Unknown parameter: 'odd'/],
  ];
  for (const [args, code, complaint] of cases) {
    const ran = await create(args);
    assert.equal(ran.code, code, `${args}: ${ran.complaint}`);
    assert.match(ran.complaint, complaint);
  }
  const unknown = await service.run(["webhooks", "rotate", id, "sub_none"]);
  assert.equal(unknown.code, 1, unknown.complaint);
  const keys = linesOf((await service.run(["keys", "list", id, "--json"])).printed)
    .map((line) => JSON.parse(line)).filter(({ name }) => name?.startsWith("farebox"));
  assert.ok(keys.length > 0 && keys.every(({ revokedAt }) => revokedAt !== null));
  const settings = '{"secret":"0123456789abcdef","customHeaders":{"X-Key":"k"}}';
  const made = await create(["--url", hook, "--settings", "-", "--json"], settings);
  assert.equal(JSON.parse(made.printed).secret, "0123456789abcdef", made.complaint);
});

Deno.test("farebox: webhooks listen names --public-url where the service needs one", async () => {
  using world = await createWorld();
  await using service = await serveWorld(world);
  const listen = (...args: string[]) =>
    service.run(["webhooks", "listen", world.projectId, ...args]);
  const local = await listen();
  assert.equal(local.code, 1, local.complaint);
  assert.match(local.complaint, /does not deliver to 127\.0\.0\.1.*set it with --public-url/);
  const plain = await listen("--public-url", "http://tunnel.my.app/");
  assert.match(plain.complaint, /^--public-url must start with https:\/\//);
  const taken = await listen("--port", new URL(service.url).port);
  assert.deepEqual([taken.code, /Choose another one with --port/.test(taken.complaint)], [1, true]);
});
