//! Stalls by kind, and shrinkers by function.
//!
//! The collector `Stalls` has counts, lengths and histograms; `tracepoints` has the names of kinds, shrinkers and
//! functions. Shrinkers are also added up by function alone, as other tools report them. `rows` has the result, and
//! screen, JSON and CSV show it.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::tracepoints::{StallNames, key};
use crate::collect::histogram::{Amount, Histogram};
use crate::collect::stalls::{Stall, Waits};
use crate::sort_rows::SortRows;

/// Lengths of intervals, in the clock's unit.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Lengths {
    /// Number of intervals.
    pub count: u64,
    /// Sum of their lengths.
    pub total: u64,
    /// Mean length.
    pub mean: Option<u64>,
    /// Median: half of them took at most this long.
    pub p50: Option<u64>,
    /// 90 % of them took at most this long.
    pub p90: Option<u64>,
    /// 99 % of them took at most this long.
    pub p99: Option<u64>,
    /// Longest.
    pub max: Option<u64>,
    /// Counts by power of ten.
    pub histogram: Vec<u64>,
}

impl From<&Histogram> for Lengths {
    fn from(lengths: &Histogram) -> Self {
        Self {
            count: lengths.count(),
            total: lengths.sum(),
            mean: lengths.mean(),
            p50: lengths.quantile(500),
            p90: lengths.quantile(900),
            p99: lengths.quantile(990),
            max: lengths.max(),
            histogram: lengths.decades(),
        }
    }
}

/// One kind of stall.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StallKind {
    /// Lengths of the stalls.
    #[serde(flatten)]
    pub lengths: Lengths,
    /// `direct_reclaim`, `memcg_reclaim`, `memcg_softlimit_reclaim`, `node_reclaim`, `direct_compaction`, `compaction`,
    /// `kswapd`, `shrinker`, `function`.
    pub kind: &'static str,
    /// Name in the text.
    pub name: String,
    /// Function; present for shrinkers and functions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<Option<String>>,
    /// Number among the shrinkers of the same function; present for shrinkers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shrinker: Option<Option<usize>>,
    /// Objects that it freed, of shrinkers alone; `null`: the events lack the field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objects_freed: Option<Option<u64>>,
    /// The node, of kswapd alone; `null`: the events lack the field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<Option<u64>>,
    /// Tasks, those that waited longest first.
    pub tasks: Vec<StalledTask>,
}

impl StallKind {
    /// True if allocations of the task wait for it.
    pub fn delays(&self) -> bool {
        Stall::DELAYS.map(key).contains(&self.kind)
    }
}

/// Stalls of one task.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StalledTask {
    /// Thread id.
    pub pid: i32,
    /// Name and id.
    pub task: String,
    /// Number of stalls.
    pub count: u64,
    /// Sum of their lengths, in the clock's unit.
    pub total: u64,
    /// Longest, in the clock's unit.
    pub max: u64,
}

/// Shrinkers of one function.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ShrinkerFunction {
    /// Lengths of the calls.
    #[serde(flatten)]
    pub lengths: Lengths,
    /// The function.
    pub function: String,
}

/// All kinds: first the others in a fixed order, then shrinkers and functions, the longest first.
pub fn compute(names: &StallNames<'_, '_, '_>) -> Vec<StallKind> {
    let mut all: Vec<(Stall, &Histogram)> = names.stalls.kinds.iter().map(|(s, h)| (*s, h)).collect();
    all.sort_rows_by_key(|(stall, lengths)| {
        let group = match stall {
            Stall::Shrinker(..) => 1,
            Stall::Function(_) => 2,
            _ => 0,
        };
        (group, std::cmp::Reverse(if group == 0 { 0 } else { lengths.sum() }), *stall)
    });
    let mut by_stall: HashMap<Stall, Vec<(i32, &Waits)>> = HashMap::new();
    for ((stall, pid), waits) in &names.stalls.by_task {
        by_stall.entry(*stall).or_default().push((*pid, waits));
    }
    let row = |(stall, lengths)| row(names, stall, lengths, by_stall.remove(&stall).unwrap_or_default());
    all.into_iter().map(row).collect()
}

fn row(
    names: &StallNames<'_, '_, '_>,
    stall: Stall,
    lengths: &Histogram,
    of_tasks: Vec<(i32, &Waits)>,
) -> StallKind {
    let is_shrinker = matches!(stall, Stall::Shrinker(..));
    let freed = || names.stalls.shrunk.get(&stall).and_then(Amount::recorded);
    StallKind {
        lengths: lengths.into(),
        kind: key(stall),
        name: names.name(stall),
        function: match stall {
            Stall::Shrinker(function, _) => Some(function.map(|f| names.labels.function(f))),
            Stall::Function(function) => Some(Some(names.labels.function(function))),
            _ => None,
        },
        shrinker: is_shrinker.then(|| names.shrinker_number(stall)),
        objects_freed: is_shrinker.then(freed),
        node: if let Stall::Kswapd(node) = stall { Some(node) } else { None },
        tasks: tasks(names, of_tasks),
    }
}

/// Tasks with their waits, the longest first.
fn tasks(names: &StallNames<'_, '_, '_>, mut all: Vec<(i32, &Waits)>) -> Vec<StalledTask> {
    all.sort_rows_by_key(|(pid, waits)| (std::cmp::Reverse(waits.total), *pid));
    let row = |(pid, waits): (i32, &Waits)| StalledTask {
        pid,
        task: names.labels.task(pid),
        count: waits.count,
        total: waits.total,
        max: waits.max,
    };
    all.into_iter().map(row).collect()
}

/// Shrinkers by function alone, as other tools report them.
pub fn by_function(names: &StallNames<'_, '_, '_>) -> Vec<ShrinkerFunction> {
    let mut all: BTreeMap<u64, Histogram> = BTreeMap::new();
    for (stall, lengths) in &names.stalls.kinds {
        if let Stall::Shrinker(Some(function), _) = stall {
            all.entry(*function).or_default().merge(lengths);
        }
    }
    let row = |(function, lengths): (&u64, &Histogram)| ShrinkerFunction {
        lengths: lengths.into(),
        function: names.labels.function(*function),
    };
    all.iter().map(row).collect()
}
