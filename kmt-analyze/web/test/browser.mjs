// A headless browser for the tests: everything that a page says or asks for is kept.
import { chromium } from "playwright-core";

/** Opens a page from its file. `said` has messages, errors and requests; there should be none. */
export async function opened(path, { width = 1400, height = 900, scheme = "light" } = {}) {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
  const page = await browser.newPage({ viewport: { width, height }, colorScheme: scheme });
  const said = [];
  page.on("console", (message) => said.push(message.text()));
  page.on("pageerror", (error) => said.push(String(error)));
  page.on("dialog", (dialog) => (said.push(`dialog: ${dialog.message()}`), dialog.dismiss()));
  page.on("request", (request) => request.url() === `file://${encodeURI(path)}` || said.push(`request: ${request.url().slice(0, 100)}`));
  await page.addInitScript(() => {
    navigator.clipboard.writeText = (text) => ((window.copied = text), Promise.resolve());
  });
  const begun = performance.now();
  await page.goto(`file://${encodeURI(path)}`);
  await until(page, () => document.getElementById("time").dataset.ready === "yes");
  return { browser, page, said, readyMs: performance.now() - begun };
}

/** Waits until a condition holds in the page: a strict policy forbids what waitForFunction does. */
export async function until(page, condition, argument) {
  for (let time = 0; time < 20_000; time += 20) {
    if (await page.evaluate(condition, argument)) return;
    await page.waitForTimeout(20);
  }
  throw new Error(`never: ${condition}`);
}

/** Rows of the table that is shown, by name and with exact numbers, as "Copy as CSV" gives them. */
export async function rows(page) {
  return page.evaluate(() => {
    [...document.querySelectorAll("#rows button")].find((button) => button.textContent === "Copy as CSV").click();
    return window.copied;
  });
}
