//! When tasks waited for memory, and how long: a grid of time and length.

use std::collections::BTreeSet;

use super::frame::Frame;
use super::heat::{self, Grid};
use crate::render::words::{count, duration};
use crate::reports::latency::LatencyRows;
use crate::trace::losses::Losses;

/// Columns of time.
const COLUMNS: u64 = 48;
/// Largest number of kinds that are named below.
const KINDS: usize = 6;

/// The picture of all stalls from `first` to `last`.
pub fn draw(rows: &LatencyRows, (first, last): (u64, u64), losses: &Losses, frame: &Frame) -> String {
    let intervals = &rows.latency.intervals;
    let step = (last.saturating_sub(first) / COLUMNS + 1).max(1);
    let digits: BTreeSet<u32> = intervals.iter().map(|interval| log2(interval.length)).collect();
    let (low, high) = (digits.first().copied().unwrap_or(0), digits.last().copied().unwrap_or(0));
    let mut counts = vec![vec![0u64; COLUMNS as usize]; (high - low + 1) as usize];
    for interval in intervals {
        let row = (high - log2(interval.length)) as usize;
        let column = (interval.begin.saturating_sub(first) / step).min(COLUMNS - 1) as usize;
        if let Some(cell) = counts.get_mut(row).and_then(|row| row.get_mut(column)) {
            *cell += 1;
        }
    }
    let from = |digits: u32| if digits == 0 { 0 } else { 1u64 << (digits - 1) };
    let name = |row: usize| format!("≥ {}", duration(from(high - row as u32), frame.unit));
    let since = first.saturating_sub(frame.start);
    let mut notes: Vec<String> = Vec::new();
    let kinds = rows.latency.kinds.iter().take(KINDS);
    let kinds: Vec<String> =
        kinds.map(|kind| format!("{} {}", count(kind.lengths.count), kind.name)).collect();
    notes.push(format!("Stalls: {}.", kinds.join(", ")));
    if rows.latency.intervals_left_out > 0 {
        notes.push(format!("{} more stalls are not drawn.", count(rows.latency.intervals_left_out)));
    }
    let edge = |column: u64| first.saturating_add(step.saturating_mul(column));
    let is_lossy = |column| losses.missing_share(edge(column), edge(column + 1)) != Some(0.0);
    let grid = Grid {
        title: "Waits for memory: when they began, and how long they were",
        columns: (0..COLUMNS).map(|column| duration(since + column * step, frame.unit)).collect(),
        column_noun: "begin, since the first event",
        rows: counts.into_iter().enumerate().map(|(row, counts)| (name(row), counts)).collect(),
        is_lossy: (0..COLUMNS).map(is_lossy).collect(),
        noun: "stalls",
        notes,
    };
    heat::draw(&grid, frame)
}

fn log2(length: u64) -> u32 {
    u64::BITS - length.leading_zeros()
}
