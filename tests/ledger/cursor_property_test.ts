import assert from "node:assert/strict";
import fc from "fast-check";
import { always, anyText, wellFormedText } from "../support/property.ts";
import { deliver, logs, subscribe } from "../support/webhooks.ts";
import { adminKey, type Body, createWorld, type World } from "../support/world.ts";

const activitiesPath = "/v1/user/activities";
const logsPath = "/v1/webhooks/logs";
const projectsPath = "/v1/admin/projects";

/** A hostile text in a query: escaped, or as it is. */
const inQuery = fc.oneof(
  wellFormedText.map(encodeURIComponent),
  anyText.map((text) => text.replace(/[^!-~]|[#&]/g, "")),
);

const letters = fc.string({ unit: fc.constantFrom(..."0123456789ABCXYZ"), maxLength: 27 });
/** Texts that resemble a cursor, or the content of one. */
const nearly = fc.oneof(
  fc.tuple(fc.constantFrom("act_", "dly_", "pw_", "ACT_", ""), letters)
    .map(([kind, text]) => kind + text),
  fc.ulid().map((id) => `act_${id}`),
  fc.ulid().map((id) => `dly_${id}`),
  fc.tuple(fc.ulid(), fc.constantFrom("\n", " ", "~", "\u0000")).map(([id, end]) =>
    `dly_${id}${end}`
  ),
);
const cursor = fc.oneof(
  inQuery,
  nearly.map(encodeURIComponent),
  nearly.map((text) => encodeURIComponent(btoa(text))),
  wellFormedText.map((text) => encodeURIComponent(btoa(encodeURIComponent(text)))),
);

/** A page, or a 400 that names the cursor. */
function checkPage(status: number, body: Body, list: string): boolean {
  if (status === 200) {
    assert.ok(Array.isArray(body[list]));
    return true;
  }
  assert.equal(status, 400, JSON.stringify(body));
  assert.deepEqual(body, {
    error: {
      message: "'cursor' is not valid.",
      type: "invalid_request_error",
      param: "cursor",
      code: "invalid_value",
    },
  });
  return false;
}

/** Everything in a listing, page by page; each page has the next size. */
async function walk(
  world: World,
  path: string,
  { list, sizes, key = world.apiKey }: { list: string; sizes: readonly number[]; key?: string },
): Promise<string[]> {
  const seen: string[] = [];
  let next: string | null = null;
  for (let page = 0;; page++) {
    const limit = sizes[page % sizes.length] ?? 1;
    const from: string = next === null ? "" : `&cursor=${encodeURIComponent(next)}`;
    const { status, body } = await world.json(`${path}limit=${limit}${from}`, { key });
    assert.equal(status, 200, JSON.stringify(body));
    assert.ok(body[list].length <= limit && page < 50, "it comes to an end");
    assert.ok(body.nextCursor === null || body[list].length === limit, "only the last is shorter");
    seen.push(...body[list].map(({ id }: Body) => id));
    next = body.nextCursor;
    if (next === null) return seen;
  }
}

const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 4 });

/** A world with entries and deliveries of its own, of another user and of another project. */
async function openWorld() {
  const world = await createWorld();
  await subscribe(world);
  for (let n = 0; n < 12; n++) await world.deposit("ada", "1");
  for (let n = 0; n < 3; n++) await world.deposit("bob", "1");
  await deliver(world);
  const other = await world.makeProject();
  const body = { user: "ada", amount: "1" };
  await world.json("/v1/user/balance/deposit", { key: other.apiKey, body });
  return { world, other };
}

Deno.test("cursor: any text is a page of activities, or a 400", async () => {
  const { world } = await openWorld();
  using _ = world;
  await always(
    300,
    fc.asyncProperty(cursor, async (cursor) => {
      const { status, body } = await world.json(`${activitiesPath}?user=ada&cursor=${cursor}`);
      if (checkPage(status, body, "activities")) assert.fail("no text is an entry of Ada's");
    }),
  );
});

Deno.test("cursor: activities start at any entry of the user's own, and at no other", async () => {
  const { world, other } = await openWorld();
  using _ = world;
  const own = (await world.activities("ada")).map(({ id }) => id as string);
  const others = (await world.activities("bob")).map(({ id }) => id as string);
  const theirs = await world.json(`${activitiesPath}?user=ada`, { key: other.apiKey });
  const foreign = [...others, ...theirs.body.activities.map(({ id }: Body) => id as string)];
  await always(
    60,
    fc.asyncProperty(fc.constantFrom(...own, ...foreign), fc.integer({ min: 1, max: 20 }), async (
      id,
      limit,
    ) => {
      const path = `${activitiesPath}?user=ada&limit=${limit}&cursor=${id}`;
      const { status, body } = await world.json(path);
      assert.equal(checkPage(status, body, "activities"), own.includes(id));
      if (!own.includes(id)) return;
      const start = own.indexOf(id);
      const ids = body.activities.map(({ id }: Body) => id);
      assert.deepEqual(ids, own.slice(start, start + limit));
    }),
  );
});

Deno.test("cursor: pages of any sizes give every activity once, newest first", async () => {
  const { world } = await openWorld();
  using _ = world;
  const all = (await world.activities("ada")).map(({ id }) => id as string);
  assert.equal(all.length, 12);
  await always(
    40,
    fc.asyncProperty(sizes, async (sizes) => {
      const path = `${activitiesPath}?user=ada&`;
      assert.deepEqual(await walk(world, path, { list: "activities", sizes }), all);
    }),
  );
});

Deno.test("cursor: any text is a page of the log, or a 400", async () => {
  const { world } = await openWorld();
  using _ = world;
  const all = (await logs(world)).map(({ id }) => id as string);
  let pages = 0;
  await always(
    350,
    fc.asyncProperty(cursor, async (cursor) => {
      const { status, body } = await world.json(`${logsPath}?limit=100&cursor=${cursor}`);
      if (!checkPage(status, body, "logs")) return;
      pages++;
      // A position between two deliveries is valid too.
      const after = decodeURIComponent(cursor);
      assert.match(after, /^dly_[0-9A-Z]{26}$/);
      assert.deepEqual(body.logs.map(({ id }: Body) => id), all.filter((id) => id < after));
    }),
  );
  assert.ok(pages > 10, `${pages} of them were pages`);
});

Deno.test("cursor: pages of any sizes give every delivery once, newest first", async () => {
  const { world } = await openWorld();
  using _ = world;
  const all = (await logs(world)).map(({ id }) => id as string);
  assert.equal(all.length, 15);
  const status = fc.constantFrom("", "status=success&", "eventType=balance.deposit.created&");
  await always(
    40,
    fc.asyncProperty(sizes, status, async (sizes, filter) => {
      assert.deepEqual(await walk(world, `${logsPath}?${filter}`, { list: "logs", sizes }), all);
    }),
  );
});

Deno.test("cursor: any text is a page of projects, or a 400; pages give every project once", async () => {
  const { world } = await openWorld();
  using _ = world;
  for (let n = 0; n < 5; n++) await world.makeProject();
  const key = adminKey;
  const first = await world.json(`${projectsPath}?limit=100`, { key });
  const all = first.body.projects.map(({ id }: Body) => id);
  await always(
    100,
    fc.asyncProperty(cursor, sizes, async (cursor, sizes) => {
      const { status, body } = await world.json(`${projectsPath}?cursor=${cursor}`, { key });
      checkPage(status, body, "projects");
      assert.deepEqual(
        await walk(world, `${projectsPath}?`, { list: "projects", sizes, key }),
        all,
      );
    }),
  );
});

Deno.test("cursor: a page's size is a whole number from 1 to 100, in digits, or a 400", async () => {
  const { world } = await openWorld();
  using _ = world;
  const size = fc.oneof(
    inQuery,
    fc.integer({ min: -5, max: 110 }).map(String),
    fc.constantFrom("", "1e1", "0x10", "10.0", "+5", "%205", "0005", "00005", "%D9%A5", "٥"),
  );
  await always(
    300,
    fc.asyncProperty(fc.constantFrom(activitiesPath, logsPath), size, async (path, size) => {
      const { status, body } = await world.json(`${path}?user=ada&limit=${size}`);
      const isSize = /^\d{1,4}$/.test(size) && Number(size) >= 1 && Number(size) <= 100;
      assert.equal(status, isSize ? 200 : 400, JSON.stringify(body));
      if (!isSize) assert.equal(body.error.param, "limit");
    }),
  );
});

/** Reads CSV by RFC 4180, which the code under test only writes. */
function parseCsv(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  for (const [, cell = "", end] of text.matchAll(/("(?:[^"]|"")*"|[^",\r\n]*)(,|\r\n)/g)) {
    row.push(cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell);
    if (end === ",") continue;
    rows.push(row);
    row = [];
  }
  return rows;
}

