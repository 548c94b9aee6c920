// What is shown, kept in the fragment of the address, so that a finding can be pointed at.

import type { Range } from "./sums";

export interface State {
  range: Range;
  tab: string;
  sort: string;
  ascending: boolean;
  search: string;
  /** Range that is subtracted; none: nothing is. */
  base: Range | null;
  /** What the width of a frame shows. */
  flame: string;
  /** Name of the row whose panel is open; empty: none. */
  row: string;
}

const KEYS = ["t", "base", "flame", "tab", "sort", "q", "row"] as const;

/** The fragment of a state; what is as at first is left out. */
export function fragment(state: State, first: State): string {
  const sort = (s: State): string => `${s.ascending ? "-" : ""}${s.sort}`;
  const edges = (range: Range | null): string => (range ? `${range.from}-${range.to}` : "");
  const texts = (s: State): string[] => [edges(s.range), edges(s.base), s.flame, s.tab, sort(s), s.search, s.row];
  const before = texts(first);
  const pairs = texts(state).map((text, at) => [KEYS[at]!, text, before[at]!] as const);
  return pairs.filter(([, text, old]) => text !== old).map(([key, text]) => `${key}=${encodeURIComponent(text)}`).join("&");
}

function range(text: string, steps: number): Range | null {
  const edges = /^(\d+)-(\d+)$/.exec(text);
  const [from, to] = edges ? [Number(edges[1]), Number(edges[2])] : [0, 0];
  return from < to && to <= steps ? { from, to } : null;
}

/** The state of a fragment; what it does not say, or says wrongly, is as at first. */
export function parsed(text: string, first: State, steps: number): State {
  const state = { ...first };
  for (const pair of text.replace(/^#/, "").split("&")) {
    const cut = pair.indexOf("=");
    if (cut < 0) continue;
    let value: string;
    try {
      value = decodeURIComponent(pair.slice(cut + 1));
    } catch {
      continue;
    }
    switch (pair.slice(0, cut)) {
      case "t":
        state.range = range(value, steps) ?? state.range;
        break;
      case "base":
        state.base = range(value, steps);
        break;
      case "flame":
        state.flame = value;
        break;
      case "tab":
        state.tab = value;
        break;
      case "sort":
        state.ascending = value.startsWith("-");
        state.sort = value.replace(/^-/, "");
        break;
      case "q":
        state.search = value;
        break;
      case "row":
        state.row = value;
        break;
    }
  }
  return state;
}
