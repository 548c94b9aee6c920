// How long objects live, by size: a table whose cells are as dark as there are many.

import { Column, type About, type Table } from "./decode";
import { element } from "./dom";
import type { Sums } from "./sums";
import { bytes, count, duration } from "./words";

const SHADES = 8;

export class Heat {
  readonly root = element("section", { "aria-labelledby": "heat-h" });
  private readonly body = element("div");
  private readonly said = element("p", {});

  constructor(private readonly about: About) {
    this.root.append(element("h3", { id: "heat-h" }, "Lifetime and size of the objects freed in this range"), this.said, this.body);
  }

  show(table: Table, sums: Sums): void {
    const cells = new Map<string, number>();
    const [sizes, digits] = [new Set<number>(), new Set<number>()];
    const byDigits = new Map<number, number>();
    let [all, most] = [0, 0];
    table.names.forEach((name, row) => {
      const frees = sums.columns[Column.Allocs]![row]!;
      if (frees === 0) return;
      const [length, size] = name.split(" ").map(Number) as [number, number];
      sizes.add(size);
      digits.add(length);
      cells.set(name, frees);
      byDigits.set(length, (byDigits.get(length) ?? 0) + frees);
      all += frees;
      most = Math.max(most, frees);
    });
    if (all === 0) {
      this.said.textContent = "No object was freed.";
      this.body.replaceChildren();
      return;
    }
    const below = (share: number): string => {
      let sum = 0;
      for (const length of [...byDigits.keys()].sort((a, b) => a - b)) {
        sum += byDigits.get(length)!;
        if (sum >= share * all) return this.length(length);
      }
      return "";
    };
    this.said.textContent = `Of ${count(all)} objects at least half lived for less than ${below(0.5)}, 99 % for less than ${below(0.99)}.`;
    const [first, last] = [Math.min(...digits), Math.max(...digits)];
    const lengths = Array.from({ length: last - first + 1 }, (_, at) => first + at);
    const head = [element("th", { scope: "col" }, "size"), ...lengths.map((length) => element("th", { scope: "col", class: "n" }, `< ${this.length(length)}`))];
    const rows = [...sizes].sort((a, b) => b - a).map((size) => {
      const row = lengths.map((length) => {
        const frees = cells.get(`${length} ${size}`) ?? 0;
        const shade = frees === 0 ? 0 : 1 + Math.floor(((SHADES - 1) * Math.log(frees)) / Math.max(Math.log(most), 1e-9));
        return element("td", { class: `n h${Math.min(shade, SHADES)}` }, frees === 0 ? "" : short(frees));
      });
      return element("tr", {}, element("th", { scope: "row", class: "n" }, bytes(size)), ...row);
    });
    const grid = element("table", { class: "heat" }, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows));
    this.body.replaceChildren(element("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Lifetimes and sizes" }, grid));
  }

  /** The length below which lengths of so many binary digits are. */
  private length(digits: number): string {
    return duration(this.about, 1n << BigInt(digits));
  }
}

/** A count with two digits and a letter. */
function short(value: number): string {
  if (value < 1000) return String(value);
  const [scaled, letter] = value < 1e6 ? [value / 1e3, "k"] : value < 1e9 ? [value / 1e6, "M"] : [value / 1e9, "G"];
  return `${scaled.toFixed(scaled < 9.95 ? 1 : 0)}${letter}`;
}
