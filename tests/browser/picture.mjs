// Takes the picture of a report's top, to the end of its first chart: `node picture.mjs REPORT.html PICTURE.png`.
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [report, picture] = process.argv.slice(2);
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const asRoot = process.getuid() === 0 ? ["--no-sandbox"] : [];
const browser = await chromium.launch({ executablePath, args: asRoot });
try {
  const page = await browser.newPage({ viewport: { width: 900, height: 1200 }, colorScheme: "light" });
  await page.goto(pathToFileURL(resolve(report)).href);
  const chart = page.locator("figure.chart").first();
  const box = await chart.boundingBox();
  await page.screenshot({ path: picture, clip: { x: 0, y: 0, width: 900, height: Math.ceil(box.y + box.height + 16) } });
} finally {
  await browser.close();
}
