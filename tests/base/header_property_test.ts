import assert from "node:assert/strict";
import fc from "fast-check";
import { ApiError } from "../../src/base/errors.ts";
import { callerRequestId, readIdempotencyKey } from "../../src/base/request.ts";
import { headerText } from "../../src/base/response.ts";
import { checkUserId } from "../../src/base/user_id.ts";
import { readRetryAfter } from "../../src/base/retry_after.ts";
import { chatBody, completionsPath } from "../support/chat.ts";
import { always, anyText, headerValue, jsonText, wellFormedText } from "../support/property.ts";
import { deliver, subscribe, subscriptionsPath } from "../support/webhooks.ts";
import { createWorld } from "../support/world.ts";

const depositPath = "/v1/user/balance/deposit";

function requestWith(name: string, value: string): Request {
  return new Request("http://localhost/", { headers: { [name]: value } });
}

/** Any header value, and visible ones about as long as a limit. */
const keyLike = fc.oneof(
  headerValue,
  fc.string({ unit: fc.constantFrom(..."aZ09 ~\té"), maxLength: 10 }),
  ...[128, 255].map((length) =>
    fc.string({
      unit: fc.constantFrom(..."aZ09-_!~"),
      minLength: length - 2,
      maxLength: length + 2,
    })
  ),
);

/** Fetch trims whitespace from header values. */
const trimmed = (value: string) => value.replace(/^[\t ]+|[\t ]+$/g, "");
const visible = (value: string) =>
  [...value].every((character) => character >= "!" && character <= "~");

Deno.test("header: an Idempotency-Key is kept unchanged or refused, whatever its bytes", () =>
  always(
    1_000,
    fc.property(keyLike, (value) => {
      const sent = trimmed(value);
      const read = () => readIdempotencyKey(requestWith("idempotency-key", value));
      if (sent.length >= 1 && sent.length <= 255 && visible(sent)) {
        return assert.equal(read(), sent);
      }
      assert.throws(
        read,
        (error) =>
          error instanceof ApiError && error.status === 400 && error.param === "Idempotency-Key",
      );
    }),
  ));

Deno.test("header: a request id is echoed unchanged, or not at all", () =>
  always(
    1_000,
    fc.property(keyLike, (value) => {
      const sent = trimmed(value);
      const isId = sent.length >= 1 && sent.length <= 128 && visible(sent);
      assert.equal(callerRequestId(requestWith("x-request-id", value)), isId ? sent : null);
    }),
  ));

Deno.test("header: UTF-8 text is read from its bytes, and other bytes are not text", () =>
  always(
    2_000,
    fc.property(wellFormedText, fc.uint8Array({ maxLength: 12 }), (text, bytes) => {
      const latin1 = (list: Uint8Array) => String.fromCharCode(...list.slice(0, 4_000));
      const encoded = new TextEncoder().encode(text.slice(0, 500).toWellFormed());
      assert.equal(headerText(latin1(encoded)), text.slice(0, 500).toWellFormed());
      const read = headerText(latin1(bytes));
      if (read !== null) assert.deepEqual(new TextEncoder().encode(read), bytes);
    }),
  ));

/** Whether a text is a valid user id, by the rules of the public interface. */
const isUser = (text: string) =>
  text.length >= 1 && text.length <= 128 && text.isWellFormed() &&
  ![...text].some((character) => {
    const code = character.charCodeAt(0);
    return code < 0x20 || (code >= 0x7f && code < 0xa0);
  });

Deno.test("header: a user id is kept unchanged or refused, and anything else is not a user id", () =>
  always(
    2_000,
    fc.property(
      fc.oneof(anyText, fc.string({ minLength: 126, maxLength: 130 }), jsonText.map(parsed)),
      (value) => {
        const read = () => checkUserId(value, "user");
        if (typeof value === "string" && isUser(value)) return assert.equal(read(), value);
        assert.throws(
          read,
          (error) =>
            error instanceof ApiError && error.status === 400 && error.param === "user" &&
            error.message.includes("'user'"),
        );
      },
    ),
  ));

function parsed(text: string): unknown {
  return JSON.parse(text);
}

Deno.test("header: X-Service-User with any bytes names exactly the user that they encode, or is a 400", async () => {
  using world = await createWorld();
  let users = 0;
  await always(
    200,
    fc.asyncProperty(headerValue, async (value) => {
      const headers = { "x-service-user": value };
      const { status, body } = await world.json(depositPath, { body: { amount: "1" }, headers });
      const sent = trimmed(value);
      const user = headerText(sent);
      if (user !== null && isUser(user)) {
        assert.equal(status, 200, JSON.stringify(body));
        assert.equal(body.user, user);
        // The same id in the path is the same user.
        assert.notEqual((await world.balance(user)).balance, "0");
        users++;
        return;
      }
      assert.equal(status, 400);
      assert.equal(body.error.param, sent === "" ? "user" : "X-Service-User");
    }),
  );
  assert.ok(users > 50, `${users} users were named`);
});

