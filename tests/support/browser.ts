import assert from "node:assert/strict";
import axe from "axe-core";
import { type Browser, chromium, type Page } from "playwright-core";
import type { World } from "./world.ts";

const pictures = new URL("../../output/", import.meta.url);
const screens = {
  phone: { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true },
  desktop: { viewport: { width: 1280, height: 900 } },
};

/** A kind of screen. */
export type Screen = keyof typeof screens;

/** A browser in front of a world that listens on its own port. */
interface Visit extends AsyncDisposable {
  url: string;
  page: Page;
  /** The requests of the page, and its errors. */
  requests: string[];
  complaints: string[];
}

/** Opens a browser on a world's service, by default with a phone's screen. */
export async function visit(
  world: World,
  { scheme = "light" as "light" | "dark", script = true, port = 0, screen = "phone" as Screen } =
    {},
): Promise<Visit> {
  const server = Deno.serve(
    { hostname: "127.0.0.1", port, onListen() {} },
    (request, info) => world.app.fetch(request, info),
  );
  const browser: Browser = await chromium.launch({
    executablePath: Deno.env.get("CHROMIUM") ?? "/usr/bin/chromium",
    args: ["--no-sandbox"],
  });
  const context = await browser.newContext({
    ...screens[screen],
    colorScheme: scheme,
    javaScriptEnabled: script,
  });
  const page = await context.newPage();
  const requests: string[] = [];
  const complaints: string[] = [];
  page.on("request", (request) => requests.push(request.url()));
  page.on("console", (message) => {
    if (message.type() === "error") complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  return {
    url: `http://127.0.0.1:${server.addr.port}`,
    page,
    requests,
    complaints,
    async [Symbol.asyncDispose]() {
      await browser.close();
      await server.shutdown();
    },
  };
}

/** Asserts that axe finds no fault in the current page. */
export async function assertAccessible(page: Page): Promise<void> {
  // Evaluated by the debugger, which ignores the page's Content-Security-Policy.
  await page.evaluate(axe.source);
  // deno-lint-ignore no-explicit-any -- axe is now a global of the page
  const { violations } = await page.evaluate(() => (globalThis as any).axe.run());
  const told = violations.map(({ id, nodes }: { id: string; nodes: { html: string }[] }) =>
    `${id}: ${nodes.map(({ html }) => html).join(" ")}`
  );
  assert.deepEqual(told, []);
}

/**
 * Asserts that the page is no wider than the screen. A phone's own `innerWidth` grows with the
 * content.
 */
export async function assertFits(page: Page): Promise<void> {
  const wide = Number(await page.evaluate("document.documentElement.scrollWidth"));
  const { width } = page.viewportSize() ?? assert.fail("no screen");
  assert.ok(wide <= width, `${page.url()} is ${wide} pixels wide on ${width}`);
}

/** Saves a screenshot of the page, or of the visible part. */
export async function picture(page: Page, name: string, fullPage = true): Promise<void> {
  await Deno.mkdir(pictures, { recursive: true });
  await page.screenshot({ path: new URL(`${name}.png`, pictures).pathname, fullPage });
}

/** Signs in to the console with a key. */
export async function signIn(page: Page, url: string, key: string): Promise<void> {
  await page.goto(`${url}/console`);
  await page.getByLabel("Key").fill(key);
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Sign out" }).waitFor();
}
