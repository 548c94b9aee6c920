// Call stacks as frames: each as wide as the memory that came through it.

import { hierarchy, partition } from "d3-hierarchy";
import { Column, type About, type Table } from "./decode";
import { button, element } from "./dom";
import type { Sums } from "./sums";
import { bytes } from "./words";

export interface Frame {
  name: string;
  value: number;
  children: Map<string, Frame>;
}

/** What the width of a frame shows. */
export const WEIGHTS: Record<string, { title: string; of: (sums: Sums, row: number) => number }> = {
  live: { title: "still allocated at its end", of: (sums, row) => sums.columns[Column.BytesLive]![row]! },
  alloc: { title: "allocated", of: (sums, row) => sums.columns[Column.BytesAlloc]![row]! },
  wasted: { title: "wasted", of: (sums, row) => sums.columns[Column.BytesAlloc]![row]! - sums.columns[Column.BytesReq]![row]! },
  net: {
    title: "allocated minus freed",
    of: (sums, row) => sums.columns[Column.BytesAlloc]![row]! - sums.columns[Column.BytesFreed]![row]! - sums.columns[Column.BytesUnseen]![row]!,
  },
};

/** Share of the whole below which a frame is left out. */
const NARROWEST = 0.002;
const ROW = 20;
const OTHERS = "other stacks";

/** Functions of a row, the outermost first. */
function path(about: About, table: Table, row: number): string[] {
  if (table.key !== "stacks") return table.functions ? [table.functions[row]!, table.names[row]!] : [table.names[row]!];
  const name = table.names[row]!;
  return name === "" ? [OTHERS] : name.split(" ").map((number) => about.functions[Number(number)]!);
}

/** Weights of rows as a tree by their paths, and the sum of those below zero. */
export function nested(path: (row: number) => string[], sums: Sums, weight: string): { root: Frame; less: number } {
  const root: Frame = { name: "all", value: 0, children: new Map() };
  const of = WEIGHTS[weight]!.of;
  let less = 0;
  for (let row = 0; row < sums.names.length; row++) {
    const value = of(sums, row);
    if (value < 0) less -= value;
    if (value <= 0) continue;
    root.value += value;
    let frame = root;
    for (const name of path(row)) {
      let next = frame.children.get(name);
      if (!next) frame.children.set(name, (next = { name, value: 0, children: new Map() }));
      next.value += value;
      frame = next;
    }
  }
  return { root, less };
}

export class Flame {
  readonly root = element("section", { class: "flame", "aria-labelledby": "flame-h" });
  private readonly frames = element("div", { class: "frames", role: "group", "aria-label": "Frames" });
  private readonly said = element("p", { class: "note", role: "status" });
  private readonly choice = element("select", { "aria-label": "Width of a frame" });
  /** Names of the frames into which was zoomed. */
  private zoom: string[] = [];
  private shown: { table: Table; sums: Sums; search: string } | null = null;

  constructor(
    private readonly about: About,
    weights: string[],
    private weight: string,
    choose: (weight: string) => void,
  ) {
    for (const key of weights) this.choice.append(element("option", { value: key }, WEIGHTS[key]!.title));
    this.choice.addEventListener("change", () => choose(this.choice.value));
    const out = button("Whole graph", () => ((this.zoom = []), this.draw()));
    this.root.append(element("h3", { id: "flame-h" }, "By function"), element("label", {}, "Width: ", this.choice), " ", out, this.said, this.frames);
    this.frames.addEventListener("keydown", (event) => this.move(event));
  }

  show(table: Table, sums: Sums, weight: string, search: string): void {
    this.weight = weight;
    this.choice.value = weight;
    this.shown = { table, sums, search: search.toLowerCase() };
    this.draw();
  }

