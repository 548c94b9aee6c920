// Numbers of a range of steps: exact at the edges of steps.

import { COLUMNS, Column, type Table } from "./decode";

/** Steps from `from` up to, not including, `to`. */
export interface Range {
  from: number;
  to: number;
}

/** Sums of rows, by column. */
export interface Sums {
  names: string[];
  marks: number[];
  columns: Float64Array[];
}

/** First place of a row whose step is not before `step`. */
function place(table: Table, row: number, step: number): number {
  let [low, high] = [table.begins[row]!, table.begins[row + 1]!];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (table.steps[middle]! < step) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Numbers of all rows over a range. */
export function over(table: Table, range: Range): Sums {
  const rows = table.names.length;
  const columns = Array.from({ length: COLUMNS }, () => new Float64Array(rows));
  for (let row = 0; row < rows; row++) {
    const begin = table.begins[row]!;
    const [first, end] = [place(table, row, range.from), place(table, row, range.to)];
    for (let column = 0; column < COLUMNS; column++) {
      const sums = table.sums[column]!;
      const until = end > begin ? sums[end - 1]! : 0;
      const before = column < Column.Live && first > begin ? sums[first - 1]! : 0;
      columns[column]![row] = until - before;
    }
  }
  return { names: table.names, marks: table.marks, columns };
}

/** Rows with the same name of another kind in one. */
export function by(names: string[], sums: Sums): Sums {
  const places = new Map<string, number>();
  const numbers = names.map((name) => {
    const known = places.get(name);
    if (known !== undefined) return known;
    places.set(name, places.size);
    return places.size - 1;
  });
  const marks = new Array<number>(places.size).fill(0);
  numbers.forEach((number, row) => (marks[number]! |= sums.marks[row]!));
  const columns = sums.columns.map((column) => {
    const out = new Float64Array(places.size);
    column.forEach((value, row) => (out[numbers[row]!]! += value));
    return out;
  });
  return { names: [...places.keys()], marks, columns };
}

/** What the first have more than the second. */
export function difference(sums: Sums, base: Sums): Sums {
  const columns = sums.columns.map((column, at) => column.map((value, row) => value - base.columns[at]![row]!));
  return { ...sums, columns };
}

/** The sum of each column. */
export function total(sums: Sums): number[] {
  return sums.columns.map((column) => column.reduce((sum, value) => sum + value, 0));
}

/** A column of some rows in each step: levels at its end, or sums over it. */
export function course(table: Table, column: Column, steps: number, rows?: number[]): Float64Array {
  const out = new Float64Array(steps);
  const sums = table.sums[column]!;
  const add = (row: number): void => {
    for (let at = table.begins[row]!; at < table.begins[row + 1]!; at++) {
      const before = at > table.begins[row]! ? sums[at - 1]! : 0;
      out[table.steps[at]!]! += sums[at]! - before;
    }
  };
  if (rows) rows.forEach(add);
  else table.names.forEach((_, row) => add(row));
  if (column >= Column.Live) for (let step = 1; step < steps; step++) out[step]! += out[step - 1]!;
  return out;
}
