// Numbers and times as text, as the command line prints and accepts them.

import type { About } from "./decode";
import type { Range } from "./sums";

export function count(value: number): string {
  return Math.round(value).toString().replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

/** A size with three digits and its unit. */
export function bytes(value: number): string {
  const sign = value < 0 ? "-" : "";
  let rest = Math.abs(value);
  if (rest < 1024) return `${sign}${rest}${rest === 0 ? "" : " B"}`;
  for (const unit of ["KiB", "MiB", "GiB", "TiB"]) {
    rest /= 1024;
    // From 999.5 on three digits would read 1000.
    if (rest < 999.5 || unit === "TiB") {
      const digits = rest < 9.995 ? 2 : rest < 99.95 ? 1 : 0;
      return `${sign}${rest.toFixed(digits)} ${unit}`;
    }
  }
  return "";
}

/** Time of an edge of a step since the first event, in the clock's unit. */
export function edge(about: About, step: number): bigint {
  return BigInt(about.offset) + BigInt(about.step) * BigInt(step);
}

/** A time as --time accepts it, to the last digit. */
export function timeOption(about: About, time: bigint): string {
  if (about.unit === "ticks") return `+${time}`;
  const second = 1_000_000_000n;
  const fraction = (time % second).toString().padStart(9, "0").replace(/0+$/, "");
  return `+${time / second}${fraction ? `.${fraction}` : ""}`;
}

/** A length or time for people. */
export function duration(about: About, value: bigint): string {
  if (about.unit === "ticks") return `${count(Number(value))} ticks`;
  const ns = Number(value);
  if (ns >= 1e9) return `${(ns / 1e9).toPrecision(ns >= 1e12 ? 6 : 4)} s`;
  if (ns >= 1e6) return `${(ns / 1e6).toPrecision(4)} ms`;
  return `${(ns / 1e3).toPrecision(4)} us`;
}

/** The option that selects a range; the whole recording needs none. */
export function rangeOption(about: About, range: Range): string[] {
  const open = (time: string | null): string => (time === null ? "" : timeOption(about, BigInt(time)));
  const from = range.from === 0 ? open(about.window[0]) : timeOption(about, edge(about, range.from));
  const to = range.to === about.steps ? open(about.window[1]) : timeOption(about, edge(about, range.to) - 1n);
  return from || to ? [`--time ${from}..${to}`] : [];
}

/** The command that compares two ranges. */
export function comparison(about: About, base: Range, range: Range): string {
  const whole = { from: 0, to: about.steps };
  const of = (part: Range): string => rangeOption(about, part)[0]?.replace("--time ", "") ?? `${timeOption(about, edge(about, whole.from))}..`;
  return ["kmt-analyze diff --all", ...about.options, `--time ${of(base)} --against ${of(range)}`, about.file].join(" ");
}

/** The command that prints the same numbers. */
export function command(about: About, report: string, range: Range): string {
  return ["kmt-analyze", report, ...about.options, ...rangeOption(about, range), about.file].join(" ");
}
