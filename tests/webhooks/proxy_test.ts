import assert from "node:assert/strict";
import { readProxies } from "../../src/http/proxy.ts";
import { attemptTo } from "../support/attempt.ts";
import { startRawReceiver } from "../support/raw_receiver.ts";
import { startSender } from "../support/sender.ts";
import { startProxy } from "../support/tunnel_proxy.ts";

const read = (name: string) =>
  Deno.readTextFileSync(new URL(`../fixtures/tls/receivers/${name}`, import.meta.url));
const ok = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
const startReceiver = (cert = "valid.pem") =>
  startRawReceiver({ tls: { cert: read(cert), key: read("receiver.key") }, answer: () => ok });
const opened = "HTTP/1.1 200 Connection established\r\n\r\n";

function senderBy(port: number, variables: Record<string, string> = {}) {
  const environment: Record<string, string> = {
    HTTPS_PROXY: `http://ada:pw@127.0.0.1:${port}`,
    ...variables,
  };
  const findProxy = readProxies((name) => environment[name]) ?? assert.fail();
  return startSender({ caCerts: [read("ca.pem")], findProxy });
}

Deno.test("webhook proxy: it is asked for the checked address, and TLS is verified against the name", async () => {
  using receiver = startReceiver();
  using proxy = startProxy(opened, receiver.port);
  const sender = senderBy(proxy.proxy.port);
  const url = `https://hooks.test:${receiver.port}/`;
  // Only the proxy can reach this address.
  const logged = await attemptTo({ url, addresses: ["127.9.9.9"], sender });
  assert.equal(logged.error, null);
  const host = `127.9.9.9:${receiver.port}`;
  assert.deepEqual(proxy.requests, [
    `CONNECT ${host} HTTP/1.1\r\nhost: ${host}\r\n` +
    `proxy-authorization: Basic ${btoa("ada:pw")}\r\n\r\n`,
  ]);
  const wrong = await attemptTo({
    url: `https://wrong.test:${receiver.port}/`,
    addresses: ["127.9.9.9"],
    sender,
  });
  assert.match(wrong.error ?? "", /^tls_error: the certificate is for another name/);
});

Deno.test("webhook proxy: an address that it refuses leads to the next, and the error names no address", async () => {
  using refusing = startProxy("HTTP/1.1 502 Bad Gateway\r\n\r\n", 0);
  const sender = senderBy(refusing.proxy.port);
  const url = "https://hooks.test/";
  const logged = await attemptTo({ url, addresses: ["127.9.9.9", "::1"], sender });
  assert.equal(logged.error, "connection_error: the proxy refused the connection (status 502)");
  assert.deepEqual(refusing.requests.map((text) => text.split("\r\n")[0]), [
    "CONNECT 127.9.9.9:443 HTTP/1.1",
    "CONNECT [::1]:443 HTTP/1.1",
  ]);
  const gone = await attemptTo({ url, addresses: ["127.9.9.9"], sender: senderBy(1) });
  assert.equal(gone.error, "connection_error: the proxy could not be reached");
});

Deno.test("webhook proxy: hosts of NO_PROXY, and plain HTTP in development, are reached without it", async () => {
  using receiver = startReceiver();
  const sender = senderBy(1, { NO_PROXY: "hooks.test", HTTP_PROXY: "http://127.0.0.1:1" });
  const url = `https://hooks.test:${receiver.port}/`;
  assert.equal((await attemptTo({ url, addresses: ["127.0.0.1"], sender })).error, null);
  using plain = startRawReceiver({ answer: () => ok });
  const local = `http://localhost:${plain.port}/`;
  assert.equal((await attemptTo({ url: local, addresses: ["127.0.0.1"], sender })).error, null);
});
