import assert from "node:assert/strict";
import { createHttpClient } from "../../src/http/client.ts";
import { type HttpProxy, readProxies } from "../../src/http/proxy.ts";
import { createConnect } from "../../src/platform/connect.ts";
import { traceRequest } from "../../src/metrics/tracing.ts";
import { startProxy } from "../support/tunnel_proxy.ts";

const read = (name: string) =>
  Deno.readTextFileSync(new URL(`../fixtures/tls/${name}`, import.meta.url));
const clock = {
  elapsed: () => performance.now(),
  after(ms: number, work: () => void) {
    const timer = setTimeout(work, ms);
    return () => clearTimeout(timer);
  },
};
const { signal: unaborted } = new AbortController();

const proxiesOf = (variables: Record<string, string>) => readProxies((name) => variables[name]);
const server = (url: string) => {
  const { hostname, port, protocol } = new URL(url);
  const secure = protocol === "https:";
  return { hostname, port: Number(port) || (secure ? 443 : 80), secure };
};

Deno.test("proxy: each scheme has its variable, ALL_PROXY serves the rest, and lower case wins", () => {
  const hostOf = (variables: Record<string, string>, url: string) =>
    proxiesOf(variables)?.(server(url))?.hostname ?? null;
  const both = { HTTPS_PROXY: "http://s:1", http_proxy: "h:2", HTTP_PROXY: "http://upper" };
  assert.equal(hostOf(both, "https://a.test"), "s");
  assert.equal(hostOf(both, "http://a.test"), "h");
  assert.equal(hostOf({ ALL_PROXY: "http://all" }, "https://a.test"), "all");
  assert.equal(hostOf({ HTTPS_PROXY: "http://s" }, "http://a.test"), null);
  assert.equal(proxiesOf({ NO_PROXY: "a.test" }), null);
});

Deno.test("proxy: NO_PROXY names hosts, domains, ports, addresses, or everything", () => {
  const isProxied = (entries: string, url: string) =>
    proxiesOf({ ALL_PROXY: "http://p", NO_PROXY: entries })?.(server(url)) !== null;
  const cases: [string, string, boolean][] = [
    ["a.test", "https://a.test", false],
    ["a.test", "https://sub.a.test", false],
    [".a.test", "https://sub.a.test", false],
    ["*.a.test", "https://sub.a.test", false],
    ["a.test", "https://ba.test", true],
    ["A.TEST", "https://a.test", false],
    ["a.test:8443", "https://a.test:8443", false],
    ["a.test:8443", "https://a.test", true],
    ["b.test, a.test", "https://a.test", false],
    ["*", "http://127.0.0.1:9", false],
    ["127.0.0.1", "http://127.0.0.1:9", false],
    ["", "http://127.0.0.1:9", true],
  ];
  for (const [entries, url, proxied] of cases) {
    assert.equal(isProxied(entries, url), proxied, `${entries} ${url}`);
  }
});

Deno.test("proxy: an invalid URL, or an unsupported scheme, is an error that names its variable", () => {
  for (
    const [url, said] of [
      ["socks5://me:hidden@p", /ALL_PROXY must be an http:\/\/ URL/],
      ["hidden://p", /ALL_PROXY must be an http:\/\/ URL/],
      ["http://", /ALL_PROXY/],
      ["http://me:hi/hidden@p:3128", /ALL_PROXY is not a URL/],
      // Each would ask the DNS for "me", and send the rest of the password there.
      ["http://me:12/hidden@p:3128", /ALL_PROXY must have no path/],
      ["http://me:12?hidden@p:3128", /ALL_PROXY must have no path/],
      ["me:12#hidden@p:3128", /ALL_PROXY must have no path/],
      ["http://me:12\\hidden@p:3128", /ALL_PROXY must have no path/],
      ["http://me:%zzhidden@p:3128", /ALL_PROXY has a user or password/],
    ] as const
  ) {
    assert.throws(() => proxiesOf({ ALL_PROXY: url }), (error) => {
      assert.match(String(error), said);
      assert.ok(!String(error).includes("hidden"), String(error));
      return true;
    });
  }
  assert.ok(proxiesOf({ ALL_PROXY: "http://p:3128/" }));
  assert.equal(
    proxiesOf({ ALL_PROXY: "http://ada:p%40ss@p" })?.(server("http://a"))?.authorization,
    `Basic ${btoa("ada:p@ss")}`,
  );
});

