// The part of the page that moves: a range of time, and everything that depends on it.

import { Chart, type Line } from "./chart";
import { Flame, WEIGHTS } from "./flame";
import { Heat } from "./heat";
import { Panel } from "./panel";
import { Rings } from "./rings";
import { Column, Mark, read, type About, type Table } from "./decode";
import { button, element } from "./dom";
import { fragment, parsed, type State } from "./state";
import { by, course, difference, over, total, type Range, type Sums } from "./sums";
import { SumTable } from "./table";
import { bytes, command, comparison, count, duration, edge } from "./words";

/** A tab: a table, perhaps with rows added up by function or directory. */
interface Tab {
  key: string;
  title: string;
  table: Table;
  /** Names by which rows are added up. */
  by: string[] | null;
  /** Report of the command line with the same numbers. */
  report: string;
}

const REPORTS: Record<string, string> = {
  sites: "callers",
  caches: "caches",
  tasks: "tasks",
  pagetasks: "tasks",
  orders: "pages --by order",
};

class Page {
  private readonly tabs: Tab[];
  private readonly first: State;
  private state: State;
  private readonly charts: Chart[] = [];
  private readonly sliders: [HTMLInputElement, HTMLInputElement];
  private readonly said = element("p", { class: "said", role: "status" });
  private readonly shell = element("code");
  private readonly tabList = element("div", { role: "tablist", "aria-label": "Tables" });
  private readonly search = element("input", { type: "search", placeholder: "Search names", "aria-label": "Search names" });
  private readonly table: SumTable;
  private readonly panel: Panel;
  private readonly stacks: Table | undefined;
  private readonly lifetimes: Table | undefined;
  private readonly flame: Flame;
  private readonly rings: Rings;
  private readonly heat: Heat;
  private readonly compare = button("Compare others with this range", () => this.change({ base: this.state.base ? null : this.state.range }));

  constructor(
    private readonly about: About,
    tables: Table[],
    private readonly root: HTMLElement,
  ) {
    this.stacks = tables.find((table) => table.key === "stacks");
    this.lifetimes = tables.find((table) => table.key === "lifetimes");
    this.tabs = tables.filter((table) => table !== this.stacks && table !== this.lifetimes).flatMap((table) => tabsOf(table));
    this.first = { range: { from: 0, to: about.steps }, tab: this.tabs[0]?.key ?? "", sort: "live", ascending: false, search: "", row: "", base: null, flame: "live" };
    const hasLives = tables.some((table) => table.marks.some((marks) => marks & Mark.Lives));
    if (!hasLives) this.first.sort = this.first.flame = "alloc";
    this.state = parsed(location.hash, this.first, about.steps);
    this.sliders = [this.slider("from"), this.slider("to")];
    const weights = Object.keys(WEIGHTS).filter((key) => hasLives || key === "alloc" || key === "wasted");
    if (!weights.includes(this.state.flame)) this.state.flame = this.first.flame;
    this.flame = new Flame(about, weights, this.state.flame, (flame) => this.change({ flame }));
    this.rings = new Rings();
    this.heat = new Heat(about);
    this.panel = new Panel(about, (range) => this.change({ range }));
    this.table = new SumTable(about, {
      sort: (key) => this.change({ sort: key, ascending: this.state.sort === key && !this.state.ascending }),
      open: (row) => this.change({ row }),
    });
  }

  build(): void {
    const lines = this.lines();
    const select = (range: Range): void => this.change({ range });
    const levels = lines.filter((line) => line.isBytes);
    if (levels.length > 0) this.charts.push(new Chart(this.about, "Still allocated, of what was allocated during the recording", levels, 240, select));
    const rates = lines.filter((line) => !line.isBytes);
    if (rates.length > 0) this.charts.push(new Chart(this.about, `Allocations and frees in each step of ${duration(this.about, BigInt(this.about.step))}`, rates, 150, select));
    for (const tab of this.tabs) {
      this.tabList.append(button(tab.title, () => this.change({ tab: tab.key, row: "" }), { role: "tab", id: `tab-${tab.key}`, "aria-controls": "rows" }));
    }
    this.tabList.addEventListener("keydown", (event) => this.moveTab(event));
    this.search.addEventListener("input", () => this.change({ search: this.search.value }));
    const whole = button("Whole recording", () => this.change({ range: this.first.range }));
    const labels = this.sliders.map((slider, at) => element("label", {}, at === 0 ? "From " : "To ", slider));
    this.root.append(
      ...this.charts.map((chart) => chart.root),
      element("div", { class: "range" }, ...labels, whole, this.compare),
      this.said,
      element("p", { class: "more" }, "The same numbers: ", this.shell),
      this.tabList,
      this.search,
      element("div", { id: "rows", role: "tabpanel", tabindex: -1 }, this.table.root),
      this.panel.root,
    );
    if (this.sites()) this.root.append(this.flame.root);
    if (this.sites()?.sources) this.root.append(this.rings.root);
    if (this.lifetimes) this.root.append(this.heat.root);
    addEventListener("hashchange", () => {
      if (location.hash.includes("=")) this.set(parsed(location.hash, this.first, this.about.steps));
    });
    this.draw();
  }

