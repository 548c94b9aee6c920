// What a user does with a page: node page.mjs PAGE.html HOSTILE.html
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { opened, rows, until } from "./browser.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const [path, hostile] = process.argv.slice(2);
const sentence = (page) => page.textContent("#time .said");
const names = (page) => page.$$eval("#rows tbody th button", (all) => all.map((button) => button.textContent));

async function faults(page) {
  // The policy holds for the page's own scripts; the checker comes by the debugger.
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run({ resultTypes: ["violations"] }));
  const serious = violations.filter((fault) => ["serious", "critical"].includes(fault.impact));
  return serious.map((fault) => `${fault.id}: ${fault.nodes[0].html.slice(0, 200)}`);
}

async function selects() {
  const { browser, page, said, readyMs } = await opened(path);
  const whole = await sentence(page);
  // Drag over the middle of the first chart.
  const box = await page.locator(".u-over").first().boundingBox();
  await page.mouse.move(box.x + box.width * 0.3, box.y + 50);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.6, box.y + 60, { steps: 4 });
  await page.mouse.up();
  await until(page, (before) => document.querySelector("#time .said").textContent !== before, whole);
  const [from, to] = await page.$$eval(".range input", (all) => all.map((input) => Number(input.value)));
  const steps = Number(await page.getAttribute(".range input", "max"));
  assert.ok(Math.abs(from / steps - 0.3) < 0.02 && Math.abs(to / steps - 0.6) < 0.02, `${from} to ${to} of ${steps}`);
  assert.match(await page.textContent("#time code"), / --time \+[0-9.]+\.\.\+[0-9.]+ /);
  // The same state in another tab of the browser.
  const other = await browser.newPage();
  await other.goto(page.url());
  await until(other, () => document.getElementById("time").dataset.ready === "yes");
  assert.equal(await sentence(other), await sentence(page));
  await page.getByRole("button", { name: "Whole recording" }).click();
  assert.equal(await sentence(page), whole);
  // Sort and search.
  const all = (await rows(page)).trim().split("\n");
  await page.getByRole("button", { name: "allocs", exact: true }).click();
  const sorted = (await rows(page)).trim().split("\n").slice(1).map((line) => Number(line.split(",").at(-2)));
  assert.deepEqual(sorted, [...sorted].sort((a, b) => b - a));
  const wanted = (await names(page))[3];
  await page.getByRole("searchbox").fill(wanted);
  await until(page, () => document.querySelectorAll("#rows tbody tr").length < 3);
  assert.ok((await names(page)).includes(wanted) && all.length > 5);
  // A row's course.
  await page.locator("#rows tbody button").first().click();
  await page.locator(".panel figure").waitFor();
  assert.equal(await page.textContent(".panel h3"), wanted);
  assert.match(page.url(), /row=/);
  // Evidence of a finding opens its part.
  const links = await page.$$eval("#findings a", (links) => links.map((link) => link.getAttribute("href")));
  for (const link of links.filter((link) => link.startsWith("#part-"))) {
    await page.locator(`#findings a[href="${link}"]`).first().click();
    assert.ok(await page.locator(`${link} details`).evaluate((details) => details.open));
  }
  // A frame of the graph becomes the whole width.
  await page.getByRole("searchbox").fill("");
  const frame = page.locator(".frames button").nth(1);
  const name = await frame.textContent();
  await page.selectOption(".flame select", "alloc");
  assert.match(page.url(), /flame=alloc/);
  await frame.click();
  const widths = await page.$$eval(".frames button", (all) => all.slice(0, 1).map((box) => [box.textContent, box.style.width]));
  assert.deepEqual(widths, [[name, "100%"]]);
  await page.getByRole("button", { name: "Whole graph" }).click();
  assert.equal(await page.locator(".frames button").first().textContent(), "all");
  // A directory becomes the whole picture.
  const ring = page.locator(".rings g").first();
  const directory = /^[^:]+/.exec(await ring.getAttribute("aria-label"))[0];
  await ring.dispatchEvent("click");
  assert.match(await page.textContent(".rings .note"), new RegExp(` in ${directory}: `));
  await page.getByRole("button", { name: "Whole source" }).click();
  assert.doesNotMatch(await page.textContent(".rings .note"), / in [a-z]+: /);
  // Differences of two ranges: one range minus itself is nothing.
  await page.getByRole("button", { name: "Compare others with this range" }).click();
  assert.equal((await rows(page)).trim().split("\n").length, 1);
  await page.locator(".range input").first().fill(String(steps >> 1));
  assert.match(await page.textContent("#time code"), /kmt-analyze diff .*--time .* --against /);
  assert.ok((await rows(page)).trim().split("\n").length > 1);
  await page.getByRole("button", { name: /^Do not compare/ }).click();
  // The objects freed, by lifetime and size, are those of the sentence.
  const cells = await page.$$eval(".heat td", (all) => all.filter((cell) => cell.textContent !== "").length);
  assert.ok(cells > 5, `${cells}`);
  await browser.close();
  assert.deepEqual(said, []);
  return readyMs;
}