Deno.test("header: a user named in a path, a query, a header or a body is the same user", async () => {
  using world = await createWorld();
  const reserved = ["chat", "models", "user", "webhooks", "admin", "console", "docs", "v1"];
  // A browser resolves dot segments of a path: such a path never arrives.
  const name = wellFormedText.filter((text) => isUser(text) && !reserved.includes(text))
    .filter((text) => !/^\.{1,2}$/.test(text) && trimmed(text) === text);
  await always(
    40,
    fc.asyncProperty(name, async (user) => {
      const bytes = String.fromCharCode(...new TextEncoder().encode(user));
      const ask = async (path: string, fields: object, headers: Record<string, string>) => {
        const body = { ...chatBody({ user: undefined }), ...fields };
        const answer = await world.json(path, { body, headers });
        assert.equal(answer.status, 200, JSON.stringify(answer.body));
      };
      await world.deposit(user, "1");
      await ask(completionsPath, { user }, {});
      await ask(completionsPath, {}, { "x-service-user": bytes });
      await ask(`/v1/${encodeURIComponent(user)}/chat/completions`, {}, {});
      const kinds = (await world.activities(user)).slice(0, 4).map(({ kind }) => kind);
      assert.deepEqual(kinds, ["usage", "usage", "usage", "deposit"]);
    }),
  );
});

Deno.test("header: no value of any header that is read makes a chat fail", async () => {
  const template = "Pay {{url}}";
  const messages = Object.fromEntries(
    ["en", "de", "pt-br"].map((language) => [language, { insufficient_funds: template }]),
  );
  using world = await createWorld({ project: { messages } });
  const names = [
    "accept-language",
    "accept",
    "openai-beta",
    "x-request-id",
    "origin",
    "user-agent",
  ];
  await always(
    180,
    fc.asyncProperty(
      fc.constantFrom(...names),
      fc.oneof(headerValue, fc.constantFrom("de;q=0.5, en;q=x", "*;q=0", ";;,,=", "pt-BR-x;q=1e9")),
      fc.boolean(),
      async (name, value, stream) => {
        const options = { body: chatBody({ stream }), headers: { [name]: value } };
        const response = await world.call(completionsPath, options);
        assert.equal(response.status, 200);
        assert.match(await response.text(), /Pay https:/);
      },
    ),
  );
});

const goodName = fc.stringMatching(/^(X-Team|Authorization|x-own)-?[A-Za-z0-9]{0,8}$/);
const goodValue = fc.string({ unit: "grapheme-ascii", maxLength: 40 });
const reserved = [
  ...[
    "Host",
    "Connection",
    "Keep-Alive",
    "TE",
    "Trailer",
    "Transfer-Encoding",
    "Upgrade",
    "Expect",
  ],
  ...["Cookie", "Accept-Encoding", "User-Agent", "Content-Length", "Content-Type", "Content-MD5"],
  ...[
    "Webhook-Id",
    "Webhook-Anything",
    "X-Service-Signature",
    "X-Service-Else",
    "Proxy-Connection",
  ],
  ...["X-Forwarded-For", "Forwarded", "Metadata-Flavor", "X-Amz-Date", "X-Aws-Ec2-Metadata-Token"],
  ...["X-Google-Metadata-Request", "Sec-Fetch-Site", "Access-Control-Allow-Origin", "Via", "Date"],
];
const badHeader = fc.oneof(
  fc.tuple(fc.mixedCase(fc.constantFrom(...reserved)), goodValue),
  fc.tuple(
    fc.constantFrom("", " ", "a b", "a:b", "é", "-a", "a_b", "a\r\nb", "__proto__", "x".repeat(65)),
    goodValue,
  ),
  fc.tuple(
    goodName,
    fc.constantFrom("a\nb", "a\r\nX-B: c", "\u0000", "é", "€", "\u007f", "a\tb", "x".repeat(1_025)),
  ),
  fc.tuple(goodName, fc.constantFrom<unknown>(5, null, true, ["a"], {})),
);

/** Names are unique without regard to case. */
const goodHeaders = fc.uniqueArray(fc.tuple(goodName, goodValue), {
  maxLength: 10,
  selector: ([name]) => name.toLowerCase(),
});

