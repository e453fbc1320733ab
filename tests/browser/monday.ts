import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { chatBody, chatPath } from "../support/books.ts";
import { visit } from "../support/browser.ts";
import { busyWorld } from "../support/console_data.ts";

/** A question of an owner, the links to follow from the overview, and what then answers it. */
const questions: readonly { ask: string; follow: readonly RegExp[]; answer: RegExp }[] = [
  { ask: "What is my margin?", follow: [], answer: /Margin\s*\$0\.\d+/ },
  { ask: "What do I owe?", follow: [], answer: /Outstanding balance\s*\$7\d\.\d\d/ },
  { ask: "Which model earns most?", follow: [], answer: /Highest revenue first.*gpt-/s },
  { ask: "Who is about to run out?", follow: [], answer: /Lowest balances.*(ada|bob|charlie)/s },
  { ask: "Who ran out?", follow: [], answer: /Ran out of credit.*dora/s },
  {
    ask: "Which requests failed, and why?",
    follow: [/^1$/],
    answer: /Failed 502\s+upstream_error/,
  },
  { ask: "Who spends most?", follow: [], answer: /Top spenders.*(ada|bob)/s },
  { ask: "What did ada do?", follow: [/^Users$/, /^ada$/], answer: /Deposit/ },
  { ask: "Which payments came in?", follow: [/^\$75\.00$/], answer: /Deposit.*\$25\.00/s },
  {
    ask: "Do webhooks arrive?",
    follow: [/^Webhooks$/, /hooks\.example\.com/],
    answer: /Success rate\s*100 %/,
  },
  { ask: "Which key is used?", follow: [/^Keys$/], answer: /first key.*7\d/s },
  {
    ask: "Who changed what?",
    follow: [/^Audit trail$/],
    answer: /The operator created the project/,
  },
];

async function follow(page: Page, name: RegExp): Promise<void> {
  const link = page.getByRole("link", { name }).filter({ visible: true }).first();
  await link.click();
  await page.waitForLoadState("load");
}

Deno.test("browser: twelve questions of a Monday morning take at most three clicks each", async () => {
  using world = await busyWorld({ name: "Poems", healthy: true });
  world.upstream.once(() => Response.json({ error: { message: "down" } }, { status: 500 }));
  await world.json(chatPath, { body: chatBody("ada", { model: "gpt-4o" }) });
  await world.app.flush();
  await using visitor = await visit(world, { screen: "desktop" });
  const { page, url } = visitor;
  await page.goto(`${url}/console`);
  await page.getByLabel("Key").fill(world.ownerKey);
  await page.keyboard.press("Enter");
  await page.waitForSelector("h1:text-is('Overview')");
  const overview = page.url();
  assert.equal(questions.length, 12);
  for (const { ask, follow: names, answer } of questions) {
    assert.ok(names.length <= 3, ask);
    await page.goto(overview);
    for (const name of names) await follow(page, name);
    const told = await page.locator("main").innerText();
    assert.match(told, answer, `${ask} ${told}`);
  }
  assert.deepEqual(visitor.complaints, []);
});
