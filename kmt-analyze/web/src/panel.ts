// One row: its numbers, its course, its stacks, and facts of the whole recording.

import { Chart } from "./chart";
import { Column, Mark, type About, type Fact, type Table } from "./decode";
import { element } from "./dom";
import { course, type Range, type Sums } from "./sums";
import { headings } from "./table";
import { bytes } from "./words";

/** A row of a table: its place among the sums that are shown, and the rows of the table in it. */
export interface Row {
  name: string;
  table: Table;
  sums: Sums;
  at: number;
  rows: number[];
}

const STACKS = 5;

export class Panel {
  readonly root = element("div", { class: "panel" });
  private key = "";
  private chart: Chart | null = null;
  private numbers = element("div");

  constructor(
    private readonly about: About,
    private readonly select: (range: Range) => void,
  ) {}

  hide(): void {
    this.key = "";
    this.root.replaceChildren();
  }

  show(row: Row, range: Range, stacks: { table: Table; sums: Sums } | null): void {
    const key = `${row.table.key} ${row.rows.join(" ")} ${row.name}`;
    if (key !== this.key) this.build(row);
    this.key = key;
    this.chart?.mark(range);
    const facts = element("dl");
    for (const heading of headings(row.table.scale > 1)) {
      if (row.sums.marks[row.at]! & heading.needs) facts.append(element("dt", {}, heading.title), element("dd", {}, heading.show(heading.value(row.sums, row.at))));
    }
    this.numbers.replaceChildren(facts, ...(stacks ? this.stacks(row, stacks) : []));
  }

  private build(row: Row): void {
    const isLive = (row.sums.marks[row.at]! & Mark.Lives) !== 0;
    const column = isLive ? Column.BytesLive : Column.BytesAlloc;
    const title = isLive ? "still allocated" : "allocated in each step";
    const line = { title, values: course(row.table, column, this.about.steps, row.rows), colour: "c3", isBytes: true };
    this.chart = new Chart(this.about, `${row.name}: ${title}`, [line], 160, this.select);
    this.numbers = element("div");
    const known = row.table.key === "sites" ? row.rows.flatMap((at) => this.about.details[at] ?? []) : [];
    this.root.replaceChildren(element("h3", {}, row.name), this.chart.root, element("h4", {}, "In this range"), this.numbers, ...whole(known));
  }

  /** Stacks that end in the function of a call site, in this range. */
  private stacks(row: Row, { table, sums }: { table: Table; sums: Sums }): HTMLElement[] {
    const leaf = row.table.key === "sites" ? row.table.functions?.[row.rows[0]!] : row.name;
    const number = String(this.about.functions.indexOf(leaf ?? ""));
    const [live, alloc] = [sums.columns[Column.BytesLive]!, sums.columns[Column.BytesAlloc]!];
    const isSome = (at: number): boolean => live[at]! > 0 || alloc[at]! > 0;
    const found = table.names.flatMap((name, at) => (isSome(at) && (name === number || name.endsWith(` ${number}`)) ? [at] : []));
    if (found.length === 0) return [];
    found.sort((a, b) => live[b]! - live[a]! || alloc[b]! - alloc[a]!);
    const lines = found.slice(0, STACKS).map((at) => {
      const path = table.names[at]!.split(" ").reverse().map((name) => this.about.functions[Number(name)]!);
      return element("li", {}, `still allocated ${bytes(live[at]!)}, allocated ${bytes(alloc[at]!)}: `, element("code", {}, path.join(" ← ")));
    });
    return [element("h4", {}, "Stacks in this range"), element("ol", {}, ...lines)];
  }
}

function whole(facts: Fact[]): HTMLElement[] {
  if (facts.length === 0) return [];
  const list = element("dl");
  for (const { title, lines } of facts) list.append(element("dt", {}, title), element("dd", {}, lines.join(", ")));
  return [element("h4", {}, "In the whole recording"), list];
}
