import assert from "node:assert/strict";
import type { Command } from "commander";
import { createProgram, run } from "../../scripts/farebox.ts";
import { runFarebox } from "../support/command.ts";
import { makeFolder, serviceEnv, startFarebox } from "../support/process.ts";

const { ADMIN_KEY } = serviceEnv;

interface Seen {
  request: string;
  /** Its headers and its body. */
  text: string;
}

/** A server that is not Farebox, and keeps what it receives. */
function startForeign(answer: (path: string) => Response) {
  const seen: Seen[] = [];
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const { pathname } = new URL(request.url);
    const text = JSON.stringify([...request.headers]) + await request.text();
    seen.push({ request: `${request.method} ${pathname}`, text });
    return answer(pathname);
  });
  const url = `http://127.0.0.1:${server.addr.port}`;
  return { url, seen, [Symbol.asyncDispose]: () => server.shutdown() };
}

/** The commands of a program that do something, by their words. */
function commandsBelow(command: Command, words: string[] = []): [string[], Command][] {
  if (command.commands.length === 0) return [[words, command]];
  return command.commands.flatMap((one) => commandsBelow(one, [...words, one.name()]));
}

/** Reads a secret from standard input before its first call, so that it runs as a process. */
const withInput = "stripe connect";

const withoutService = ["restore", "copy", "archive verify", "archive erase"];

/** Arguments with which a command gets as far as its first call. */
function argumentsOf(words: readonly string[], command: Command, file: string): string[] {
  const known: Record<string, string> = { amount: "1", percent: "5", targets: "main" };
  const given = command.registeredArguments.map((argument) => {
    const name = argument.name();
    return /file|source|csv/.test(name) ? file : known[name] ?? "pw_1";
  });
  const options = command.options.filter(({ mandatory }) => mandatory).flatMap(({ long }) => {
    const value = long === "--out" ? `${file}.out` : long === "--since" ? "2026-01-31" : "1";
    return [long ?? "", value];
  });
  const more: Record<string, string[]> = {
    "projects create": ["--name", "x"],
    "projects update": ["--name", "x"],
    "upstreams set": ["--provider", "openai"],
    import: ["--format", "csv"],
  };
  return [...words, ...given, ...options, ...more[words.join(" ")] ?? []];
}

const foreign: [string, (path: string) => Response][] = [
  ["a web site", () => new Response("<html>", { headers: { "content-type": "text/html" } })],
  ["another service", () => Response.json({ status: "ok", version: "1.0.0" })],
  ["a provider", () => Response.json({ error: { message: "unknown" } }, { status: 404 })],
  [
    "a redirect to itself",
    (path) =>
      path === "/healthz"
        ? new Response(null, { status: 302, headers: { location: "/moved" } })
        : Response.json({ status: "ok", service: "farebox" }),
  ],
];

async function quietly<T>(work: () => Promise<T>): Promise<T> {
  const { error, log } = console;
  console.error = console.log = () => {};
  try {
    return await work();
  } finally {
    Object.assign(console, { error, log });
  }
}

for (const [what, answer] of foreign) {
  Deno.test(`foreign server: no command sends a key or a body to ${what}`, async () => {
    await using folder = await makeFolder();
    await using server = startForeign(answer);
    const file = `${folder.path}/given`;
    Deno.env.set("ADMIN_KEY", ADMIN_KEY);
    try {
      const all = commandsBelow(createProgram())
        .filter(([words]) => ![...withoutService, withInput].includes(words.join(" ")));
      assert.ok(all.length > 30, `${all.length}`);
      for (const [words, command] of all) {
        const isLines = words[0] === "import";
        await Deno.writeTextFile(file, isLines ? "user,amount\nada,1\n" : "{}");
        const args = [...argumentsOf(words, command, file), "--yes", "--service", server.url];
        const before = server.seen.length;
        assert.equal(await quietly(() => run(args)), 3, args.join(" "));
        const now = server.seen.slice(before);
        assert.deepEqual(now.map(({ request }) => request), ["GET /healthz"], args.join(" "));
        assert.doesNotMatch(now[0]?.text ?? "", /authorization/);
        assert.ok(!now[0]?.text.includes(ADMIN_KEY));
      }
    } finally {
      Deno.env.delete("ADMIN_KEY");
    }
  });
}

Deno.test("foreign server: a secret from standard input is not sent to it either", async () => {
  await using folder = await makeFolder();
  await using server = startForeign(() => Response.json({ status: "ok" }));
  const args = [...withInput.split(" "), "pw_1", "--key"];
  const ran = await runFarebox(args, { folder: folder.path, url: server.url, input: "sk_live_x" });
  assert.equal(ran.code, 3, ran.complaint);
  assert.deepEqual(server.seen.map(({ request }) => request), ["GET /healthz"]);
});

Deno.test("foreign server: no command follows a redirect with its key", async () => {
  await using other = startForeign(() => Response.json({ status: "ok", service: "farebox" }));
  for (const status of [301, 302, 303, 307, 308]) {
    await using server = startForeign((path) =>
      path === "/healthz"
        ? Response.json({ status: "ok", service: "farebox" })
        : new Response(null, { status, headers: { location: `${other.url}${path}` } })
    );
    Deno.env.set("ADMIN_KEY", ADMIN_KEY);
    try {
      const args = ["projects", "create", "--name", "x", "--service", server.url];
      assert.equal(await quietly(() => run(args)), 3);
    } finally {
      Deno.env.delete("ADMIN_KEY");
    }
    assert.equal(server.seen.length, 2);
    assert.deepEqual(other.seen, []);
  }
});

Deno.test("foreign server: in 'upstreams set', --url is the upstream's address", async () => {
  await using folder = await makeFolder();
  await using farebox = await startFarebox({ folder: folder.path, env: serviceEnv });
  await using provider = startForeign(() => Response.json({}));
  const command = (args: string[], input = "") =>
    runFarebox([...args, "--json"], { folder: folder.path, url: farebox.url, input });
  const made = await command(["projects", "create", "--name", "Shop"]);
  const { id } = JSON.parse(made.printed);
  const set = ["upstreams", "set", id, "main", "--url", provider.url, "--key"];
  for (
    const args of [set, [...set, "--service", farebox.url], ["--service", farebox.url, ...set]]
  ) {
    const ran = await command(args, "sk-of-the-provider\n");
    assert.equal(ran.code, 0, ran.complaint);
    assert.equal(JSON.parse(ran.printed).url, provider.url);
    assert.deepEqual(JSON.parse(ran.printed).apiKey, { set: true });
  }
  assert.deepEqual(provider.seen, []);
  // Elsewhere it is the service's, as it was before.
  const ran = await command(["projects", "list", "--url", provider.url]);
  assert.equal(ran.code, 3);
  assert.match(ran.complaint, /is not Farebox.*No key was sent to it/);
  const { printed } = await command(["upstreams", "set", "--help"]);
  assert.match(printed, /--url <url> +its base URL/);
  assert.match((await command(["--help"])).printed, /--service <url> +the URL of the service/);
});

Deno.test("foreign server: /healthz says that it is Farebox", async () => {
  await using folder = await makeFolder();
  await using farebox = await startFarebox({ folder: folder.path, dev: true });
  const { status, service } = await farebox.json("/healthz");
  assert.deepEqual([status, service], ["ok", "farebox"]);
});