  private draw(): void {
    if (!this.shown) return;
    const { table, sums, search } = this.shown;
    const { root, less } = nested((row) => path(this.about, table, row), sums, this.weight);
    let top = root;
    for (const name of this.zoom) {
      const next = top.children.get(name);
      if (!next) break;
      top = next;
    }
    const least = top.value * NARROWEST;
    const kept = (frame: Frame): Frame[] => [...frame.children.values()].filter((child) => child.value >= least).sort((a, b) => (a.name < b.name ? -1 : 1));
    const nodes = hierarchy(top, kept);
    // Frames that are left out leave a gap.
    nodes.each((node) => ((node as { value?: number }).value = node.data.value));
    const laid = partition<Frame>().size([1, nodes.height + 1])(nodes as never);
    const boxes: HTMLElement[] = [];
    let hits = 0;
    laid.each((node) => {
      const trail = [...this.zoom, ...node.ancestors().reverse().slice(1).map((ancestor) => ancestor.data.name)];
      const text = `${node.data.name}: ${bytes(node.data.value)}, ${((100 * node.data.value) / (root.value || 1)).toFixed(1)} %`;
      const box = button(node.data.name, () => ((this.zoom = trail), this.draw()), { title: text, "aria-label": text, tabindex: -1 });
      box.dataset["trail"] = trail.join("\n");
      box.className = `f${hash(node.data.name) % 5}`;
      if (search && node.data.name.toLowerCase().includes(search)) {
        box.classList.add("hit");
        if (!node.ancestors().slice(1).some((above) => above.data.name.toLowerCase().includes(search))) hits += node.data.value;
      }
      Object.assign(box.style, { left: `${node.x0 * 100}%`, width: `${(node.x1 - node.x0) * 100}%`, top: `${node.depth * ROW}px` });
      boxes.push(box);
    });
    const height = (laid.height + 1) * ROW;
    this.frames.style.height = `${height}px`;
    const focused = (document.activeElement as HTMLElement | null)?.dataset["trail"];
    this.frames.replaceChildren(...boxes);
    const focus = boxes.find((box) => box.dataset["trail"] === focused) ?? boxes[0];
    if (focus) focus.tabIndex = 0;
    if (focused !== undefined) focus?.focus({ preventScroll: true });
    const whole = `${WEIGHTS[this.weight]!.title}: ${bytes(root.value)}`;
    const shrunk = less > 0 ? `; ${bytes(less)} less elsewhere` : "";
    const found = search && root.value ? `; matches: ${((100 * hits) / root.value).toFixed(1)} %` : "";
    this.said.textContent = `${whole}${shrunk}${found}. A click, or Enter, makes a frame the whole width; arrow keys move.`;
  }

  /** Arrow keys: to the caller, to the first callee, to the sides. */
  private move(event: KeyboardEvent): void {
    const now = document.activeElement as HTMLElement;
    const boxes = [...this.frames.querySelectorAll<HTMLElement>("button")];
    const depth = (box: HTMLElement): number => box.dataset["trail"]!.split("\n").length - (box.dataset["trail"] === "" ? 1 : 0);
    const above = now.dataset["trail"]!;
    const parent = above.split("\n").slice(0, -1).join("\n");
    const level = boxes.filter((box) => depth(box) === depth(now));
    const at = level.indexOf(now);
    const next: Record<string, HTMLElement | undefined> = {
      ArrowUp: boxes.find((box) => box.dataset["trail"] === parent && box !== now),
      ArrowDown: boxes.find((box) => depth(box) === depth(now) + 1 && (above === "" || box.dataset["trail"]!.startsWith(`${above}\n`))),
      ArrowLeft: level[at - 1],
      ArrowRight: level[at + 1],
    };
    if (event.key === "Escape") {
      this.zoom = [];
      this.draw();
      return;
    }
    if (!(event.key in next)) return;
    event.preventDefault();
    const target = next[event.key];
    if (!target) return;
    now.tabIndex = -1;
    target.tabIndex = 0;
    target.focus();
  }
}

function hash(name: string): number {
  let sum = 0;
  for (let at = 0; at < name.length; at++) sum = (sum * 31 + name.charCodeAt(at)) >>> 0;
  return sum;
}