Deno.test("cursor: a page as CSV has the content of its JSON, and no cell runs in a spreadsheet", async () => {
  // deno-lint-ignore no-control-regex -- control characters are what is refused
  const user = wellFormedText.map((text) => text.replace(/[\u0000-\u001f\u007f-\u009f]/g, ""))
    .filter((text) => text !== "" && text.length <= 128);
  using world = await createWorld();
  await always(
    100,
    fc.asyncProperty(user, wellFormedText, wellFormedText, async (user, name, value) => {
      const body = { user, amount: "1.5", metadata: { [name.slice(0, 100)]: value.slice(0, 500) } };
      const { status } = await world.json("/v1/user/balance/deposit", { body });
      assert.equal(status, 200);
      const path = `${activitiesPath}?limit=1&user=${encodeURIComponent(user)}`;
      const [activity] = (await world.json(path)).body.activities;
      const csv = await (await world.call(path, { headers: { accept: "text/csv" } })).text();
      const [names = [], cells = [], ...more] = parseCsv(csv);
      assert.equal(more.length, 0);
      assert.equal(cells.length, names.length);
      for (const [at, cell] of cells.entries()) {
        const { actor } = activity;
        const fields = { ...activity, actorType: actor.type, actorId: actor.id };
        const told = fields[names[at] ?? ""] ?? "";
        const text = typeof told === "object" ? JSON.stringify(told) : String(told);
        // A negative number is a number in a spreadsheet too.
        const runs = /^[=+@\t\r-]/.test(text) && !/^-[\d.]+$/.test(text);
        assert.equal(cell, runs ? `'${text}` : text);
      }
    }),
  );
});
