import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { assertAccessible, assertFits, picture, signIn, visit } from "../support/browser.ts";
import { busyWorld } from "../support/console_data.ts";
import { adminKey } from "../support/world.ts";

const prices = {
  date: "2026-11-25",
  prices: {
    openai: {
      "gpt-4o": { input: "2", output: "10", cachedInput: "0.5" },
      "gpt-9-nova": { input: "1", output: "4" },
    },
  },
};
const file = {
  name: "prices.json",
  mimeType: "application/json",
  buffer: Buffer.from(JSON.stringify(prices)),
};

for (const scheme of ["light", "dark"] as const) {
  for (const screen of ["phone", "desktop"] as const) {
    Deno.test(`browser: every page of the operator is accessible in ${scheme} and fits a ${screen}`, async () => {
      using world = await busyWorld();
      await using visitor = await visit(world, { scheme, screen });
      const { page, url } = visitor;
      if (screen === "desktop") await page.setViewportSize({ width: 1_440, height: 900 });
      await signIn(page, url, adminKey);
      const upstreams = `/console/projects/${world.projectId}/upstreams`;
      const forms = ["", "/one", "/one?name=main", "/route", "/route?model=smart"];
      const own = ["projects", "projects/new", "audit", "catalogue"];
      const paths = [...own.map((path) => `/console/${path}`), ...forms.map((f) => upstreams + f)];
      const check = async (name: string) => {
        await assertAccessible(page);
        await assertFits(page);
        await picture(page, `operator-${name}-${screen}-${scheme}`);
      };
      for (const path of paths) {
        await page.goto(url + path);
        await check(path.slice(path.lastIndexOf("/") + 1).replaceAll(/\W/g, "-"));
      }
      await page.goto(`${url}/console/catalogue`);
      await page.getByLabel("Price file").setInputFiles(file);
      await page.getByRole("button", { name: "Show what changes" }).click();
      await page.getByText("gpt-9-nova").first().waitFor();
      await check("catalogue-preview");
      await page.getByRole("button", { name: "Change 2 prices" }).click();
      await page.getByText("The list prices are refreshed").waitFor();
      await check("catalogue-refreshed");
      assert.deepEqual(visitor.complaints, []);
    });
  }
}
