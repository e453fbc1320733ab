import assert from "node:assert/strict";
import { devProjectId } from "../../src/projects/auth.ts";
import { standardSignatures } from "../../src/webhooks/delivery/signature.ts";
import { eventually, type Farebox, makeFolder, startFarebox } from "../support/process.ts";
import { type CommandLine, commandOf, snippetsOf } from "../support/snippets.ts";
import {
  goEnv,
  installGo,
  installPython,
  testWith,
  type Toolchain,
} from "../support/toolchains.ts";
import { adminKey, type Body } from "../support/world.ts";

const scratch = await makeFolder();
addEventListener("unload", () => Deno.removeSync(scratch.path, { recursive: true }));

const goPackage = "github.com/standard-webhooks/standard-webhooks/libraries@v0.0.1";
const goFolder = `${scratch.path}/go`;
const programs = (await snippetsOf("webhooks")).filter(({ mark }) => mark === "webhook");
const tools: Record<string, Toolchain> = {
  js: { path: Deno.execPath() },
  python: await installPython(`${scratch.path}/python`, ["standardwebhooks==1.1.0"]),
  go: await installGo(goFolder, goPackage),
};

/** A delivery as it was received. */
interface Delivery {
  headers: Record<string, string>;
  body: string;
}

Deno.test("guides: webhooks are verified in three languages, with a library and without", () => {
  assert.deepEqual(programs.map(({ language }) => language), [
    "js",
    "js",
    "python",
    "python",
    "go",
    "go",
  ]);
});

for (const [index, { language, code }] of programs.entries()) {
  const which = `${language}, ${code.includes("standardwebhooks") ? "with" : "without"} a library`;
  const tool = tools[language] ?? { missing: `nothing runs ${language}` };
  const name = `guides: webhooks in ${which}: takes what the service signed, and nothing else`;
  testWith(tool, name, async (path) => {
    await using folder = await makeFolder();
    await using service = await startService(folder.path);
    const command = language === "go"
      ? await buildGo(path, code, `program_${index}`)
      : await commandOf({ language, code }, { folder: folder.path, python: path });
    await takesTheGenuine(service, command);
  });
}

async function takesTheGenuine(service: Farebox, command: CommandLine): Promise<void> {
  await using recorder = startRecorder();
  const recorded = await subscribe(service, `http://127.0.0.1:${recorder.port}/`);
  await using program = await startProgram(command, recorded.secret);
  // The service itself posts directly to the program, and signs with the program's secret.
  const direct = await subscribe(service, program.url, recorded.secret);
  const before = await nextDelivery(service, recorder);
  await eventually(() => isDelivered(service, direct.id), { withinMs: 10_000, what: "a delivery" });

  const post = async ({ headers, body }: Delivery) => {
    const response = await fetch(program.url, { method: "POST", headers, body });
    await response.body?.cancel();
    return response.status;
  };
  assert.equal(await post(before), 200);
  assert.equal(await post({ ...before, body: before.body.replace('"5"', '"9"') }), 401, "altered");
  assert.equal(await post(forgedBy("whsec_c29tZSBvdGhlciBzZWNyZXQ=", before, 0)), 401, "other");
  assert.equal(await post(forgedBy(recorded.secret, before, 0)), 200, "signed as we sign");
  assert.equal(await post(forgedBy(recorded.secret, before, -301)), 401, "old");
  assert.equal(await post(forgedBy(recorded.secret, before, 310)), 401, "of the future");
  const { "webhook-signature": _, ...unsigned } = before.headers;
  assert.equal(await post({ headers: unsigned, body: before.body }), 401, "unsigned");

  const rotated = await rotate(service, recorded.id);
  const after = await nextDelivery(service, recorder);
  assert.equal(after.headers["webhook-signature"]?.split(" ").length, 2);
  assert.equal(await post(after), 200, "the old secret");
  await using renewed = await startProgram(command, rotated.secret);
  const response = await fetch(renewed.url, { method: "POST", ...after });
  assert.equal(response.status, 200, "the new secret");
  await response.body?.cancel();
  const late = await fetch(renewed.url, { method: "POST", ...before });
  assert.equal(late.status, 401, "signed before there was a new secret");
  await late.body?.cancel();
}

