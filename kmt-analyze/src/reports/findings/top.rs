//! Function, task and cache that allocated most slab memory, and those that hold most, of any trace.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use crate::collect::tasks::TaskSums;
use crate::ledger::totals::Totals;
use crate::pass::caches::by_cache;
use crate::pass::selection::recorder_threads;
use crate::render::screen::{Cell, Column, Table};
use crate::render::words::share;
use crate::reports::common::{ReportContext, View};
use crate::reports::summary::SummaryRows;

/// Slab memory that was allocated, or is still allocated, and those with most of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TopRow {
    /// All of it.
    pub bytes: u64,
    /// Function with most of it.
    pub function: Option<TopPart>,
    /// Task with most of it, besides the recorder.
    pub task: Option<TopPart>,
    /// Bytes of it by the recorder.
    pub bytes_by_recorder: u64,
    /// The recorder, with its process id; empty: unknown.
    #[serde(skip)]
    pub recorder: String,
    /// Cache or size class with most of it.
    pub cache: Option<TopPart>,
}

/// Part of one function, task or cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TopPart {
    /// Name of the function, task or cache.
    pub name: String,
    /// Bytes of the function, task or cache.
    pub bytes: u64,
}

/// Share of the recorder, as 1/N, from which it is named.
const RECORDER_NAMED: u64 = 10;

/// Bytes that were allocated, or are live.
type Amount = fn(&Totals) -> u64;

/// Who allocated most; `None`: nothing was allocated, or not recorded.
pub fn allocated(context: &ReportContext<'_, '_>, tasks: &TaskSums, summary: &SummaryRows) -> Option<TopRow> {
    let bytes = summary.slab.as_ref()?.totals.bytes_alloc;
    bytes.filter(|&bytes| bytes > 0).map(|bytes| row(context, tasks, bytes, |totals| totals.bytes_alloc))
}

/// Who holds most; `None`: nothing is live, or frees were not recorded.
pub fn live(context: &ReportContext<'_, '_>, tasks: &TaskSums, summary: &SummaryRows) -> Option<TopRow> {
    let bytes = summary.slab.as_ref()?.totals.bytes_live;
    bytes.filter(|&bytes| bytes > 0).map(|bytes| row(context, tasks, bytes, |totals| totals.bytes_live))
}

fn row(context: &ReportContext<'_, '_>, tasks: &TaskSums, bytes: u64, of: Amount) -> TopRow {
    let (analysis, labels) = (context.analysis, context.labels());
    let mut addresses: BTreeMap<u64, u64> = BTreeMap::new();
    for (site, parts) in analysis.interner.sites.items().iter().zip(&analysis.balance.sites) {
        let bytes = parts.iter().map(|(_, totals)| of(totals)).fold(0, u64::saturating_add);
        add(&mut addresses, site.call_site, bytes);
    }
    let mut functions: BTreeMap<String, u64> = BTreeMap::new();
    for (address, bytes) in addresses {
        add(&mut functions, labels.caller_function(address), bytes);
    }
    let (recorder, mut bytes_by_recorder) = (recorder_threads(context.session), 0u64);
    let mut pids: BTreeMap<i32, u64> = BTreeMap::new();
    for (number, sums) in (0u32..).zip(&tasks.origins) {
        let pid = analysis.interner.origins.get(number).map_or(0, |origin| origin.pid);
        if recorder.binary_search(&pid).is_ok() {
            bytes_by_recorder = bytes_by_recorder.saturating_add(of(&sums.slab));
        } else {
            add(&mut pids, pid, of(&sums.slab));
        }
    }
    let mut caches: BTreeMap<String, u64> = BTreeMap::new();
    for cache in by_cache(analysis) {
        add(&mut caches, cache.key.shown(analysis.size_classes), of(&cache.totals));
    }
    let named = |(name, bytes)| TopPart { name, bytes };
    TopRow {
        bytes,
        function: largest(functions).map(named),
        bytes_by_recorder,
        recorder: recorder.first().map_or(String::new(), |pid| labels.task(*pid)),
        task: largest(pids).map(|(pid, bytes)| named((labels.task(pid), bytes))),
        cache: largest(caches).map(named),
    }
}

fn add<K: Ord>(sums: &mut BTreeMap<K, u64>, key: K, bytes: u64) {
    let sum = sums.entry(key).or_default();
    *sum = sum.saturating_add(bytes);
}

/// The largest; of equal ones the first.
fn largest<K: Ord + Clone>(sums: BTreeMap<K, u64>) -> Option<(K, u64)> {
    let used = sums.into_iter().filter(|(_, bytes)| *bytes > 0);
    used.max_by_key(|(key, bytes)| (*bytes, Reverse(key.clone())))
}

impl TopRow {
    /// True if the recorder's part is much of all: less is of no interest.
    fn has_much_of_recorder(&self) -> bool {
        self.bytes_by_recorder > 0 && self.bytes_by_recorder.saturating_mul(RECORDER_NAMED) >= self.bytes
    }
}

/// Name and bytes of a part of a row.
type Part = fn(&TopRow) -> Option<(&str, u64)>;

fn named(part: &Option<TopPart>) -> Option<(&str, u64)> {
    part.as_ref().map(|part| (part.name.as_str(), part.bytes))
}

/// Rows behind that of all.
const PARTS: [(&str, Part); 4] = [
    ("most by function", |row| named(&row.function)),
    ("by the recorder", |row| {
        row.has_much_of_recorder().then_some((row.recorder.as_str(), row.bytes_by_recorder))
    }),
    ("most by task", |row| named(&row.task)),
    ("most by cache", |row| named(&row.cache)),
];

/// Heading of memory that is still allocated. Where events were lost, its frees may be among them.
pub fn live_heading(view: &View) -> &'static str {
    if view.is_lossy { "without a free event" } else { "still allocated" }
}

/// Who allocated most, and who holds most: by function, task and cache.
pub fn table(allocated: Option<&TopRow>, live: Option<&TopRow>, view: &View) -> Table {
    let sides = [allocated, live].into_iter().flatten();
    let is_there = |part: &Part| sides.clone().any(|row| part(row).is_some());
    let parts = PARTS.iter().filter(|(_, part)| is_there(part)).map(|(name, part)| (*name, Some(*part)));
    let all = sides.clone().take(1).map(|_| ("all", None));
    // Where events were lost, allocations may be among them.
    let heading = if view.is_window_lossy { "allocated, at least" } else { "allocated" };
    let cells = |row: Option<&TopRow>, part: Option<Part>| match (row, part) {
        (Some(row), None) => [Cell::text(view.bytes(row.bytes)), Cell::Empty],
        (Some(row), Some(part)) => part(row).map_or([Cell::Empty, Cell::Empty], |(name, bytes)| {
            [Cell::text(name), Cell::text(share(bytes, row.bytes))]
        }),
        (None, _) => [Cell::Empty, Cell::Empty],
    };
    let mut table = Table::of_rows("", all.chain(parts))
        .column(Column::whole("slab memory"), |(name, _)| Cell::text(*name))
        .columns([Column::name(heading), Column::number("share")], |(_, part)| cells(allocated, *part));
    if live.is_some() {
        let columns = [Column::name(live_heading(view)), Column::number("share of it")];
        table = table.columns(columns, |(_, part)| cells(live, *part));
    }
    table.into()
}
