// Reads the packed numbers of the page (src/html/encode.rs writes them) and adds them up over time.

export interface Names {
  key: string;
  title: string;
  scale: number;
  names: string[];
  functions: string[] | null;
  /** Source files of call sites, or directories with a slash at the end; "~" marks what is inferred from a name. */
  sources: string[] | null;
  marks: number[];
}

/** A fact on a call site, in the whole recording. */
export interface Fact {
  title: string;
  lines: string[];
}

export interface About {
  unit: "ns" | "ticks";
  offset: string;
  step: string;
  steps: number;
  lost: (number | null)[];
  file: string;
  /** Begin and end of the selected time since the first event, as decimal numbers; null: those of the recording. */
  window: [string | null, string | null];
  options: string[];
  rounded: boolean;
  groups: Names[];
  /** Functions, which names of stacks number. */
  functions: string[];
  /** Facts on call sites, by row. */
  details: Record<string, Fact[]>;
}

/** What was recorded of a row: allocations, lives; and whether what seems live may be free. */
export const enum Mark {
  Allocs = 1,
  Lives = 2,
  Doubtful = 4,
}

/** Columns of a row; those from Live on are levels at the end of the range, the others sums over it. */
export const enum Column {
  Allocs,
  BytesAlloc,
  BytesReq,
  Frees,
  BytesFreed,
  Unseen,
  BytesUnseen,
  Live,
  BytesLive,
  BytesReqLive,
}
export const COLUMNS = 10;

export interface Table extends Names {
  /** Place of the first step of each row, and the end. */
  begins: Uint32Array;
  /** Numbers of the steps with changes. */
  steps: Uint32Array;
  /** By column: sums from the first step of the row to each of its steps. */
  sums: Float64Array[];
}

class Reader {
  at = 0;
  constructor(private readonly bytes: Uint8Array) {}

  number(): number {
    let scale = 1;
    let value = 0;
    for (;;) {
      const byte = this.bytes[this.at++] ?? 0;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
      scale *= 128;
    }
  }

  /** The inverse of zigzag. */
  signed(): number {
    const value = this.number();
    return value % 2 === 1 ? -(value + 1) / 2 : value / 2;
  }
}

/** Unpacks the page's numbers: names, then tables. */
export async function read(base64: string): Promise<{ about: About; tables: Table[] }> {
  const packed = Uint8Array.from(atob(base64), (digit) => digit.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const length = new DataView(bytes.buffer).getUint32(0, true);
  const about = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length))) as About;
  const reader = new Reader(bytes.subarray(4 + length));
  return { about, tables: about.groups.map((names) => table(names, reader)) };
}

function table(names: Names, reader: Reader): Table {
  const rows = reader.number();
  const begins = new Uint32Array(rows + 1);
  const allocated = new Float64Array(rows);
  const requested = new Float64Array(rows);
  for (let row = 0; row < rows; row++) {
    begins[row + 1] = begins[row]! + reader.number();
    allocated[row] = reader.number();
    requested[row] = reader.number();
  }
  const length = begins[rows]!;
  const steps = new Uint32Array(length);
  eachRow(begins, (from, to) => {
    let last = 0;
    for (let at = from; at < to; at++) steps[at] = last += reader.number();
  });
  const raw = (): Float64Array => Float64Array.from({ length }, () => reader.signed());
  const none = (): Float64Array => new Float64Array(length);
  const all = (of: (at: number) => number): Float64Array => Float64Array.from({ length }, (_, at) => of(at));
  let flows: Float64Array[];
  if (names.scale > 1) {
    const [allocs, alloc, freed, unseen, rest] = [raw(), raw(), raw(), raw(), raw()];
    const live = all((at) => rest[at]! + alloc[at]! - freed[at]! - unseen[at]!);
    const bytes = (pages: Float64Array): Float64Array => pages.map((count) => count * names.scale);
    const [bytesAlloc, bytesLive] = [bytes(alloc), bytes(live)];
    flows = [allocs, bytesAlloc, bytesAlloc, none(), bytes(freed), none(), bytes(unseen), live, bytesLive, bytesLive];
  } else {
    flows = Array.from({ length: COLUMNS }, raw);
    complete(flows, begins, allocated, requested);
  }
  for (const column of flows.filter((column, at) => flows.indexOf(column) === at)) {
    eachRow(begins, (from, to) => {
      for (let at = from + 1; at < to; at++) column[at] = column[at]! + column[at - 1]!;
    });
  }
  return { ...names, begins, steps, sums: flows };
}

/** Adds to the stored differences what they are differences to. */
function complete(flows: Float64Array[], begins: Uint32Array, allocated: Float64Array, requested: Float64Array): void {
  const [allocs, bytesAlloc, bytesReq, frees, bytesFreed, unseen, bytesUnseen, live, bytesLive, bytesReqLive] =
    flows as [Float64Array, Float64Array, Float64Array, Float64Array, Float64Array, Float64Array, Float64Array, Float64Array, Float64Array, Float64Array];
  eachRow(begins, (from, to, row) => {
    const [size, asked] = [allocated[row]!, requested[row]!];
    for (let at = from; at < to; at++) {
      bytesAlloc[at]! += allocs[at]! * size;
      bytesReq[at]! += allocs[at]! * asked;
      bytesFreed[at]! += frees[at]! * size;
      bytesUnseen[at]! += unseen[at]! * size;
      live[at]! += allocs[at]! - frees[at]! - unseen[at]!;
      bytesLive[at]! += live[at]! * size;
      bytesReqLive[at]! += live[at]! * asked;
    }
  });
}

function eachRow(begins: Uint32Array, run: (from: number, to: number, row: number) => void): void {
  for (let row = 0; row + 1 < begins.length; row++) run(begins[row]!, begins[row + 1]!, row);
}
