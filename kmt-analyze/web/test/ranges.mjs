// The page's numbers of random ranges are those of --time: node ranges.mjs PROGRAM FILE.kmt PAGE.html RANGES
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { opened, rows, until } from "./browser.mjs";

const [program, file, path, ranges] = process.argv.slice(2);

/** The numbers of a row of a report, as the page's table has them. */
function numbers(name, sums) {
  const text = (value) => (value === null ? "" : String(value));
  const freed = sums.bytes_freed === null ? null : sums.bytes_freed + sums.bytes_freed_unseen;
  const all = [sums.bytes_live, sums.bytes_alloc, freed, sums.bytes_wasted, sums.bytes_wasted_live, sums.live, sums.alloc_events, sums.frees_matched];
  const isSome = all.some((value) => value > 0) || sums.freed_unseen > 0;
  return isSome ? [`"${name.replace(/"/g, '""')}",${all.map(text).join(",")}`] : [];
}

const TABS = {
  sites: ["callers", (rows) => rows.callers.flatMap((row) => numbers(row.symbol, row))],
  directories: ["callers --by dir", (rows) => rows.groups.flatMap((row) => numbers(row.dir ?? "?", row))],
  caches: ["caches", (rows) => rows.caches.flatMap((row) => numbers(row.cache, row))],
  tasks: ["tasks", (rows) => rows.tasks.flatMap((row) => numbers(String(row.pid), row.slab))],
};

function report(name, time) {
  const options = { encoding: "utf8", maxBuffer: 1 << 30, stdio: ["ignore", "pipe", "ignore"] };
  try {
    return JSON.parse(execFileSync(program, [...name.split(" "), "--json", "-l", "0", ...time, file], options));
  } catch (error) {
    if (error.status !== 3) throw error;
    return JSON.parse(error.stdout);
  }
}

// A generator with a seed: the same ranges each time.
let seed = 20261125;
const random = (below) => {
  seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
  return Math.floor((seed / 2 ** 32) * below);
};

const { browser, page, said } = await opened(path);
const steps = Number(await page.getAttribute(".range input", "max"));
let [compared, times] = [0, []];
for (let range = 0; range < Number(ranges); range++) {
  const edges = [random(steps + 1), random(steps + 1)].sort((a, b) => a - b);
  // The first are the whole, the first step and the last.
  const [from, to] = [[0, steps], [0, 1], [steps - 1, steps]][range] ?? (edges[0] < edges[1] ? edges : [edges[0] % steps, (edges[0] % steps) + 1]);
  for (const [tab, [name, of]] of Object.entries(TABS)) {
    const took = await page.evaluate((hash) => {
      const begun = performance.now();
      location.hash = hash;
      return new Promise((done) => addEventListener("hashchange", () => done(performance.now() - begun), { once: true }));
    }, `t=${from}-${to}&tab=${tab}&n=${range}`);
    times.push(took);
    await until(page, (tab) => document.getElementById(`tab-${tab}`).getAttribute("aria-selected") === "true", tab);
    const shell = await page.textContent("#time code");
    const time = / --time (\S+)/.exec(shell);
    const lines = (await rows(page)).trim().split("\n").slice(1);
    // A task has the name of the end of the recording here, of the end of the range there.
    const ours = lines.map((line) => (tab === "tasks" ? line.replace(/^".*?-?(-?\d+)"/, '"$1"') : line)).sort();
    const theirs = of(report(name, time ? ["--time", time[1]] : [])).sort();
    const differ = [ours.filter((line) => !theirs.includes(line)), theirs.filter((line) => !ours.includes(line))];
    assert.ok(differ.flat().length === 0 && ours.length === theirs.length, `${shell} (${tab}), page and report:\n${differ.map((lines) => lines.slice(0, 5).join("\n")).join("\n--\n")}`);
    compared += ours.length;
  }
}
await browser.close();
assert.deepEqual(said, []);
times.sort((a, b) => a - b);
console.log(`${ranges} ranges of ${steps} steps: ${compared} rows equal; a step takes ${times[times.length >> 1].toFixed(1)} ms, ${times.at(-1).toFixed(1)} at most`);
