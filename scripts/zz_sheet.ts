import { chromium } from "playwright-core";
const [dir, ...sheets] = Deno.args;
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--allow-file-access-from-files"] });
const page = await browser.newPage({ viewport: { width: 1500, height: 300 } });
for (const sheet of sheets) {
  const [name, w, h, ...files] = sheet.split(",");
  const html = files.map((f) => `<div style="width:${w}px;height:${h}px;overflow:hidden;display:inline-block;vertical-align:top;margin:2px;border:2px solid red"><img width=${w} src="file://${dir}/${f}.png"></div>`).join("");
  await Deno.writeTextFile(`${dir}/../${name}.html`, html);
  await page.goto(`file://${dir}/../${name}.html`);
  await page.screenshot({ path: `${dir}/../${name}.png`, fullPage: true });
}
await browser.close();
