// Runs the README as a reader would: each block marked `run` is executed against a new
// `deno task dev`, and its output is compared with the block that follows.
import { fileURLToPath } from "node:url";
import { matches, readSnippets, type Snippet } from "./snippets.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const startMs = 30_000;

const steps = readSnippets(await Deno.readTextFile(`${root}README.md`))
  .filter(({ mark }) => mark === "run");
const scratch = await Deno.makeTempDir();
const port = freePort();
const service = new Deno.Command(Deno.execPath(), {
  args: ["task", "dev"],
  cwd: root,
  env: { PORT: String(port), KV_PATH: `${scratch}/readme.kv`, LOG_LEVEL: "warn" },
  stdout: "piped",
  stderr: "inherit",
}).spawn();
let failed = 0;
try {
  await announced(service.stdout);
  for (const step of steps) {
    const printed = await run(step);
    const same = matches(printed, step.expected);
    console.log(`README.md:${step.line} ... ${same ? "ok" : "FAILED"}`);
    if (same) continue;
    failed++;
    console.log(`expected:\n${step.expected}\nprinted:\n${printed}`);
  }
} finally {
  service.kill("SIGTERM");
  await service.status;
  await Deno.remove(scratch, { recursive: true });
}
console.log(`readme | ${steps.length - failed} passed | ${failed} failed`);
Deno.exit(failed > 0 || steps.length === 0 ? 1 : 0);

async function run({ language, code }: Snippet): Promise<string> {
  const here = code.replaceAll("localhost:8000", `localhost:${port}`);
  const command = language === "ts" ? await tsCommand(here) : { name: "sh", args: ["-c", here] };
  const { stdout, stderr } = await new Deno.Command(command.name, { args: command.args, cwd: root })
    .output();
  const text = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
  return text.replaceAll(`localhost:${port}`, "localhost:8000");
}

async function tsCommand(code: string): Promise<{ name: string; args: string[] }> {
  const file = `${scratch}/snippet.ts`;
  await Deno.writeTextFile(file, code);
  const locked = [`--lock=${root}deno.lock`, "--frozen", "--config", `${root}deno.json`];
  return { name: Deno.execPath(), args: ["run", "-A", ...locked, file] };
}

/** Resolves once the service has printed its URL. Throws when it does not. */
async function announced(stdout: ReadableStream<Uint8Array>): Promise<void> {
  const deadline = setTimeout(() => service.kill("SIGKILL"), startMs);
  let text = "";
  const reader = stdout.pipeThrough(new TextDecoderStream()).getReader();
  while (!text.includes("listens on")) {
    const { done, value } = await reader.read();
    if (done) throw new Error(`the service did not start:\n${text}`);
    text += value;
  }
  clearTimeout(deadline);
  // Its later output is read and discarded, so that it never blocks.
  (async () => {
    while (!(await reader.read()).done);
  })();
}

function freePort(): number {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr;
  listener.close();
  return port;
}