Deno.test("header: custom headers are sent unchanged, beside all of ours", async () => {
  using world = await createWorld();
  await always(
    40,
    fc.asyncProperty(goodHeaders, async (pairs) => {
      const customHeaders = Object.fromEntries(pairs);
      const { id } = await subscribe(world, { customHeaders });
      world.subscriber.received.length = 0;
      await world.deposit("ada", "1");
      await deliver(world);
      // One subscription at a time, so that there is one delivery.
      await world.call(`${subscriptionsPath}/${id}`, { method: "DELETE" });
      const [received, ...more] = world.subscriber.received;
      assert.equal(more.length, 0);
      const sent = new Headers(received?.headers);
      for (const [name, value] of pairs) assert.equal(sent.get(name), trimmed(value));
      assert.equal([...sent].length, 9 + pairs.length);
      assert.equal(sent.get("content-type"), "application/json");
      assert.equal(sent.get("webhook-id"), received?.body.delivery.id);
    }),
  );
});

Deno.test("header: custom headers that contain a reserved one are refused", async () => {
  using world = await createWorld();
  const twice = goodHeaders.filter(([first]) => first !== undefined)
    .map(([[name, value] = ["", ""], ...rest]) => [[name, value], [flipped(name), value], ...rest]);
  const many = fc.array(fc.nat(), { minLength: 11, maxLength: 11 })
    .map((list) => list.map((_, n) => [`X-${n}`, ""]));
  const oneBad = fc.tuple(goodHeaders, badHeader).map(([pairs, bad]) => [...pairs, bad]);
  await always(
    400,
    fc.asyncProperty(fc.oneof(twice, many, oneBad, oneBad, oneBad), async (pairs) => {
      const customHeaders = Object.fromEntries(pairs);
      const body = { url: "https://hooks.example.com/", events: ["*"], customHeaders };
      const { status, body: answer } = await world.json(subscriptionsPath, { body });
      assert.equal(status, 400, JSON.stringify(answer));
      assert.equal(answer.error.param, "customHeaders");
      assert.ok(answer.error.message.length < 300);
    }),
  );
});

/** The same name in another case. */
function flipped(name: string): string {
  const upper = name.toUpperCase();
  return upper === name ? name.toLowerCase() : upper;
}

Deno.test("header: only an object of strings is accepted as custom headers", async () => {
  using world = await createWorld();
  await always(
    200,
    fc.asyncProperty(jsonText, async (text) => {
      const raw = `{"url":"https://hooks.example.com/","events":["*"],"customHeaders":${text}}`;
      const { status, body } = await world.json(subscriptionsPath, { raw });
      if (status !== 201) return assert.equal(status, 400, JSON.stringify(body));
      const given = JSON.parse(text);
      assert.ok(given === null || (typeof given === "object" && !Array.isArray(given)), text);
      assert.deepEqual(body.subscription.customHeaders ?? {}, given ?? {});
      await world.call(`${subscriptionsPath}/${body.subscription.id}`, { method: "DELETE" });
    }),
  );
});

const now = Date.UTC(2026, 0, 1);
const days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const longDays = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const date = fc.date({
  min: new Date("1990-01-01"),
  max: new Date("2049-12-31"),
  noInvalidDate: true,
})
  .map((date) => new Date(Math.floor(date.getTime() / 1000) * 1000));

/** A date in the three formats of RFC 9110, 5.6.7. */
function httpDates(date: Date): string[] {
  const [, day = "", month = "", year = "", time = ""] =
    /^\w+, (\d+) (\w+) (\d+) ([\d:]+) GMT$/.exec(date.toUTCString()) ?? [];
  const weekday = date.getUTCDay();
  return [
    `${days[weekday]}, ${day} ${month} ${year} ${time} GMT`,
    `${longDays[weekday]}, ${day}-${month}-${year.slice(2)} ${time} GMT`,
    `${days[weekday]} ${month} ${String(Number(day)).padStart(2)} ${time} ${year}`,
  ];
}

Deno.test("header: Retry-After is a number of seconds, or a date in any of its three forms", () =>
  always(
    1_000,
    fc.property(fc.nat(999_999_999), date, (seconds, date) => {
      assert.equal(readRetryAfter(String(seconds), now), seconds * 1000);
      for (const text of httpDates(date)) {
        assert.equal(readRetryAfter(text, now), Math.max(0, date.getTime() - now), text);
      }
    }),
  ));

Deno.test("header: any other Retry-After is ignored", () =>
  always(
    2_000,
    fc.property(
      fc.oneof(
        headerValue,
        anyText,
        fc.double().map(String),
        fc.tuple(
          fc.constantFrom("in ", "-", "+", "~", "a", ""),
          fc.nat(),
          fc.constantFrom("s", ".5", " s"),
        )
          .map((parts) => parts.join("")),
        date.map((date) => date.toISOString()),
      ),
      (text) => {
        const wait = readRetryAfter(text, now);
        if (/^\d{1,9}$/.test(text)) return assert.equal(wait, Number(text) * 1000);
        assert.equal(wait, null, JSON.stringify(text));
      },
    ),
  ));
