//! Growth of pages: kinds, or call sites, whose pages the same task allocates are one growth. A queue of network buffers has
//! pages of four orders.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::row::{Growth, LeakRow, LeakSum, RowMaker};
use crate::collect::tasks::TaskEvents;
use crate::reports::analysis::leaks::judged::Judged;
use crate::reports::analysis::leaks::makers::LiveWithMaker;

/// Pages that grow, of one task or of one row.
#[derive(Debug, Clone, Default)]
pub struct PageGrowth {
    /// The row with most growing pages.
    pub most: LeakRow,
    /// Old bytes and growth of all its rows.
    pub sum: LeakSum,
    /// Growth of all its rows, as shares are counted.
    pub growth: Growth,
    /// The tasks with most of it, two at most, with their parts of `growth`.
    pub holders: Vec<(String, u64)>,
    /// Number of tasks with old pages.
    pub tasks: usize,
}

/// Growths of these rows, the largest first.
pub(super) fn page_growths(
    maker: &RowMaker<'_, '_, '_>,
    rows: &[&Judged<'_>],
    task_events: &TaskEvents,
) -> Vec<PageGrowth> {
    let mut rows: Vec<&Judged<'_>> = rows.to_vec();
    rows.sort_by_key(|row| Reverse(row.evidence.old_amount));
    let mut groups: Vec<(LiveWithMaker<'_>, Vec<&Judged<'_>>)> = Vec::new();
    for row in rows {
        let made = LiveWithMaker::of(&row.growing, task_events);
        match groups.iter_mut().find(|(first, _)| first.is_by_task_of(&made)) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((made, vec![row])),
        }
    }
    let mut growths: Vec<PageGrowth> =
        groups.into_iter().filter_map(|(_, rows)| page_growth(maker, &rows)).collect();
    growths.sort_by_key(|growth| Reverse(growth.sum.bytes));
    growths
}

fn page_growth(maker: &RowMaker<'_, '_, '_>, rows: &[&Judged<'_>]) -> Option<PageGrowth> {
    let mut growth_of: BTreeMap<i32, u64> = BTreeMap::new();
    for row in rows {
        for (pid, steps) in row.growing.tasks() {
            let growth = growth_of.entry(pid).or_default();
            *growth = growth.saturating_add(maker.per_window(row, steps.sum()));
        }
    }
    let tasks = growth_of.len();
    let mut holders: Vec<(i32, u64)> = growth_of.into_iter().collect();
    holders.sort_by_key(|&(pid, growth)| (Reverse(growth), pid));
    let named = |&(pid, growth): &(i32, u64)| (maker.labels.task(pid), growth);
    Some(PageGrowth {
        most: maker.row(rows.first()?),
        sum: maker.old(rows.iter().copied()),
        growth: maker.growth(rows),
        holders: holders.iter().take(2).map(named).collect(),
        tasks,
    })
}
