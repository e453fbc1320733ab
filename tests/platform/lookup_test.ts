import assert from "node:assert/strict";
import { createLookup } from "../../src/platform/lookup.ts";

const here = new URL("../../", import.meta.url).pathname;

/**
 * A program whose name servers never answer: it looks 60 names up, and then encrypts and reads a
 * file, which take threads as lookups do.
 */
const program = `
import { createLookup } from "${here}src/platform/lookup.ts";
const lookup = createLookup();
const lookups = Array.from({ length: 60 }, (_, n) => lookup("name" + n + ".example.com"));
const late = Promise.race(lookups).catch(() => {}).then(() => "late");
await new Promise((done) => setTimeout(done, 1_000));
const algorithm = { name: "AES-GCM", length: 256 };
const key = await crypto.subtle.generateKey(algorithm, true, ["encrypt"]);
const iv = new Uint8Array(12);
const work = Promise.all([
  crypto.subtle.encrypt({ name: "AES-GCM", iv }, key, iv),
  Deno.readTextFile("/etc/hostname"),
]).then(() => "in time");
console.log(await Promise.race([work, late]));
Deno.exit();
`;

/** Only root may give a process another resolv.conf. */
const mayUnshare = Deno.build.os === "linux" &&
  await new Deno.Command("unshare", { args: ["-m", "true"] }).output()
    .then(({ success }) => success, () => false);

Deno.test("lookup: names that hang delay neither encryption nor files", {
  ignore: !mayUnshare,
}, async () => {
  const folder = await Deno.makeTempDir({ prefix: "farebox-" });
  // Nothing answers there, and nothing refuses: the port is bound, and never read.
  const silent = new Deno.Command("python3", {
    args: [
      "-c",
      "import socket,time\n" +
      "s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\ns.bind(('127.0.0.97',53))\n" +
      "print('bound',flush=True)\ntime.sleep(40)",
    ],
    stdout: "piped",
  }).spawn();
  const said = silent.stdout.getReader();
  try {
    await said.read();
    await Deno.writeTextFile(`${folder}/resolv.conf`, "nameserver 127.0.0.97\n");
    await Deno.writeTextFile(`${folder}/program.ts`, program);
    const script = `mount --bind ${folder}/resolv.conf /etc/resolv.conf && ` +
      `exec ${Deno.execPath()} run -A --no-check --no-lock ${folder}/program.ts`;
    const { stdout, stderr } = await new Deno.Command("unshare", {
      args: ["-m", "sh", "-c", script],
      env: { DENO_NO_UPDATE_CHECK: "1" },
    }).output();
    const printed = new TextDecoder().decode(stdout).trim();
    assert.equal(printed, "in time", new TextDecoder().decode(stderr));
  } finally {
    silent.kill();
    await said.cancel();
    await silent.status;
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test({
  name: "lookup: the addresses of a name, and an error for one that has none",
  // The worker lives as long as its process.
  sanitizeResources: false,
  sanitizeOps: false,
  async fn() {
    const lookup = createLookup();
    const [address = ""] = await lookup("localhost");
    assert.match(address, /^(127\.0\.0\.1|::1)$/);
    await assert.rejects(lookup("no-such-name.invalid"));
  },
});
