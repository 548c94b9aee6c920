//! How long objects of each size live: a grid of lifetime and size.

use super::frame::Frame;
use super::heat::{self, Grid};
use crate::render::words::{count, duration, size};
use crate::reports::lifetimes::LifetimeRows;

/// The picture of lifetimes grouped by size.
pub fn draw(rows: &LifetimeRows, frame: &Frame) -> String {
    let groups = rows.groups.as_ref();
    let mut sizes: Vec<(u64, [u64; 65])> = Vec::new();
    for group in groups.iter().flat_map(|table| &table.groups) {
        let mut counts = [0u64; 65];
        for [low, _, number] in &group.row.lifetime.histogram {
            // Buckets are finer than powers of two, and end at them.
            counts[digits(*low)] += number;
        }
        sizes.push((group.number("size").unwrap_or(0), counts));
    }
    sizes.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
    let used = |at: &usize| sizes.iter().any(|(_, counts)| counts[*at] > 0);
    let (first, last) = ((0..65).find(used).unwrap_or(0), (0..65).rev().find(used).unwrap_or(0));
    let from = |digits: usize| if digits == 0 { 0 } else { 1u64 << (digits - 1) };
    let total = groups.map_or(0, |table| table.groups_total);
    let mut notes = Vec::new();
    if rows.censored > 0 {
        notes
            .push(format!("{} objects are still allocated: they are not in the grid.", count(rows.censored)));
    }
    if total > sizes.len() {
        notes.push(format!("{} sizes with fewer objects are not drawn.", total - sizes.len()));
    }
    let grid = Grid {
        title: "Lifetimes of freed objects, by size",
        columns: (first..=last).map(|at| duration(from(at), frame.unit)).collect(),
        column_noun: "lifetime: at least",
        rows: sizes
            .iter()
            .map(|(bytes, counts)| (size(*bytes), counts.get(first..=last).unwrap_or_default().to_vec()))
            .collect(),
        is_lossy: Vec::new(),
        noun: "objects freed",
        notes,
    };
    heat::draw(&grid, frame)
}

/// Number of binary digits.
fn digits(length: u64) -> usize {
    (u64::BITS - length.leading_zeros()) as usize
}