const clientBy = (proxy: HttpProxy | null) =>
  createHttpClient(createConnect([read("ca.pem")]), clock, () => proxy);
const requestTo = (url: string, signal = unaborted, onSend = () => {}) => ({
  url,
  method: "POST" as const,
  headers: {},
  body: "{}",
  signal,
  onSend,
});

Deno.test("proxy: a secure upstream is reached through a tunnel, with the proxy's credentials", async () => {
  await using upstream = Deno.serve({
    hostname: "127.0.0.1",
    port: 0,
    cert: read("server.pem"),
    key: read("server.key"),
    onListen() {},
  }, () => new Response("reached"));
  using proxy = startProxy("HTTP/1.1 200 OK\r\n\r\n", upstream.addr.port);
  const client = clientBy({ ...proxy.proxy, authorization: "Basic YTpi" });
  const response = await client(requestTo("https://localhost:9/v1/models"));
  assert.equal(response.status, 200);
  response.body.cancel();
  assert.deepEqual(proxy.requests, [
    "CONNECT localhost:9 HTTP/1.1\r\nhost: localhost:9\r\nproxy-authorization: Basic YTpi\r\n\r\n",
  ]);
});

Deno.test("proxy: a proxy that refuses is reported with its status, and nothing was sent", async () => {
  using proxy = startProxy("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", 0);
  let sent = false;
  const client = clientBy({ ...proxy.proxy, authorization: null });
  const request = requestTo("https://localhost:9/", unaborted, () => (sent = true));
  await assert.rejects(client(request), /proxy refused to connect to localhost:9 \(status 407\)/);
  assert.equal(sent, false);
});

Deno.test("proxy: a plain request goes to the proxy with its whole URL", async () => {
  const seen: string[] = [];
  await using proxy = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen() {} },
    ({ url, headers }) => {
      seen.push(url, headers.get("proxy-authorization") ?? "");
      return new Response("by proxy");
    },
  );
  const { port } = proxy.addr;
  const client = clientBy({ hostname: "127.0.0.1", port, authorization: "Basic YTpi" });
  const response = await client(requestTo("http://models.test/v1/chat"));
  assert.equal(response.status, 200);
  response.body.cancel();
  assert.deepEqual(seen, ["http://models.test/v1/chat", "Basic YTpi"]);
});

for (const through of ["no proxy", "a tunnel", "a proxy that does not answer"]) {
  for (const kind of ["plain", "traced"]) {
    Deno.test(`http: nothing counts as sent during a TLS handshake that never completes: ${through}, ${kind}`, async () => {
      // It accepts the connection, and never answers the handshake.
      using silent = startProxy(null, 0);
      using tunnel = startProxy("HTTP/1.1 200 OK\r\n\r\n", silent.proxy.port);
      const { port } = silent.proxy;
      const proxy = through === "no proxy" ? null : {
        ...(through === "a tunnel" ? tunnel.proxy : silent.proxy),
        authorization: null,
      };
      const client = clientBy(proxy);
      const send: typeof client = kind === "plain"
        ? client
        : (request) => traceRequest(request, client);
      const stop = new AbortController();
      let sent = false;
      const call = send(requestTo(`https://127.0.0.1:${port}/`, stop.signal, () => (sent = true)));
      setTimeout(() => stop.abort(), 100);
      await assert.rejects(call);
      assert.equal(sent, false);
    });
  }
}
