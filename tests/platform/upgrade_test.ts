import assert from "node:assert/strict";
import { makeFolder, startFarebox } from "../support/process.ts";
import { listenHttp } from "../../src/platform/http_server.ts";
import { withoutUpgrade } from "../../src/platform/upgrade_filter.ts";
import { createHandClock } from "../support/clock.ts";

const text = (bytes: Uint8Array) => new TextDecoder("latin1").decode(bytes);
const bytes = (text: string) => Uint8Array.from(text, (char) => char.charCodeAt(0));

const heads: [string, string][] = [
  [
    "POST /v1 HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\nContent-Length: 2\r\nHost: a\r\n" +
    "HTTP2-Settings: AAEAAEAA\r\nUpgrade: h2c\r\n\r\n{}",
    "POST /v1 HTTP/1.1\r\nConnection: keep-alive\r\nContent-Length: 2\r\nHost: a\r\n\r\n{}",
  ],
  [
    "PUT / HTTP/1.1\r\nhost: a\r\nconnection: close, upgrade\r\nupgrade: foo\r\n" +
    "transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "PUT / HTTP/1.1\r\nhost: a\r\nConnection: close\r\ntransfer-encoding: chunked\r\n\r\n" +
    "2\r\n{}\r\n0\r\n\r\n",
  ],
];
for (const [sent, passed] of heads) {
  Deno.test(`upgrade: it is taken out of ${JSON.stringify(sent.slice(0, 40))}…`, () => {
    assert.equal(text(withoutUpgrade(bytes(sent))), passed);
  });
}

const untouched = [
  "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nX-Upgrade: no\r\n\r\n{}",
  "GET /v1/responses HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
  '{"Upgrade": "POST / HTTP/1.1\r\nUpgrade: h2c\r\nContent-Length: 1\r\n\r\n"}',
  "POSTED text\r\nUpgrade: h2c\r\nContent-Length: 1\r\n\r\n",
  "POST / HTTP/1.1\r\nUpgrade: h2c\r\nContent-Length: 2\r\n",
  "",
];
for (const sent of untouched) {
  Deno.test(`upgrade: ${JSON.stringify(sent.slice(0, 60))} passes as it is`, () => {
    assert.equal(text(withoutUpgrade(bytes(sent))), sent);
  });
}

type Seen = { method: string; body: string; host: string };

async function serving<T>(
  ignoresUpgrade: boolean,
  work: (port: number, seen: Seen[]) => Promise<T>,
): Promise<T> {
  const seen: Seen[] = [];
  const { promise, resolve } = Promise.withResolvers<number>();
  const config = { host: "127.0.0.1", port: 0, ignoresUpgrade };
  const deps = { config, clock: createHandClock(), log: () => {} };
  const server = listenHttp(deps as never, async (request, { remoteAddr }) => {
    const host = "hostname" in remoteAddr ? remoteAddr.hostname : "";
    seen.push({ method: request.method, body: await request.text(), host });
    return new Response(`got ${seen.at(-1)?.body}`);
  }, resolve);
  try {
    return await work(await promise, seen);
  } finally {
    await server.shutdown();
  }
}

async function exchange(port: number, sent: string, count: number): Promise<string> {
  using connection = await Deno.connect({ port });
  let answer = "";
  const buffer = new Uint8Array(4096);
  for (let at = 0; at < count; at++) {
    await connection.write(bytes(sent));
    const until = answer.length;
    while (!answer.slice(until).includes("got")) {
      const read = await connection.read(buffer);
      if (read === null) return answer;
      answer += text(buffer.subarray(0, read));
    }
  }
  return answer;
}

Deno.test("upgrade: a kept connection that asks for it with every request is answered each time", () =>
  serving(true, async (port, seen) => {
    const sent = heads[0]?.[0] ?? "";
    const answer = await exchange(port, sent, 3);
    assert.equal(answer.match(/HTTP\/1\.1 200/g)?.length, 3);
    assert.deepEqual(seen, Array(3).fill({ method: "POST", body: "{}", host: "127.0.0.1" }));
  }));

const javaClient = `
import java.net.URI;
import java.net.http.*;
public class Client {
  public static void main(String[] args) throws Exception {
    HttpClient client = HttpClient.newHttpClient();
    for (int at = 0; at < 2; at++) {
      HttpRequest request = HttpRequest.newBuilder(URI.create(args[0]))
        .header("Content-Type", "application/json")
        .POST(HttpRequest.BodyPublishers.ofString("{\\"n\\":" + at + "}")).build();
      HttpResponse<String> response = client.send(request, HttpResponse.BodyHandlers.ofString());
      System.out.println(response.statusCode() + " " + response.body());
    }
  }
}
`;

async function hasJava(): Promise<boolean> {
  try {
    return (await new Deno.Command("javac", { args: ["-version"] }).output()).success;
  } catch {
    return false;
  }
}

Deno.test({
  name: "upgrade: the JDK's default client is answered over plain http",
  ignore: !await hasJava(),
  fn: () =>
    serving(true, async (port) => {
      const folder = await Deno.makeTempDir();
      try {
        await Deno.writeTextFile(`${folder}/Client.java`, javaClient);
        const args = [`${folder}/Client.java`, `http://127.0.0.1:${port}/v1/chat/completions`];
        const { stdout, stderr } = await new Deno.Command("java", { args }).output();
        assert.equal(text(stdout), '200 got {"n":0}\n200 got {"n":1}\n', text(stderr));
      } finally {
        await Deno.remove(folder, { recursive: true });
      }
    }),
});

Deno.test("upgrade: a service behind the filter streams, and stops as usual", async () => {
  await using folder = await makeFolder();
  const env = { HTTP_UPGRADE: "ignore" };
  await using farebox = await startFarebox({ folder: folder.path, dev: true, env });
  await farebox.json("/v1/user/balance/deposit", { body: { user: "ada", amount: "9" } });
  const content = "word ".repeat(20);
  const body = {
    model: "sandbox/echo",
    user: "ada",
    stream: true,
    messages: [{ role: "user", content }],
  };
  const response = await farebox.call("/v1/chat/completions", { body });
  assert.equal(response.status, 200);
  assert.match(await response.text(), /data: \[DONE\]\n\n$/);
  farebox.signal("SIGTERM");
  assert.equal((await farebox.ended).code, 0);
});