/** Everything by keyboard alone. */
async function isOperable() {
  const { browser, page, said } = await opened(path);
  const reach = async (wanted) => {
    for (let times = 0; times < 200; times++) {
      await page.keyboard.press("Tab");
      if (await page.evaluate((wanted) => document.activeElement.matches(wanted), wanted)) return;
    }
    assert.fail(`${wanted} cannot be reached`);
  };
  await reach(".range label:first-child input");
  for (let times = 0; times < 5; times++) await page.keyboard.press("ArrowRight");
  assert.equal(await page.locator(".range input").first().inputValue(), "5");
  assert.match(await page.locator(".range input").first().getAttribute("aria-valuetext"), /^\+[\d.]+ (s|ms|us)$/);
  await reach('[role="tab"]');
  await page.keyboard.press("ArrowRight");
  assert.equal(await page.evaluate(() => document.activeElement.id), "tab-functions");
  assert.equal(await page.getAttribute("#tab-functions", "aria-selected"), "true");
  await reach("#rows thead button");
  await page.keyboard.press("Enter");
  assert.ok(await page.evaluate(() => document.activeElement.dataset.focus === "sort-name"));
  await reach("#rows tbody button");
  await page.keyboard.press("Enter");
  await page.locator(".panel figure").waitFor();
  await reach(".frames button");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  const trail = await page.evaluate(() => document.activeElement.dataset.trail);
  assert.ok(trail.length > 0);
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.style.width), "100%");
  await page.keyboard.press("Escape");
  // One of the rings' parts is a stop; arrow keys reach the others.
  await reach(".rings g");
  const part = await page.evaluate(() => document.activeElement.getAttribute("aria-label"));
  await page.keyboard.press("ArrowRight");
  assert.notEqual(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), part);
  assert.equal(await page.locator('.rings g[tabindex="0"]').count(), 1);
  await page.keyboard.press("Tab");
  assert.ok(await page.evaluate(() => !document.activeElement.matches(".rings g")));
  await reach("#part-leaks summary");
  await page.keyboard.press("Enter");
  assert.ok(await page.locator("#part-leaks details").evaluate((details) => details.open));
  await browser.close();
  assert.deepEqual(said, []);
}

async function isAccessible() {
  for (const [width, scheme] of [[1400, "light"], [1400, "dark"], [400, "light"]]) {
    const { browser, page } = await opened(path, { width, scheme });
    await page.locator("#rows tbody button").first().click();
    await page.$$eval("details", (all) => all.forEach((details) => (details.open = true)));
    assert.deepEqual(await faults(page), [], `${width} ${scheme}`);
    const beyond = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(beyond <= 0, `${beyond} pixels beyond ${width}`);
    await browser.close();
  }
}

/** The band of a link is where its range is, when the page opens and when its width changes. */
async function isMarked() {
  const { browser, page } = await opened(path, { width: 1400 });
  const steps = Number(await page.getAttribute(".range input", "max"));
  const [from, to] = [Math.floor(steps * 0.3), Math.ceil(steps * 0.7)];
  const url = `${page.url().split("#")[0]}#t=${from}-${to}`;
  for (const width of [1400, 800, 400]) {
    const other = await browser.newPage({ viewport: { width, height: 900 } });
    await other.goto(url);
    await until(other, () => document.getElementById("time").dataset.ready === "yes");
    for (const changed of [width, 1000, 640]) {
      await other.setViewportSize({ width: changed, height: 900 });
      const shares = async () =>
        other.$$eval(".u-over", (all) =>
          all.map((over) => {
            const [whole, band] = [over.getBoundingClientRect(), over.querySelector(".u-select").getBoundingClientRect()];
            return [(band.left - whole.left) / whole.width, (band.right - whole.left) / whole.width];
          }),
        );
      const isRight = ([left, right]) => Math.abs(left - from / steps) < 0.01 && Math.abs(right - to / steps) < 0.01;
      for (let times = 0; times < 20 && !(await shares()).every(isRight); times++) await other.waitForTimeout(50);
      assert.ok((await shares()).every(isRight), `${width}, then ${changed}: ${JSON.stringify(await shares())}, not ${from / steps} to ${to / steps}`);
    }
    await other.close();
  }
  await browser.close();
}

/** Names that look like markup are text. */
async function isText() {
  const { browser, page, said } = await opened(hostile);
  await page.$$eval("details", (all) => all.forEach((details) => (details.open = true)));
  for (const tab of await page.locator('[role="tab"]').all()) {
    await tab.click();
    await page.locator("#rows tbody button").first().click();
  }
  await page.locator("#tab-tasks").click();
  assert.match(await rows(page), /^"'=cmd-8",/m);
  assert.equal(await page.locator("img, iframe, object, b, i").count(), 0);
  assert.match(await page.textContent("body"), /<img src=x onerror/);
  await browser.close();
  assert.deepEqual(said, []);
}

const readyMs = await selects();
await isOperable();
await isAccessible();
await isMarked();
await isText();
console.log(`ready in ${readyMs.toFixed(0)} ms`);
