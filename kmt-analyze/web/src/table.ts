// The table of the selected group: sorted, searched, copied.

import { Column, Mark, type About } from "./decode";
import { button, element } from "./dom";
import type { Sums } from "./sums";
import { bytes, count } from "./words";

interface Heading {
  key: string;
  title: string;
  needs: Mark;
  value: (sums: Sums, row: number) => number;
  show: (value: number) => string;
}

const of = (column: Column) => (sums: Sums, row: number) => sums.columns[column]![row]!;
const difference = (a: Column, b: Column) => (sums: Sums, row: number) => sums.columns[a]![row]! - sums.columns[b]![row]!;

export const HEADINGS: Heading[] = [
  { key: "live", title: "still allocated", needs: Mark.Lives, value: of(Column.BytesLive), show: bytes },
  { key: "alloc", title: "allocated", needs: Mark.Allocs, value: of(Column.BytesAlloc), show: bytes },
  { key: "freed", title: "freed", needs: Mark.Lives, value: (sums, row) => of(Column.BytesFreed)(sums, row) + of(Column.BytesUnseen)(sums, row), show: bytes },
  { key: "wasted", title: "wasted", needs: Mark.Allocs, value: difference(Column.BytesAlloc, Column.BytesReq), show: bytes },
  { key: "livewasted", title: "wasted of still allocated", needs: Mark.Lives, value: difference(Column.BytesLive, Column.BytesReqLive), show: bytes },
  { key: "objects", title: "objects", needs: Mark.Lives, value: of(Column.Live), show: count },
  { key: "allocs", title: "allocs", needs: Mark.Allocs, value: of(Column.Allocs), show: count },
  { key: "frees", title: "frees", needs: Mark.Lives, value: of(Column.Frees), show: count },
];

/** Headings of slab objects; those of pages have no waste and no count of frees. */
export function headings(isPages: boolean): Heading[] {
  const without = ["wasted", "livewasted", "frees"];
  const all = isPages ? HEADINGS.filter((heading) => !without.includes(heading.key)) : HEADINGS;
  return all.map((heading) => (isPages && heading.key === "objects" ? { ...heading, title: "pages" } : heading));
}

const ROWS = 50;

export interface View {
  noun: string;
  isPages: boolean;
  sort: string;
  ascending: boolean;
  search: string;
  row: string;
  /** The numbers are differences. */
  isDifference: boolean;
}

export interface Acts {
  sort: (key: string) => void;
  open: (name: string) => void;
}

export class SumTable {
  readonly root = element("div");
  private shown = ROWS;
  private rows: number[] = [];
  private sums: Sums | null = null;
  private view: View | null = null;

  constructor(
    private readonly about: About,
    private readonly acts: Acts,
  ) {}

  show(sums: Sums, view: View): void {
    if (view.noun !== this.view?.noun || view.search !== this.view.search) this.shown = ROWS;
    [this.sums, this.view] = [sums, view];
    this.rows = chosen(sums, view);
    this.draw();
  }

  private draw(): void {
    const [sums, view] = [this.sums!, this.view!];
    const all = headings(view.isPages);
    const head = element("tr", {}, this.heading("name", view.noun), ...all.map((heading) => this.heading(heading.key, heading.title)));
    const body = element("tbody");
    for (const row of this.rows.slice(0, this.shown)) body.append(this.row(sums, row, all));
    const table = element("table", { class: "sums" }, element("thead", {}, head), body);
    const more = this.rows.length - this.shown;
    const parts: Node[] = [element("div", { class: "wide", tabindex: 0, role: "region", "aria-label": view.noun }, table)];
    const foot = element("p", { class: "note" }, `${count(this.rows.length)} of ${count(sums.names.length)} `);
    if (more > 0) {
      const next = Math.min(more, 500);
      foot.append(button(`Show ${count(next)} more`, () => ((this.shown += next), this.draw())), " ");
    }
    foot.append(button("Copy as CSV", () => void navigator.clipboard.writeText(this.csv())));
    if (this.rows.some((row) => sums.marks[row]! & Mark.Doubtful)) {
      foot.append(" ≤: frees without events; what seems allocated may be free.");
    }
    if (this.about.rounded) foot.append(" Numbers above 2^53 are rounded.");
    parts.push(foot);
    const focused = document.activeElement?.getAttribute("data-focus");
    this.root.replaceChildren(...parts);
    if (focused) this.root.querySelector<HTMLElement>(`[data-focus="${CSS.escape(focused)}"]`)?.focus();
  }

  private heading(key: string, title: string): HTMLElement {
    const view = this.view!;
    const sorted = view.sort === key ? (view.ascending ? "ascending" : "descending") : "none";
    const act = button(title, () => this.acts.sort(key), { "data-focus": `sort-${key}` });
    return element("th", { scope: "col", "aria-sort": sorted, class: key === "name" ? "" : "n" }, act);
  }

  private row(sums: Sums, row: number, all: Heading[]): HTMLElement {
    const name = sums.names[row]!;
    const isOpen = name === this.view!.row;
    const act = button(name, () => this.acts.open(isOpen ? "" : name), { "aria-pressed": isOpen, "data-focus": `row-${name}` });
    const cells = all.map((heading) => element("td", { class: "n" }, text(sums, row, heading, this.view!.isDifference)));
    return element("tr", { class: isOpen ? "open" : "" }, element("th", { scope: "row" }, act), ...cells);
  }

  /** All rows that were found, with exact numbers. */
  csv(): string {
    const [sums, view] = [this.sums!, this.view!];
    const all = headings(view.isPages);
    // A spreadsheet would execute a name that begins like a formula.
    const harmless = (value: string): string => (/^[=+\-@\t\r＝＋－＠]/.test(value) ? `'${value}` : value);
    const quoted = (value: string): string => `"${harmless(value).replace(/"/g, '""')}"`;
    const lines = this.rows.map((row) => {
      const values = all.map((heading) => (sums.marks[row]! & heading.needs ? String(heading.value(sums, row)) : ""));
      return [quoted(sums.names[row]!), ...values].join(",");
    });
    return [[view.noun, ...all.map((heading) => heading.title)].map(quoted).join(","), ...lines].join("\n") + "\n";
  }
}

function text(sums: Sums, row: number, heading: Heading, isDifference: boolean): string {
  const marks = sums.marks[row]!;
  if (!(marks & heading.needs)) return "?";
  const number = heading.value(sums, row);
  const value = isDifference && number > 0 ? `+${heading.show(number)}` : heading.show(number);
  const isLevel = ["live", "livewasted", "objects"].includes(heading.key);
  return isLevel && marks & Mark.Doubtful && value !== "0" ? `≤ ${value}` : value;
}

/** Rows with events in the range or memory at its end, whose names contain the search; sorted. */
function chosen(sums: Sums, view: View): number[] {
  const search = view.search.toLowerCase();
  const heading = headings(view.isPages).find((heading) => heading.key === view.sort);
  const rows: number[] = [];
  const isSome = (row: number): boolean => sums.columns.some((column) => column[row] !== 0);
  for (let row = 0; row < sums.names.length; row++) {
    if (isSome(row) && (!search || sums.names[row]!.toLowerCase().includes(search))) rows.push(row);
  }
  const sign = view.ascending ? 1 : -1;
  const byName = (a: number, b: number): number => (sums.names[a]! < sums.names[b]! ? -1 : 1);
  if (!heading) return rows.sort((a, b) => -sign * byName(a, b));
  const values = Float64Array.from(sums.names, (_, row) => heading.value(sums, row));
  return rows.sort((a, b) => sign * (values[a]! - values[b]!) || byName(a, b));
}