function startService(folder: string): Promise<Farebox> {
  return startFarebox({ folder, dev: true, env: { ADMIN_KEY: adminKey } });
}

async function subscribe(service: Farebox, url: string, secret?: string): Promise<Body> {
  const body = { url, events: ["balance.deposit.created"], ...(secret ? { secret } : {}) };
  return (await service.json("/v1/webhooks/subscriptions", { body })).subscription;
}

async function isDelivered(service: Farebox, subscriptionId: string): Promise<boolean> {
  const path = `/v1/webhooks/logs?subscriptionId=${subscriptionId}`;
  const { logs: [newest] } = await service.json(path);
  assert.notEqual(newest?.status, "error", JSON.stringify(newest));
  return newest?.status === "success";
}

async function rotate(service: Farebox, subscriptionId: string): Promise<Body> {
  const path = `/v1/admin/projects/${devProjectId}/subscriptions/${subscriptionId}`;
  const response = await fetch(service.url + path, {
    method: "PATCH",
    headers: { authorization: `Bearer ${adminKey}`, "content-type": "application/json" },
    body: JSON.stringify({ rotateSecret: true }),
  });
  return (await response.json()).subscription;
}

/** Writes a deposit, and waits until the recorder has received its event. */
async function nextDelivery(service: Farebox, { deliveries }: Recorder): Promise<Delivery> {
  const count = deliveries.length;
  await service.json("/v1/user/balance/deposit", { body: { user: "ada", amount: "5" } });
  await eventually(() => deliveries.length > count, { withinMs: 10_000, what: "a delivery" });
  return deliveries[count] ?? assert.fail();
}

/** The delivery with another signature, or another time. */
function forgedBy(secret: string, { headers, body }: Delivery, seconds: number): Delivery {
  const id = headers["webhook-id"] ?? "";
  const timestamp = Math.floor(Date.now() / 1000) + seconds;
  const signature = standardSignatures([secret], { id, timestamp, body });
  const forged = { "webhook-timestamp": String(timestamp), "webhook-signature": signature };
  return { headers: { ...headers, ...forged }, body };
}

interface Recorder extends AsyncDisposable {
  port: number;
  deliveries: Delivery[];
}

/** A subscriber that keeps the deliveries that it receives. */
function startRecorder(): Recorder {
  const deliveries: Delivery[] = [];
  const own = /^(webhook-|x-service-|content-type$)/;
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const headers = Object.fromEntries([...request.headers].filter(([name]) => own.test(name)));
    deliveries.push({ headers, body: await request.text() });
    return new Response("ok");
  });
  const { port } = server.addr as Deno.NetAddr;
  return { port, deliveries, [Symbol.asyncDispose]: () => server.shutdown() };
}

async function buildGo(go: string, code: string, name: string): Promise<CommandLine> {
  const folder = `${goFolder}/${name}`;
  await Deno.mkdir(folder);
  await Deno.writeTextFile(`${folder}/main.go`, code);
  const build = { args: ["build", "-o", "hook", "."], cwd: folder, env: goEnv };
  const built = await new Deno.Command(go, build).output();
  assert.ok(built.success, new TextDecoder().decode(built.stderr));
  return [`${folder}/hook`];
}

/** Starts a subscriber of the guide, and waits until it listens. */
async function startProgram(command: CommandLine, secret: string) {
  const [name, ...args] = command;
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr;
  listener.close();
  const child = new Deno.Command(name, {
    args,
    env: { WEBHOOK_SECRET: secret, PORT: String(port) },
    stdout: "null",
    stderr: "null",
  }).spawn();
  const connects = () =>
    Deno.connect({ hostname: "127.0.0.1", port }).then((socket) => {
      socket.close();
      return true;
    }, () => false);
  await eventually(connects, { withinMs: 20_000, what: "the subscriber" });
  return {
    url: `http://127.0.0.1:${port}/hook`,
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.status;
    },
  };
}
