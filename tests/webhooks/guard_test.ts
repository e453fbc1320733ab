import assert from "node:assert/strict";
import { createIsOpened, isPublic } from "../../src/webhooks/delivery/addresses.ts";
import { createGuard } from "../../src/webhooks/delivery/guard.ts";
import { createHandClock } from "../support/clock.ts";
import { createWorld } from "../support/world.ts";
import { subscribe, subscriptionsPath } from "../support/webhooks.ts";

const refusedAddresses = [
  ...["0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.100.100.200"],
  ...["100.127.255.255", "127.0.0.1", "127.255.255.254", "168.63.129.16", "169.254.169.254"],
  ...["169.254.170.2", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.2.1", "192.31.196.1"],
  ...["192.52.193.1", "192.88.99.1", "192.168.0.1", "192.168.255.255", "192.175.48.1"],
  ...["198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.1.1.1"],
  ...["240.0.0.1", "255.255.255.255", "::", "::1", "::ffff:127.0.0.1"],
  ...["::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1"],
  ...["2002:7f00:1::", "2620:4f:8000::1", "3fff::1", "5f00::1", "fc00::1", "fd00:ec2::254"],
  ...["fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "localhost", "", "1.2.3", "1.2.3.4.5"],
];
const publicAddresses = [
  ...["1.1.1.1", "8.8.8.8", "93.184.216.34", "100.63.255.255", "100.128.0.1", "172.15.0.1"],
  ...[
    "172.32.0.1",
    "168.63.129.15",
    "192.0.1.1",
    "198.17.255.255",
    "198.20.0.1",
    "223.255.255.255",
  ],
  ...[
    "::ffff:8.8.8.8",
    "64:ff9b::8.8.8.8",
    "2606:4700::1111",
    "2a00:1450:4001:81b::200e",
    "2620:4f:7fff::1",
  ],
];

/** How IPv6 addresses lead to an IPv4 address, given as its two halves in hexadecimal. */
const embeddings: [what: string, write: (high: string, low: string) => string][] = [
  ["NAT64", (high, low) => `64:ff9b::${high}:${low}`],
  ["local NAT64 with 96 bits", (high, low) => `64:ff9b:1::${high}:${low}`],
  ["local NAT64 with 96 bits of its own", (high, low) => `64:ff9b:1:0:0:9:${high}:${low}`],
  ["IPv4-mapped", (high, low) => `::ffff:${high}:${low}`],
  ["IPv4-translated", (high, low) => `::ffff:0:${high}:${low}`],
  ["IPv4-compatible", (high, low) => `::${high}:${low}`],
  ["6to4", (high, low) => `2002:${high}:${low}::1`],
  ["Teredo's server", (high, low) => `2001:0:${high}:${low}:0:0:a247:2801`],
  ["Teredo's client", (high, low) => `2001:0:5db8:d822:0:0:${inverted(high)}:${inverted(low)}`],
  ["ISATAP", (high, low) => `2606:4700::5efe:${high}:${low}`],
  ["ISATAP with a unique address", (high, low) => `2606:4700::200:5efe:${high}:${low}`],
];
const inverted = (half: string) => (parseInt(half, 16) ^ 0xffff).toString(16);
const halvesOf = (v4: string): [string, string] => {
  const [a = 0, b = 0, c = 0, d = 0] = v4.split(".").map(Number);
  return [(a * 256 + b).toString(16), (c * 256 + d).toString(16)];
};

for (const [what, write] of embeddings) {
  Deno.test(`guard: an address by ${what} is judged by the IPv4 address within, also in an opened range`, () => {
    for (
      const v4 of ["10.0.0.1", "127.0.0.1", "169.254.169.254", "192.168.1.1", "100.100.100.200"]
    ) {
      const address = write(...halvesOf(v4));
      assert.equal(isPublic(address), false, address);
      for (const range of ["::/0", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "::/3"]) {
        assert.equal(createIsOpened([range])(address), false, `${address} in ${range}`);
      }
      assert.equal(createIsOpened(["::/0", `${v4}/32`])(address), true, "both are opened");
    }
    const address = write(...halvesOf("93.184.216.34"));
    assert.equal(isPublic(address), true, address);
    assert.equal(createIsOpened(["::/0"])(address), true, address);
  });
}

Deno.test("guard: a local NAT64 prefix of any length is judged by the IPv4 address within", () => {
  for (
    const [address, judged] of [
      // 169.254.169.254, 10.0.0.1 and 93.184.216.34 by prefixes of 48, 56 and 64 bits.
      ["64:ff9b:1:a9fe:a9:fe00::", false],
      ["64:ff9b:1:a9fe:a9:fe00:5db8:d822", false],
      ["64:ff9b:1:a:0:100::", false],
      ["64:ff9b:1:0:a:0:100:0", false],
      ["64:ff9b:1::", false],
    ] as const
  ) assert.equal(isPublic(address), judged, address);
});

Deno.test("guard: ::1 is opened by its own range, though IPv4 could be read in it", () => {
  assert.equal(createIsOpened(["::1/128"])("::1"), true);
  assert.equal(createIsOpened(["fd00::/8"])("fd00::5efe:7f00:1"), false);
  assert.equal(createIsOpened(["fd00::/8"])("fd00::1"), true);
  assert.equal(createIsOpened(["10.0.0.0/8"])("fd00::5efe:a00:1"), false, "the prefix counts too");
});

Deno.test("guard: only addresses on the public internet are public", () => {
  for (const address of refusedAddresses) assert.equal(isPublic(address), false, address);
  for (const address of publicAddresses) assert.equal(isPublic(address), true, address);
});

const refusedUrls = [
  "http://hooks.example.com/",
  "ftp://hooks.example.com/",
  "https://user:pass@hooks.example.com/",
  "https://user@hooks.example.com/",
  "https://hooks.example.com/#part",
  "https://hooks.example.com/#",
  `https://hooks.example.com/${"a".repeat(2048)}`,
  "https://",
  "hooks.example.com",
  "",
  "https://localhost/",
  "https://localhost./",
  "https://app.localhost/",
  "https://printer.local/",
  "https://metadata.google.internal/",
  "https://nas.home.arpa/",
  "https://abc.onion/",
  "https://intranet/",
  "https://127.0.0.1/",
  "https://2130706433/",
  "https://0x7f000001/",
  "https://0177.0.0.1/",
  "https://127.1/",
  "https://①②⑦.⓪.⓪.①/",
  "https://127.0.0.1./",
  "https://93.184.216.34/",
  "https://[::1]/",
  "https://[::]/",
  "https://[::ffff:127.0.0.1]/",
  "https://[2606:4700::1111]/",
  "https://hooks.example.com:22/",
  "https://hooks.example.com:8080/",
  "https://farebox.test/loop",
];

Deno.test("guard: a URL that could not be delivered to is refused at creation, naming the field", async () => {
  using world = await createWorld();
  for (const url of refusedUrls) {
    const { status, body } = await world.json(subscriptionsPath, { body: { url, events: ["*"] } });
    assert.deepEqual([status, body.error?.param], [400, "url"], url);
  }
  world.subscriber.names.set("rebound.example.com", ["93.184.216.34", "192.168.1.1"]);
  const body = { url: "https://rebound.example.com/", events: ["*"] };
  assert.equal((await world.json(subscriptionsPath, { body })).status, 400);
  assert.deepEqual((await world.json(subscriptionsPath)).body.subscriptions, []);
});

Deno.test("guard: public names on 443 and 8443 are accepted", async () => {
  using world = await createWorld();
  const stored: Record<string, string> = {
    "https://hooks.example.com": "https://hooks.example.com/",
    "https://hooks.example.com:443/a?b=c": "https://hooks.example.com/a?b=c",
    "https://hooks.example.com:8443/": "https://hooks.example.com:8443/",
    "https://bücher.example/": "https://xn--bcher-kva.example/",
    " HTTPS://Hooks.Example.com/a/../b\t?c=ä ": "https://hooks.example.com/b?c=%C3%A4",
  };
  for (const [url, parsed] of Object.entries(stored)) {
    const subscription = await subscribe(world, { url });
    assert.equal(subscription.url, parsed);
    const { body } = await world.json(`${subscriptionsPath}/${subscription.id}`);
    assert.equal(body.subscription.url, parsed);
  }
});

Deno.test("guard: the operator's ranges are allowed, at creation and at the attempt, and no others", async () => {
  using world = await createWorld({ env: { WEBHOOK_ALLOW_CIDRS: "10.1.0.0/16, fd00:1::/32" } });
  world.subscriber.names.set("n8n.internal", ["10.1.2.3"]);
  world.subscriber.names.set("other.internal", ["10.2.2.3"]);
  await subscribe(world, { url: "https://n8n.internal:5678/hook" });
  await subscribe(world, { url: "https://10.1.9.9:5678/hook" });
  await subscribe(world, { url: "https://[fd00:1::5]/hook" });
  const closed = ["https://other.internal/", "https://10.2.0.1/", "https://[fd00:2::5]/"];
  const plain = ["http://10.1.9.9:5678/hook", "http://n8n.internal:5678/hook"];
  for (const url of [...closed, ...plain]) {
    const { status } = await world.json(subscriptionsPath, { body: { url, events: ["*"] } });
    assert.equal(status, 400, url);
  }
  await world.deposit("ada", "1");
  await world.app.dispatcher.idle();
  const reached = world.subscriber.received.map(({ addresses }) => addresses.join());
  assert.deepEqual(reached.sort(), ["10.1.2.3", "10.1.9.9", "fd00:1::5"]);
});

const odd = [
  "https://hooks.example.com:22/",
  "https://hooks.example.com:6379/",
  "https://intranet/",
]
  .concat("https://localhost/", "https://metadata.google.internal/", "https://x.internal.:8080/");

Deno.test("guard: creating a subscription answers alike for private and for unknown names", async () => {
  for (const WEBHOOK_ALLOW_CIDRS of ["", "10.1.0.0/16"]) {
    using world = await createWorld({ env: { WEBHOOK_ALLOW_CIDRS } });
    for (
      const url of ["https://db.corp.example/hook", "https://db.internal/", "https://db:5432/"]
    ) {
      const answers = new Set<string>();
      for (const addresses of [[], ["10.2.0.1"], ["93.184.216.34", "127.0.0.1"], ["fd00::1"]]) {
        world.subscriber.names.set(new URL(url).hostname, addresses);
        const { status, body } = await world.json(subscriptionsPath, {
          body: { url, events: ["*"] },
        });
        answers.add(JSON.stringify([status, body]));
      }
      assert.equal(answers.size, 1, [...answers].join());
      assert.match([...answers].join(), /^\[400,/);
    }
  }
});

Deno.test("guard: allowing a range allows no port and no private name of any other address", async () => {
  let addresses: string[] = [];
  const guard = createGuard({
    allowCidrs: ["10.1.0.0/16"],
    dev: false,
    baseUrl: "https://farebox.test",
    resolve: () => Promise.resolve(addresses),
    clock: createHandClock(),
  });
  for (const text of odd) {
    const url = guard.checkUrl(text);
    for (addresses of [["93.184.216.34"], ["10.1.2.3", "93.184.216.34"], ["10.2.2.3"]]) {
      await assert.rejects(guard.checkNow(url, "pw_1"), { status: 400, param: "url" }, text);
      assert.deepEqual(await guard.vet(url, "pw_1"), { refused: "blocked_address" }, text);
    }
    addresses = ["10.1.2.3", "10.1.9.9"];
    await guard.checkNow(url, "pw_1");
    assert.deepEqual(await guard.vet(url, "pw_1"), { addresses }, text);
  }
  addresses = ["10.1.2.3", "93.184.216.34"];
  assert.deepEqual(await guard.vet(guard.checkUrl("https://hooks.example.com/"), "pw_1"), {
    addresses,
  });
  addresses = ["93.184.216.34"];
  const message = "'url' must use port 443 or 8443.";
  await assert.rejects(guard.checkNow(new URL("https://hooks.example.com:22/"), "pw_1"), {
    message,
  });
});

Deno.test("guard: in development this machine may be reached, also without TLS", () => {
  const guard = createGuard({
    allowCidrs: [],
    dev: true,
    baseUrl: "http://localhost",
    resolve: () => Promise.resolve(["127.0.0.1"]),
    clock: createHandClock(),
  });
  for (const url of ["http://localhost:3000/", "http://127.0.0.1:3000/", "http://[::1]:3000/"]) {
    assert.equal(guard.checkUrl(url).href, url);
  }
  for (
    const url of ["http://hooks.example.com/", "http://10.0.0.1/", "http://localhost.evil.com/"]
  ) {
    assert.throws(() => guard.checkUrl(url), { status: 400 }, url);
  }
});

Deno.test("guard: addresses are resolved at every attempt", async () => {
  const answers = [["93.184.216.34"], ["127.0.0.1"], [], ["93.184.216.34"]];
  const guard = createGuard({
    allowCidrs: [],
    dev: false,
    baseUrl: "https://farebox.test",
    resolve: () => Promise.resolve(answers.shift() ?? []),
    clock: createHandClock(),
  });
  const url = new URL("https://hooks.example.com/");
  assert.deepEqual(await guard.vet(url, "pw_1"), { addresses: ["93.184.216.34"] });
  assert.deepEqual(await guard.vet(url, "pw_1"), { refused: "blocked_address" });
  assert.deepEqual(await guard.vet(url, "pw_1"), { refused: "dns_error" });
  assert.deepEqual(await guard.vet(url, "pw_1"), { addresses: ["93.184.216.34"] });
});

Deno.test("guard: a name whose servers do not respond within five seconds is refused at creation", async () => {
  const clock = createHandClock();
  const guard = createGuard({
    allowCidrs: [],
    dev: false,
    baseUrl: "https://farebox.test",
    resolve: () => new Promise(() => {}),
    clock,
  });
  const checked = guard.checkNow(new URL("https://slow.example.com/"), "pw_1");
  const refused = assert.rejects(checked, { status: 400, param: "url", message: /5 seconds/ });
  assert.equal(clock.waiting, 1, "there is a deadline");
  await clock.advance(5_000);
  await refused;
});

Deno.test("guard: a receiver may share the service's host, at another port or beside its path", () => {
  const guardOf = (baseUrl: string) =>
    createGuard({
      allowCidrs: [],
      dev: false,
      baseUrl,
      resolve: () => Promise.resolve([]),
      clock: createHandClock(),
    });
  for (
    const [baseUrl, url, isOwn] of [
      ["https://pay.example.com", "https://pay.example.com/hook", true],
      ["https://pay.example.com", "https://PAY.example.com./hook", true],
      ["https://pay.example.com", "https://pay.example.com:8443/hook", false],
      ["https://pay.example.com:8443", "https://pay.example.com/hook", false],
      ["https://pay.example.com:8443", "https://pay.example.com:8443/hook", true],
      ["https://example.com/pay", "https://example.com/hook", false],
      ["https://example.com/pay", "https://example.com/payments", false],
      ["https://example.com/pay", "https://example.com/pay", true],
      ["https://example.com/pay", "https://example.com/pay?x=1", true],
      ["https://example.com/pay", "https://example.com/pay/v1", true],
      ["https://example.com/pay", "https://example.com//pay/v1", true],
      ["https://example.com/pay", "https://example.com/a/../pay/v1", true],
      ["https://example.com/pay", "https://example.com/a%2f..%2f%70ay/v1", true],
      ["https://example.com/pay", "https://example.com/%70ay", true],
    ] as const
  ) {
    const check = () => guardOf(baseUrl).checkUrl(url);
    if (isOwn) assert.throws(check, { message: /a URL of this service itself/ }, url);
    else assert.equal(check().href, new URL(url).href);
  }
});
