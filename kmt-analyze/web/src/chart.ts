// Lines over time; the selected range is a rectangle that can be dragged, and steps without all events are hatched.

import uPlot from "uplot";
import type { About } from "./decode";
import { element } from "./dom";
import type { Range } from "./sums";
import { bytes, count, duration, edge } from "./words";

export interface Line {
  title: string;
  values: Float64Array;
  /** Name of a colour of the style. */
  colour: string;
  isBytes: boolean;
  dash?: number[];
}

export class Chart {
  readonly root: HTMLElement;
  private readonly plot: uPlot;
  private range: Range | null = null;
  private readonly edges: number[];

  constructor(
    private readonly about: About,
    title: string,
    private readonly lines: Line[],
    height: number,
    private readonly select: (range: Range) => void,
  ) {
    const host = element("div", { class: "plot", "aria-hidden": true });
    this.root = element("figure", {}, element("figcaption", {}, title), host);
    if (isLossy(about)) this.root.append(element("p", { class: "note" }, "Hatched: events are missing."));
    this.root.append(this.numbers(title));
    // A level is that at the end of its step.
    this.edges = Array.from({ length: about.steps + 1 }, (_, step) => seconds(about, step));
    const isBytes = lines.every((line) => line.isBytes);
    const show = isBytes ? bytes : count;
    const style = getComputedStyle(document.body);
    const colour = (name: string): string => style.getPropertyValue(`--${name}`);
    const axis = { stroke: () => colour("muted"), grid: { stroke: () => colour("rule") }, ticks: { stroke: () => colour("rule") }, font: "12px system-ui" };
    this.plot = new uPlot(
      {
        width: 800,
        height,
        legend: { live: false },
        cursor: { drag: { x: true, y: false, setScale: false }, points: { show: false } },
        scales: { x: { time: false }, y: { range: (_, least, most) => [Math.min(0, least), Math.max(1, most) * 1.05] } },
        axes: [
          { ...axis, label: about.unit === "ns" ? "seconds since the first event" : "ticks since the first event", labelSize: 18, size: 34, labelFont: "12px system-ui", values: (_: uPlot, ticks: number[], __: number, ___: number, step: number) => ticks.map((tick) => tick.toFixed(digits(step))) },
          { ...axis, size: 76, values: (_, ticks) => ticks.map(show), incrs: isBytes ? powers() : undefined },
        ],
        series: [
          {},
          ...lines.map((line) => ({ label: line.title, stroke: () => colour(line.colour), width: 2, dash: line.dash, points: { show: false } })),
        ],
        hooks: {
          drawClear: [(plot) => this.hatch(plot, colour("warn"))],
          setSelect: [(plot) => this.selected(plot)],
        },
      } as uPlot.Options,
      [this.edges, ...lines.map((line) => [0, ...line.values])] as uPlot.AlignedData,
      host,
    );
    const resized = new ResizeObserver(() => this.fit(host));
    resized.observe(host);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.plot.redraw(false));
  }

  private fit(host: HTMLElement): void {
    const width = Math.max(200, host.clientWidth);
    if (width !== this.plot.width) this.plot.setSize({ width, height: this.plot.height });
    // The plot scales its mark when it takes the new size, which is a microtask: positions are right behind it.
    queueMicrotask(() => {
      if (this.range) this.mark(this.range);
    });
  }

  /** Marks the selected range. */
  mark(range: Range): void {
    this.range = range;
    const [left, right] = [range.from, range.to].map((step) => this.plot.valToPos(this.edges[step]!, "x")) as [number, number];
    const isAll = range.from === 0 && range.to === this.about.steps;
    const height = this.plot.over.clientHeight;
    this.plot.setSelect({ left, width: isAll ? 0 : right - left, top: 0, height: isAll ? 0 : height }, false);
  }

  /** Takes what was dragged, at the nearest edges of steps. */
  private selected(plot: uPlot): void {
    const { left, width } = plot.select;
    if (width < 2) return;
    const step = (at: number): number => {
      const share = (plot.posToVal(at, "x") - this.edges[0]!) / (this.edges[this.about.steps]! - this.edges[0]!);
      return Math.min(this.about.steps, Math.max(0, Math.round(share * this.about.steps)));
    };
    const from = Math.min(step(left), this.about.steps - 1);
    this.select({ from, to: Math.max(from + 1, step(left + width)) });
  }

  /** Hatches steps in which events are missing. */
  private hatch(plot: uPlot, colour: string): void {
    const { ctx, bbox } = plot;
    const lost = this.about.lost;
    if (!isLossy(this.about)) return;
    ctx.save();
    ctx.globalAlpha = 0.5;
    ctx.beginPath();
    for (let step = 0; step < lost.length; step++) {
      if (lost[step] === 0) continue;
      const [left, right] = [step, step + 1].map((edge) => plot.valToPos(this.edges[edge]!, "x", true)) as [number, number];
      ctx.rect(left, bbox.top, Math.max(2, right - left), bbox.height);
    }
    ctx.clip();
    ctx.beginPath();
    for (let x = bbox.left - bbox.height; x < bbox.left + bbox.width; x += 8) {
      ctx.moveTo(x, bbox.top + bbox.height);
      ctx.lineTo(x + bbox.height, bbox.top);
    }
    ctx.strokeStyle = colour;
    ctx.stroke();
    ctx.restore();
  }

  /** The same as a table, for those who do not see the lines: at most 50 rows. */
  private numbers(title: string): HTMLElement {
    const details = element("details", { class: "numbers" }, element("summary", {}, `Numbers: ${title.toLowerCase()}`));
    details.addEventListener("toggle", () => {
      if (!details.open || details.childElementCount > 1) return;
      const every = Math.ceil(this.about.steps / 50);
      const head = ["until", ...this.lines.map((line) => line.title)].map((text) => element("th", { scope: "col", class: "n" }, text));
      const table = element("table", {}, element("thead", {}, element("tr", {}, ...head)));
      const body = element("tbody");
      for (let step = every; step < this.about.steps + every; step += every) {
        const last = Math.min(step, this.about.steps);
        const cells = this.lines.map((line) => {
          const value = line.values[last - 1]!;
          return element("td", { class: "n" }, line.isBytes ? bytes(value) : count(value));
        });
        body.append(element("tr", {}, element("th", { scope: "row", class: "n" }, duration(this.about, edge(this.about, last))), ...cells));
      }
      table.append(body);
      details.append(element("div", { class: "wide", tabindex: 0, role: "region", "aria-label": title }, table));
    });
    return details;
  }
}

function isLossy(about: About): boolean {
  return about.lost.some((share) => share === null || share > 0);
}

function seconds(about: About, step: number): number {
  return Number(edge(about, step)) / (about.unit === "ns" ? 1e9 : 1);
}

/** Digits after the point of ticks of a distance: of 2.5 one. */
export function digits(step: number): number {
  const isExact = (places: number): boolean => Math.abs(step * 10 ** places - Math.round(step * 10 ** places)) < 1e-6 * step * 10 ** places;
  let places = 0;
  while (places < 12 && !isExact(places)) places++;
  return places;
}

/** Distances of ticks of sizes: powers of two. */
function powers(): number[] {
  return Array.from({ length: 52 }, (_, power) => 2 ** power);
}
