// Directories of the source as rings: from inside to outside directories, files and functions, each as wide as its memory.

import { hierarchy, partition } from "d3-hierarchy";
import type { Table } from "./decode";
import { button, element } from "./dom";
import { nested, WEIGHTS, type Frame } from "./flame";
import type { Sums } from "./sums";
import { bytes } from "./words";

const SVG = "http://www.w3.org/2000/svg";
/** Share of the whole below which a part is left out. */
const NARROWEST = 0.002;
const RADIUS = 300;
const HOLE = 70;
const LEVELS = 5;
/** Width of a character of a label. */
const CHARACTER = 7.2;

/** Directories, file and function of a row. */
function path(table: Table, row: number): string[] {
  const source = table.sources![row]!.replace(/^~/, "");
  const parts = source.split("/").filter((part) => part !== "");
  return [...(parts.length > 0 ? parts : ["no directory"]), table.functions?.[row] ?? table.names[row]!];
}

/** A ring's part from one turn to another, between two radii. */
function arc(from: number, to: number, inner: number, outer: number): string {
  const end = Math.min(to, from + 0.99999);
  const point = (turn: number, radius: number): string => {
    const angle = 2 * Math.PI * turn;
    return `${(radius * Math.sin(angle)).toFixed(1)} ${(-radius * Math.cos(angle)).toFixed(1)}`;
  };
  const large = end - from > 0.5 ? 1 : 0;
  return `M${point(from, outer)}A${outer} ${outer} 0 ${large} 1 ${point(end, outer)}L${point(end, inner)}A${inner} ${inner} 0 ${large} 0 ${point(from, inner)}Z`;
}

function drawn(name: string, attributes: Record<string, string>, ...children: (Node | string)[]): SVGElement {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** Moves the focus to a part before or after this one: of all parts, one can be reached by Tab. */
function move(parts: SVGElement[], from: SVGElement, by: number): void {
  const next = parts[parts.indexOf(from) + by];
  if (!next) return;
  from.setAttribute("tabindex", "-1");
  next.setAttribute("tabindex", "0");
  next.focus();
}

export class Rings {
  readonly root = element("section", { class: "rings", "aria-labelledby": "rings-h" });
  private readonly picture = element("div");
  private readonly said = element("p", { class: "note", role: "status" });
  /** Names of the parts into which was zoomed. */
  private zoom: string[] = [];
  private shown: { table: Table; sums: Sums; weight: string } | null = null;

  constructor() {
    const out = button("Whole source", () => this.to([]));
    this.root.append(element("h3", { id: "rings-h" }, "By directory"), out, this.said, this.picture);
  }

  show(table: Table, sums: Sums, weight: string): void {
    this.shown = { table, sums, weight };
    this.draw();
  }

  private to(zoom: string[]): void {
    this.zoom = zoom;
    this.draw();
  }

  private draw(): void {
    if (!this.shown) return;
    const { table, sums, weight } = this.shown;
    const { root, less } = nested((row) => path(table, row), sums, weight);
    let top = root;
    for (const name of this.zoom) top = top.children.get(name) ?? top;
    const least = top.value * NARROWEST;
    const kept = (frame: Frame): Frame[] => [...frame.children.values()].filter((child) => child.value >= least).sort((a, b) => b.value - a.value);
    const nodes = hierarchy(top, kept);
    nodes.each((node) => ((node as { value?: number }).value = node.data.value));
    const levels = Math.min(nodes.height, LEVELS);
    const width = (RADIUS - HOLE) / Math.max(levels, 1);
    const laid = partition<Frame>().size([1, nodes.height + 1])(nodes as never);
    const parts: SVGElement[] = [];
    const labels: SVGElement[] = [];
    const colours = new Map(laid.children?.map((child, at) => [child.data.name, at % 5]));
    laid.each((node) => {
      if (node.depth === 0 || node.depth > levels) return;
      const trail = [...this.zoom, ...node.ancestors().reverse().slice(1).map((ancestor) => ancestor.data.name)];
      const text = `${trail.join("/")}: ${bytes(node.data.value)}, ${((100 * node.data.value) / (root.value || 1)).toFixed(1)} %`;
      const inner = HOLE + (node.depth - 1) * width;
      const first = trail[this.zoom.length]!;
      const shape = drawn("path", { d: arc(node.x0, node.x1, inner, inner + width - 1), class: `f${colours.get(first) ?? 0}` });
      const part = drawn("g", { role: "button", tabindex: parts.length === 0 ? "0" : "-1", "aria-label": text }, drawn("title", {}, text), shape);
      // Cut names are no names of buttons.
      labels.push(...label(node.data.name, (node.x0 + node.x1) / 2, node.x1 - node.x0, inner, width));
      const enter = (): void => this.to(node.children ? trail : trail.slice(0, -1));
      part.addEventListener("click", enter);
      part.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") enter();
        else if (event.key === "Escape") this.to([]);
        else if (event.key === "ArrowRight") move(parts, part, 1);
        else if (event.key === "ArrowLeft") move(parts, part, -1);
        else return;
        event.preventDefault();
      });
      parts.push(part);
    });
    const size = String(2 * RADIUS);
    const corner = String(-RADIUS);
    const centre = [drawn("text", { y: "-4", "text-anchor": "middle" }, top.name), drawn("text", { y: "14", "text-anchor": "middle" }, bytes(top.value))];
    this.picture.replaceChildren(drawn("svg", { viewBox: `${corner} ${corner} ${size} ${size}`, role: "group", "aria-label": "Rings" }, ...centre, ...parts, ...labels));
    const place = this.zoom.length > 0 ? ` in ${this.zoom.join("/")}` : "";
    const shrunk = less > 0 ? `; ${bytes(less)} less elsewhere` : "";
    const guess = table.sources!.some((source) => source.startsWith("~")) ? " Directories are inferred from names of functions." : "";
    this.said.textContent = `${WEIGHTS[weight]!.title}${place}: ${bytes(top.value)}${shrunk}. A click, or Enter, shows a part alone, Escape the whole; arrow keys move.${guess}`;
  }
}

/** The name of a part, if it has room: along the radius. */
function label(name: string, middle: number, share: number, inner: number, width: number): SVGElement[] {
  const room = Math.floor((width - 8) / CHARACTER);
  const height = 2 * Math.PI * share * (inner + width / 2);
  if (height < 13 || room < 3) return [];
  const text = name.length > room ? `${name.slice(0, room - 1)}…` : name;
  const turn = middle * 360 - 90;
  const isLeft = middle > 0.5;
  const at = inner + width / 2;
  return [drawn("text", { transform: `rotate(${turn.toFixed(1)}) translate(${at.toFixed(1)} 0)${isLeft ? " rotate(180)" : ""}`, "text-anchor": "middle", dy: "4", class: "label", "aria-hidden": "true" }, text)];
}
