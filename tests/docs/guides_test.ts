import assert from "node:assert/strict";
import { guideContents } from "../../src/guides/contents.ts";
import { renderGuide } from "../../src/guides/markdown.ts";
import { snippetsOf } from "../support/snippets.ts";
import { createWorld, type World } from "../support/world.ts";

const names = guideContents.flatMap(({ guides }) => guides);

Deno.test("guides: every file of guides/ is listed once", async () => {
  const files: string[] = [];
  for await (const { name } of Deno.readDir(new URL("../../guides", import.meta.url))) {
    files.push(name);
  }
  assert.deepEqual(files.sort(), names.map((name) => `${name}.md`).sort());
});

Deno.test("guides: the list links to every guide, and every guide to all others", async () => {
  using world = await createWorld();
  for (const path of ["/docs/guides", ...names.map((name) => `/docs/guides/${name}`)]) {
    const response = await world.call(path, { key: null });
    assert.equal(response.status, 200, path);
    const html = await response.text();
    for (const name of names) {
      const there = `/docs/guides/${name}`;
      assert.equal(html.includes(`href="${there}"`), there !== path, `${path}: ${there}`);
    }
  }
});

Deno.test("guides: a page loads nothing and runs nothing, and its links work", async () => {
  using world = await createWorld();
  for (const name of names) {
    const response = await world.call(`/docs/guides/${name}`, { key: null });
    const policy = response.headers.get("content-security-policy") ?? "";
    assert.match(policy, /^default-src 'none';.*script-src 'self'/);
    const html = await response.text();
    assert.doesNotMatch(html, /<(img|iframe)|src="(?!\/assets\/)/);
    for (const [, link = ""] of html.matchAll(/href="([^"]+)"/g)) {
      if (/^(https:|data:|#)/.test(link)) continue;
      assert.equal((await world.call(link, { key: null })).status, 200, `${name}: ${link}`);
    }
  }
});

Deno.test("guides: every link to a section leads to one, on the pages and on GitHub", async () => {
  const sections = new Map<string, Set<string>>();
  const links: [from: string, to: string, section: string][] = [];
  for (const name of names) {
    const text = await Deno.readTextFile(`guides/${name}.md`);
    const { html } = renderGuide(text, "/docs/guides");
    sections.set(name, new Set([...html.matchAll(/<h\d id="([^"]*)"/g)].map(([, id = ""]) => id)));
    for (const [, to = "", section = ""] of text.matchAll(/\]\(([a-z0-9-]*)(?:\.md)?#([^)]+)\)/g)) {
      links.push([name, to || name, section]);
    }
  }
  assert.ok(links.length > 20);
  const broken = links.filter(([, to, section]) => sections.get(to)?.has(section) === false);
  assert.deepEqual(broken, []);
});

Deno.test("guides: code is shown as it is in the file, to be copied", async () => {
  using world = await createWorld();
  const [{ code } = { code: "" }] = (await snippetsOf("webhooks")).filter(({ mark }) =>
    mark === "webhook"
  );
  const html = await (await world.call("/docs/guides/webhooks", { key: null })).text();
  const [shown] = [...html.matchAll(/<pre[^>]*><code>([^]*?)<\/code>/g)].map(([, text = ""]) =>
    text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&")
  ).filter((text) => text.startsWith("import"));
  assert.equal(shown, code);
});

Deno.test("guides: examples have this server's own URL, and outside development no key of development", async () => {
  const env = { BASE_URL: "https://farebox.test/pay" };
  using live = await createWorld({ env });
  const shown = async (world: World, path: string) =>
    await (await world.call(path, { key: null })).text();
  const curl = await shown(live, "/docs/guides/curl");
  assert.match(curl, /curl -s https:\/\/farebox\.test\/pay\/v1\/chat\/completions/);
  assert.doesNotMatch(curl, /localhost:8000|sk_dev/);
  const found = await shown(live, "/docs/search?q=charge+for+something+else");
  assert.doesNotMatch(found, /localhost:8000/);
  const start = await shown(live, "/docs/guides/first-five-minutes");
  assert.match(start, /localhost:8000.*sk_dev/s, "it starts a service in development");
  using dev = await createWorld({ dev: true, env: { PORT: "8123" } });
  assert.match(await shown(dev, "/docs/guides/curl"), /localhost:8123.*sk_dev/s);
});

Deno.test("guides: under a BASE_URL with a path, links stay under it", async () => {
  using world = await createWorld({ env: { BASE_URL: "https://farebox.test/pay" } });
  const html = await (await world.call("/docs/guides/container", { key: null })).text();
  assert.match(html, /href="\/pay\/docs\/guides\/nginx"/);
  assert.doesNotMatch(html, /href="\/docs/);
});

Deno.test("guides: an unknown guide is a page that explains it", async () => {
  using world = await createWorld();
  const response = await world.call("/docs/guides/%3Cb%3Enone", { key: null });
  assert.equal(response.status, 404);
  const html = await response.text();
  assert.match(html, /<h1>This guide does not exist<\/h1>/);
  assert.match(html, /No guide is called &#39;&lt;b&gt;none&#39;/);
});

Deno.test("guides: every code block is run by a test, or is marked as not testable", async () => {
  const output = ["json", "text"];
  const marks = ["run", "client", "webhook", "nginx", "systemd", "backup", "restore", "live"]
    .concat("routing", "postgres", "rolling", "elsewhere");
  for (const name of names) {
    const snippets = await snippetsOf(name);
    const text = await Deno.readTextFile(new URL(`../../guides/${name}.md`, import.meta.url));
    assert.equal([...text.matchAll(/^ *```/gm)].length, 2 * snippets.length, "all were read");
    for (const { language, mark, line } of snippets) {
      const known = output.includes(language) ? mark === "" : marks.includes(mark);
      assert.ok(known, `guides/${name}.md:${line} ${language} ${mark}`);
    }
  }
});