  /** Lines of the charts: live bytes of slab and of pages, and rates. */
  private lines(): Line[] {
    const sites = this.sites();
    const orders = this.tabs.find((tab) => tab.key === "orders")?.table;
    const line = (table: Table, column: Column, title: string, colour: string, dash?: number[]): Line => {
      const isBytes = column >= Column.Live;
      return { title, values: course(table, column, this.about.steps), colour, isBytes, dash };
    };
    const has = (table: Table | undefined, mark: Mark): table is Table => table !== undefined && table.marks.some((marks) => marks & mark);
    const lines: Line[] = [];
    if (has(sites, Mark.Lives)) lines.push(line(sites, Column.BytesLive, "slab", "c0"));
    if (has(orders, Mark.Lives)) lines.push(line(orders, Column.BytesLive, "pages, slabs included", "c1", [7, 3]));
    if (has(sites, Mark.Allocs)) lines.push(line(sites, Column.Allocs, "slab allocations", "c0"));
    if (has(sites, Mark.Lives)) lines.push(line(sites, Column.Frees, "frees of them", "c2", [2, 3]));
    return lines;
  }

  private sites(): Table | undefined {
    return this.tabs.find((tab) => tab.key === "sites")?.table;
  }

  private slider(end: keyof Range): HTMLInputElement {
    const made = element("input", { type: "range", min: 0, max: this.about.steps, step: 1 });
    made.addEventListener("input", () => {
      const range = { ...this.state.range, [end]: Number(made.value) };
      if (end === "from") range.from = Math.min(range.from, range.to - 1);
      else range.to = Math.max(range.to, range.from + 1);
      this.change({ range });
    });
    return made;
  }

  private moveTab(event: KeyboardEvent): void {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    const at = this.tabs.findIndex((tab) => tab.key === this.state.tab);
    const next = this.tabs[(at + step + this.tabs.length) % this.tabs.length]!;
    this.change({ tab: next.key, row: "" });
    document.getElementById(`tab-${next.key}`)?.focus();
    event.preventDefault();
  }

  private change(part: Partial<State>): void {
    this.set({ ...this.state, ...part });
    history.replaceState(null, "", `#${fragment(this.state, this.first)}`);
  }

  private set(state: State): void {
    this.state = state;
    this.draw();
  }

  private tab(): Tab | undefined {
    return this.tabs.find((tab) => tab.key === this.state.tab) ?? this.tabs[0];
  }

  private draw(): void {
    const { range, base } = this.state;
    const tab = this.tab();
    this.sliders.forEach((slider, at) => {
      const step = at === 0 ? range.from : range.to;
      slider.value = String(step);
      slider.setAttribute("aria-valuetext", this.time(step));
    });
    this.charts.forEach((chart) => chart.mark(range));
    if (!tab) {
      this.said.textContent = "The recording has no allocations.";
      return;
    }
    for (const other of this.tabs) {
      const element = document.getElementById(`tab-${other.key}`)!;
      element.setAttribute("aria-selected", String(other === tab));
      element.tabIndex = other === tab ? 0 : -1;
    }
    document.getElementById("rows")!.setAttribute("aria-labelledby", `tab-${tab.key}`);
    this.shell.textContent = base ? comparison(this.about, base, range) : command(this.about, tab.report, range);
    this.compare.textContent = base ? `Do not compare with ${this.time(base.from)} to ${this.time(base.to)}` : "Compare others with this range";
    this.compare.setAttribute("aria-pressed", String(base !== null));
    if (this.search.value !== this.state.search) this.search.value = this.state.search;
    const own = this.sums(tab, range);
    const sums = base ? difference(own, this.sums(tab, base)) : own;
    this.said.textContent = this.sentence(tab, sums, range);
    this.table.show(sums, {
      noun: tab.title,
      isPages: tab.table.scale > 1,
      sort: this.state.sort,
      ascending: this.state.ascending,
      search: this.state.search,
      row: this.state.row,
      isDifference: base !== null,
    });
    this.drawPanel(tab, range);
    const stacks = this.stacks ?? this.sites();
    if (stacks) this.flame.show(stacks, this.over(stacks), this.state.flame, this.state.search);
    const sites = this.sites();
    if (sites?.sources) this.rings.show(sites, this.over(sites), this.state.flame);
    if (this.lifetimes) this.heat.show(this.lifetimes, over(this.lifetimes, range));
  }

