//! Function, task and cache that allocated most slab memory, and those that hold most, of any trace.
//!
//! They are sums by each of these, from the totals of call sites and the collector of tasks. A trace without growth still shows who
//! uses memory. `top_table` makes a table of them; those of pages are in `top_pages`.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use crate::collect::tasks::TaskSums;
use crate::ledger::totals::Totals;
use crate::pass::caches::by_cache;
use crate::pass::selection::recorder_threads;
use crate::render::words::count;
use crate::reports::common::ReportContext;
use crate::reports::common::labels::Labels;
use crate::reports::summary::SummaryRows;

/// Slab memory that was allocated, or is still allocated, and those with most of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TopRow {
    /// Function and task with most of it.
    #[serde(flatten)]
    pub holders: TopHolders,
    /// Cache or size class with most of it.
    pub cache: Option<TopPart>,
}

/// Memory, and the function and the task with most of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TopHolders {
    /// All of it.
    pub bytes: u64,
    /// Function with most of it; `null`: unknown.
    pub function: Option<TopPart>,
    /// Task with most of it, besides the recorder, or tasks of one name.
    pub task: Option<TopTask>,
    /// Bytes of it by the recorder.
    #[serde(rename = "bytes_by_recorder")]
    #[cfg_attr(test, schemars(with = "u64"))]
    pub recorder: RecorderPart,
}

/// Part of the recorder; JSON has the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecorderPart {
    /// Bytes of all its threads.
    pub bytes: u64,
    /// The thread with most of them, with its id; empty: it has none.
    pub thread: String,
}

impl Serialize for RecorderPart {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.bytes.serialize(serializer)
    }
}

/// Part of one function, task, cache or use of pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TopPart {
    /// Name of the function, task, cache or use.
    pub name: String,
    /// Bytes of that function, task, cache or use.
    pub bytes: u64,
}

/// Part of one task, or of several tasks of one name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TopTask {
    /// Name and id of a task; of several tasks their name.
    pub name: String,
    /// Bytes of the task, or of all tasks of that name.
    pub bytes: u64,
    /// Number of tasks.
    pub tasks: u64,
}

impl TopTask {
    /// As screens have it: `bash-23385`, `cc1 (423 tasks)`.
    pub fn shown(&self) -> String {
        match self.tasks {
            1 => self.name.clone(),
            tasks => format!("{} ({} tasks)", self.name, count(tasks)),
        }
    }
}

/// Tasks of one name.
#[derive(Default)]
struct Namesakes {
    bytes: u64,
    tasks: u64,
    pid: i32,
}

/// Bytes that were allocated, or are live.
type Amount = fn(&Totals) -> u64;

/// Who allocated most; `None`: nothing was allocated, or not recorded.
pub fn allocated(context: &ReportContext<'_, '_>, tasks: &TaskSums, summary: &SummaryRows) -> Option<TopRow> {
    let bytes = summary.slab.as_ref()?.totals.bytes_alloc;
    // Sums of folded lives have no task, so none is known to have most.
    let none = TaskSums::default();
    let tasks = if context.session.trace.header().folded { &none } else { tasks };
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
    let mut caches: BTreeMap<String, u64> = BTreeMap::new();
    for cache in by_cache(analysis) {
        add(&mut caches, cache.key.shown(analysis.size_classes), of(&cache.totals));
    }
    TopRow {
        holders: holders(context, bytes, functions, tasks.origins.iter().map(|sums| of(&sums.slab))),
        cache: top_of(caches),
    }
}

/// Function and task with most bytes; `by_origin` are those of each origin, by its number.
pub(super) fn holders(
    context: &ReportContext<'_, '_>,
    bytes: u64,
    functions: BTreeMap<String, u64>,
    by_origin: impl Iterator<Item = u64>,
) -> TopHolders {
    let (analysis, labels) = (context.analysis, context.labels());
    let recorder = recorder_threads(context.session);
    let (mut pids, mut own): (BTreeMap<i32, u64>, BTreeMap<i32, u64>) = Default::default();
    for (number, bytes) in (0u32..).zip(by_origin) {
        let pid = analysis.interner.origins.get(number).map_or(0, |origin| origin.pid);
        add(if recorder.binary_search(&pid).is_ok() { &mut own } else { &mut pids }, pid, bytes);
    }
    TopHolders {
        bytes,
        function: top_of(functions),
        recorder: RecorderPart {
            bytes: own.values().copied().fold(0, u64::saturating_add),
            thread: largest(own).map_or(String::new(), |(pid, _)| labels.task(pid)),
        },
        task: top_task(pids, labels),
    }
}

/// The tasks of one name with most bytes: hundreds of short-lived ones, as of a compiler, count as one.
fn top_task(pids: BTreeMap<i32, u64>, labels: &Labels<'_, '_>) -> Option<TopTask> {
    let mut names: BTreeMap<String, Namesakes> = BTreeMap::new();
    for (pid, bytes) in pids.into_iter().filter(|(_, bytes)| *bytes > 0) {
        let sum = names.entry(labels.name(pid)).or_default();
        *sum = Namesakes { bytes: sum.bytes.saturating_add(bytes), tasks: sum.tasks + 1, pid };
    }
    let (name, sum) = names.into_iter().max_by_key(|(name, sum)| (sum.bytes, Reverse(name.clone())))?;
    let name = if sum.tasks == 1 { labels.task(sum.pid) } else { name };
    Some(TopTask { name, bytes: sum.bytes, tasks: sum.tasks })
}

/// The name with most bytes; of equal ones the first.
pub(super) fn top_of(sums: BTreeMap<String, u64>) -> Option<TopPart> {
    largest(sums).map(|(name, bytes)| TopPart { name, bytes })
}

/// Adds bytes of a key.
pub(super) fn add<K: Ord>(sums: &mut BTreeMap<K, u64>, key: K, bytes: u64) {
    let sum = sums.entry(key).or_default();
    *sum = sum.saturating_add(bytes);
}

/// The largest; of equal ones the first.
fn largest<K: Ord + Clone>(sums: BTreeMap<K, u64>) -> Option<(K, u64)> {
    let used = sums.into_iter().filter(|(_, bytes)| *bytes > 0);
    used.max_by_key(|(key, bytes)| (*bytes, Reverse(key.clone())))
}
