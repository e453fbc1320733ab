import assert from "node:assert/strict";
import { storedRows } from "../support/books.ts";
import { adminKey, createWorld, type World } from "../support/world.ts";

const dayMs = 24 * 60 * 60 * 1000;

async function linkOf(world: World, user = "ada"): Promise<URL> {
  const path = `/v1/user/balance/topup?user=${encodeURIComponent(user)}`;
  return new URL((await world.json(path)).body.url);
}

Deno.test("links: are at most forty characters after the host, whatever the user's id", async () => {
  using world = await createWorld();
  for (const user of ["ada", "x".repeat(128), "名前 <b>"]) {
    const { pathname } = await linkOf(world, user);
    assert.match(pathname, /^\/t\/[0-9A-Za-z]{17}$/);
    assert.equal((await world.call(pathname, { key: null })).status, 200, user);
  }
});

Deno.test("links: a user has one for a day, however often it is asked for at once", async () => {
  using world = await createWorld();
  const all = await Promise.all([1, 2, 3, 4].map(() => linkOf(world)));
  assert.equal(new Set(all.map(String)).size, 1);
  await world.clock.advance(dayMs);
  const next = await linkOf(world);
  assert.notEqual(String(next), String(all[0]));
  assert.equal((await world.call(all[0]?.pathname ?? "", { key: null })).status, 200);
});

Deno.test("links: expired ones are swept, and an erased user's are deleted", async () => {
  using world = await createWorld();
  const codes = async () =>
    (await storedRows(world)).filter(({ key }) => /^(user_)?link$/.test(String(key[0]))).length;
  await linkOf(world, "ada");
  await linkOf(world, "bob");
  assert.equal(await codes(), 4);
  await world.clock.advance(8 * dayMs);
  for (let n = 0; n < 3; n++) await world.app.sweep();
  assert.equal(await codes(), 0);
});

Deno.test("pages: speak the reader's language, and write amounts as the reader does", async () => {
  const checkoutUrl = "https://my.app/pay?a={amount}";
  using world = await createWorld({ project: { currency: "eur", topUp: { checkoutUrl } } });
  await world.deposit("ada", "1234.5");
  const { pathname } = await linkOf(world);
  const cases: [accepts: string, lang: string, texts: RegExp][] = [
    ["", "en", /Your balance.*€1,234\.50/],
    ["de-DE,de;q=0.9,en;q=0.5", "de", /Dein Guthaben.*1\.234,50\u00a0€/],
    ["fr-FR", "fr", /Votre solde.*1\u202f234,50\u00a0€/],
    ["es", "es", /Tu saldo/],
    ["pt-BR", "pt", /Seu saldo/],
    ["it;q=0.8, xx", "it", /Il tuo credito/],
    ["nl-NL", "nl", /Je tegoed/],
    ["pl-PL", "pl", /Twoje środki/],
    ["ja-JP", "ja", /残高/],
    ["zh-CN", "zh", /您的余额/],
    ["ko-KR, sv", "en", /Your balance/],
    ["de;q=0, fr-<script>", "fr", /Votre solde/],
  ];
  for (const [accepts, lang, texts] of cases) {
    const headers = { "accept-language": accepts };
    const html = await (await world.call(pathname, { key: null, headers })).text();
    assert.match(html, new RegExp(`<html lang="${lang}"`), accepts);
    assert.match(html.replaceAll(/<[^>]+>/g, " "), texts, accepts);
  }
});

Deno.test("pages: carry the brand of their project, and allow nothing else from elsewhere", async () => {
  const brand = {
    logoUrl: "https://cdn.my.app/logo.png",
    accent: "#ffcc00",
    supportUrl: "mailto:help@my.app",
  };
  using world = await createWorld({ project: { brand } });
  const response = await world.call((await linkOf(world)).pathname, { key: null });
  const html = await response.text();
  assert.match(html, /<img src="https:\/\/cdn\.my\.app\/logo\.png" alt="[A-Z]" aria-hidden="true"/);
  assert.match(html, /--brand:#ffcc00;--on-brand:#000/);
  assert.match(html, /<a href="mailto:help@my\.app">Get help/);
  const policy = response.headers.get("content-security-policy") ?? "";
  assert.match(policy, /img-src data: https:\/\/cdn\.my\.app;/);
  assert.match(policy, /style-src 'self' 'sha256-[^']+';/);
  assert.doesNotMatch(policy, /unsafe/);
});

Deno.test("projects: a brand that is no image, color or address is refused", async () => {
  using world = await createWorld();
  const bad: [brand: Record<string, string>, param: string][] = [
    [{ logoUrl: "http://my.app/logo.png" }, "brand.logoUrl"],
    [{ logoUrl: "javascript:alert(1)" }, "brand.logoUrl"],
    [{ accent: "red" }, "brand.accent"],
    [{ accent: "#fff;}body{display:none" }, "brand.accent"],
    [{ supportUrl: "javascript:alert(1)" }, "brand.supportUrl"],
  ];
  for (const [brand, param] of bad) {
    const { status, body } = await world.json(`/v1/admin/projects/${world.projectId}`, {
      method: "PATCH",
      key: adminKey,
      body: { brand },
    });
    assert.deepEqual([status, body.error?.param], [400, param]);
  }
});