  private sums(tab: Tab, range: Range): Sums {
    const sums = over(tab.table, range);
    return tab.by ? by(tab.by, sums) : sums;
  }

  /** Numbers of the range, less those of the range that is subtracted. */
  private over(table: Table): Sums {
    const sums = over(table, this.state.range);
    return this.state.base ? difference(sums, over(table, this.state.base)) : sums;
  }

  private time(step: number): string {
    return `+${duration(this.about, edge(this.about, step))}`;
  }

  private sentence(tab: Tab, sums: Sums, range: Range): string {
    const all = total(sums);
    const known = (mark: Mark): boolean => sums.marks.some((marks) => marks & mark);
    const what = tab.table.scale > 1 ? "pages" : "slab memory";
    const base = this.state.base;
    const compared = base ? ` minus ${this.time(base.from)} to ${this.time(base.to)}` : "";
    const other = base && base.to - base.from !== range.to - range.from ? " (of another length)" : "";
    const parts = [`${this.time(range.from)} to ${this.time(range.to)}${compared}${other}, ${what}:`];
    if (known(Mark.Allocs)) parts.push(`allocated ${bytes(all[Column.BytesAlloc]!)} in ${count(all[Column.Allocs]!)} allocations;`);
    if (known(Mark.Lives)) {
      parts.push(`freed ${bytes(all[Column.BytesFreed]! + all[Column.BytesUnseen]!)};`);
      parts.push(`still allocated at its end ${bytes(all[Column.BytesLive]!)}.`);
    }
    return parts.join(" ").replace(/;$/, ".");
  }

  /** The panel of the row that is open. */
  private drawPanel(tab: Tab, range: Range): void {
    const name = this.state.row;
    const sums = this.sums(tab, range);
    const rows = indices(tab.by ?? tab.table.names, name);
    const at = sums.names.indexOf(name);
    if (!name || rows.length === 0 || at < 0) return this.panel.hide();
    const stacks = tab.table.functions && tab.key !== "directories" ? this.stacks : undefined;
    this.panel.show({ name, table: tab.table, sums, at, rows }, range, stacks ? { table: stacks, sums: over(stacks, range) } : null);
  }
}

function indices(names: string[], name: string): number[] {
  return names.flatMap((other, at) => (other === name ? [at] : []));
}

function tabsOf(table: Table): Tab[] {
  const tab: Tab = { key: table.key, title: table.title, table, by: null, report: REPORTS[table.key] ?? "summary" };
  const made = (key: string, title: string, names: string[] | null, option: string): Tab[] =>
    names ? [{ ...tab, key, title, by: names, report: `callers --by ${option}` }] : [];
  const directories = table.sources?.map((source) => source.replace(/\/?[^/]*$/, "") || (source ? "." : "?"));
  return [tab, ...made("functions", "Functions", table.functions, "function"), ...made("directories", "Directories", directories ?? null, "dir")];
}

/** Links to evidence open their part and leave the state alone. */
function openEvidence(): void {
  for (const link of document.querySelectorAll<HTMLAnchorElement>('a[href^="#"]')) {
    link.addEventListener("click", (event) => {
      const part = document.querySelector(link.hash);
      const details = part?.querySelector("details");
      if (details) details.open = true;
      part?.scrollIntoView();
      (details?.querySelector("summary") ?? part?.querySelector<HTMLElement>("input, button"))?.focus({ preventScroll: true });
      event.preventDefault();
    });
  }
}

async function main(): Promise<void> {
  openEvidence();
  const root = document.getElementById("time")!;
  try {
    const { about, tables } = await read(document.getElementById("numbers")!.textContent ?? "");
    new Page(about, tables, root).build();
    root.dataset["ready"] = "yes";
  } catch (error) {
    root.append(element("p", { class: "warn" }, `This browser cannot show this part: ${String(error)}`));
  }
}

void main();
