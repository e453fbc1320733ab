import assert from "node:assert/strict";
import fc from "fast-check";
import { eventTypes } from "../../src/events/catalogue.ts";
import {
  isKnownPattern,
  nearestPattern,
  subscriptionsMatching,
} from "../../src/events/event_patterns.ts";
import { always, anyText } from "../support/property.ts";
import { subscriptionsPath } from "../support/webhooks.ts";
import { createWorld } from "../support/world.ts";

/** All event names, and all words that event names begin with. */
const families = [
  ...new Set(eventTypes.flatMap((type) => {
    const words = type.split(".");
    return words.slice(1).map((_, at) => words.slice(0, at + 1).join("."));
  })),
];

/** What a subscription may name, by the public interface alone. */
const known = ["*", ...eventTypes, ...families.map((family) => `${family}.*`)];

/** Names, families, and texts close to them. */
const pattern = fc.oneof(
  fc.constantFrom(...known),
  fc.constantFrom("", ".*", "*.*", "**", "balance", "balance.", "balance*", "balance.*.*", "b.*"),
  fc.constantFrom(
    "balance.**",
    "*.created",
    "Balance.*",
    " *",
    "balance.*\n",
    "balance.deposit.created.*",
  ),
  fc.tuple(fc.constantFrom(...known), fc.nat(40), fc.nat(1), fc.constantFrom("", ..."*.aZ \n"))
    .map(([name, at, dropped, put]) => name.slice(0, at) + put + name.slice(at + dropped)),
  anyText,
);
const type = fc.constantFrom(...eventTypes);

/** Whether a pattern matches an event, word by word. */
function means(pattern: string, type: string): boolean {
  if (pattern === "*" || pattern === type) return true;
  const words = pattern.split(".");
  if (words.length < 2 || words.at(-1) !== "*") return false;
  const family = words.slice(0, -1);
  return type.split(".").length > family.length &&
    family.every((word, at) => type.split(".")[at] === word);
}

Deno.test("pattern: a subscription gets the events it names, those of its families, or all", () =>
  always(
    2_000,
    fc.property(
      fc.array(
        fc.array(fc.oneof(fc.constantFrom(...known), pattern), { minLength: 1, maxLength: 4 }),
        { maxLength: 5 },
      ),
      type,
      (lists, type) => {
        const listeners = lists.map((events, n) => ({ subscriptionId: `sub_${n}`, events }));
        const expected = listeners.filter(({ events }) => events.some((each) => means(each, type)))
          .map(({ subscriptionId }) => subscriptionId);
        assert.deepEqual(subscriptionsMatching(listeners, type), expected);
      },
    ),
  ));

Deno.test("pattern: a text is known when it is an event, a family that has events, or *", () =>
  always(
    3_000,
    fc.property(pattern, (text) => assert.equal(isKnownPattern(text), known.includes(text))),
  ));

Deno.test("pattern: the closest name to any text is a known one, and to a known one is itself", () =>
  always(
    150,
    fc.property(pattern, (text) => {
      const nearest = nearestPattern(text.slice(0, 100));
      assert.ok(isKnownPattern(nearest), nearest);
      if (known.includes(text) && text !== "*") assert.equal(nearest, text);
    }),
  ));

Deno.test("pattern: of a name with one wrong letter, the closest is no further off than it", () =>
  always(
    300,
    fc.property(type, fc.nat(), fc.constantFrom("", "x", "_"), (type, at, put) => {
      const place = at % type.length;
      const wrong = type.slice(0, place) + put + type.slice(place + 1);
      const nearest = nearestPattern(wrong);
      assert.ok(nearest === type || oneApart(nearest, wrong), `${wrong}: ${nearest}`);
    }),
  ));

/** Whether two texts differ by one letter added, removed or changed. */
function oneApart(one: string, other: string): boolean {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at++;
  return [[1, 1], [1, 0], [0, 1]].some(([mine = 0, theirs = 0]) =>
    one.slice(at + mine) === other.slice(at + theirs)
  );
}

Deno.test("pattern: a subscription accepts known names, and reports which one is unknown", async () => {
  using world = await createWorld();
  const repeated = fc.array(fc.constantFrom(...known.slice(0, 4)), { minLength: 1, maxLength: 5 });
  await always(
    120,
    fc.asyncProperty(fc.oneof(fc.array(pattern, { maxLength: 5 }), repeated), async (events) => {
      const body = { url: "https://hooks.example.com/", events };
      const { status, body: answer } = await world.json(subscriptionsPath, { body });
      const isFine = events.length > 0 && events.every((each) => known.includes(each)) &&
        (!events.includes("*") || events.length === 1);
      assert.equal(status, isFine ? 201 : 400, JSON.stringify(answer));
      if (!isFine) {
        assert.match(answer.error.param, /^events/);
        return assert.ok(answer.error.message.length < 300);
      }
      assert.deepEqual(answer.subscription.events, [...new Set(events)]);
      const path = `${subscriptionsPath}/${answer.subscription.id}`;
      await world.call(path, { method: "DELETE" });
    }),
  );
});
