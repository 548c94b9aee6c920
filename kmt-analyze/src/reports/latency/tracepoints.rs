//! Stalls and functions that tracepoints belong to, and the names of stalls. With a threshold, a tracepoint is printed only where
//! one of its owners is over it.
//!
//! | tracepoints | owner |
//! |---|---|
//! | mm_vmscan_direct_reclaim_begin, _end | try_to_free_pages, or the time between them |
//! | mm_compaction_begin, _end | compact_zone, or the time between them |
//! | mm_compaction_try_to_compact_pages | try_to_compact_pages |
//! | mm_shrink_slab_start, _end | the time between them |
//! | mm_vmscan_lru_shrink_inactive | shrink_inactive_list; evict_folios where the kernel has generations of pages |
//! | begin and end of another reclaim | the time between them |
//! | others | the innermost stall |

use std::collections::{HashMap, HashSet};

use crate::collect::stalls::{Interval, Stall, StallSums};
use crate::ledger::SideEvent;
use crate::reports::common::labels::Labels;
use crate::stream::SideEventKind;

/// Functions that own tracepoints, by rule. The name of one depends on the kernel.
const FUNCTIONS: [&[&str]; 4] = [
    &["try_to_free_pages"],
    &["compact_zone"],
    &["try_to_compact_pages"],
    &["shrink_inactive_list", "evict_folios"],
];

/// The function of a rule: its number in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OwnerFunction(usize);

impl OwnerFunction {
    const RECLAIM: Self = Self(0);
    const COMPACT: Self = Self(1);
    const TRY_COMPACT: Self = Self(2);
    const SHRINK_INACTIVE: Self = Self(3);

    /// The rule of a stall, if it is a function that owns tracepoints.
    pub fn of(stall: Stall, function: impl Fn(u64) -> String) -> Option<Self> {
        let Stall::Function(address) = stall else { return None };
        let name = function(address);
        // Compilers add endings such as `.isra.0`.
        let name = name.split(['.', ' ']).next()?;
        FUNCTIONS.iter().position(|names| names.contains(&name)).map(Self)
    }
}

/// Owners of a tracepoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TracepointOwners {
    /// The stall that it begins or ends.
    stall: Option<Stall>,
    function: Option<OwnerFunction>,
}

impl TracepointOwners {
    /// Owners of an event; `None`: no rule is about it.
    pub fn of(event: &SideEvent) -> Option<Self> {
        use SideEventKind::*;
        let n = event.numbers;
        let (stall, function) = match event.kind {
            DirectBegin | DirectEnd => (Some(Stall::Direct), Some(OwnerFunction::RECLAIM)),
            CompactBegin | CompactEnd => (Some(Stall::Compaction), Some(OwnerFunction::COMPACT)),
            TryCompact => (None, Some(OwnerFunction::TRY_COMPACT)),
            ShrinkBegin | ShrinkEnd => (Some(Stall::Shrinker(n[1], n[0])), None),
            ShrinkInactive => (None, Some(OwnerFunction::SHRINK_INACTIVE)),
            MemcgBegin | MemcgEnd => (Some(Stall::Memcg), None),
            SoftLimitBegin | SoftLimitEnd => (Some(Stall::SoftLimit), None),
            NodeBegin | NodeEnd => (Some(Stall::Node), None),
            _ => return None,
        };
        Some(Self { stall, function })
    }

    /// True if its only owner is a function and none was traced: it belongs to the stall around it.
    pub fn is_unknown(&self, has_functions: bool) -> bool {
        self.stall.is_none() && !has_functions
    }

    /// True if the interval of this task is one of them, for an event at `time`.
    pub fn include(&self, interval: &Interval, function: Option<OwnerFunction>, time: u64) -> bool {
        let is_edge = time == interval.begin || time == interval.end;
        let is_pair = is_edge && self.stall == Some(paired(interval.stall));
        let is_within = (interval.begin..=interval.end).contains(&time);
        is_pair || (is_within && function.is_some() && self.function == function)
    }
}

/// The stall of a pair of tracepoints: they do not show for whom a zone is compacted.
fn paired(stall: Stall) -> Stall {
    if stall == Stall::DirectCompaction { Stall::Compaction } else { stall }
}

/// Owners among nested stalls over the threshold, in the order of their times.
#[derive(Debug)]
pub struct OpenOwners {
    has_functions: bool,
    /// Begins and ends of the stalls.
    edges: HashSet<(Stall, u64)>,
    /// Number of open functions, by rule.
    open: [usize; FUNCTIONS.len()],
}

impl OpenOwners {
    /// Of these stalls. `has_functions`: functions were traced.
    pub fn of<'i>(stalls: impl Iterator<Item = &'i Interval>, has_functions: bool) -> Self {
        let edges = stalls.flat_map(|i| [i.begin, i.end].map(|time| (paired(i.stall), time)));
        Self { has_functions, edges: edges.collect(), open: Default::default() }
    }

    /// A function begins.
    pub fn begin(&mut self, function: OwnerFunction) {
        self.open[function.0] += 1;
    }

    /// A function ends.
    pub fn end(&mut self, function: OwnerFunction) {
        self.open[function.0] = self.open[function.0].saturating_sub(1);
    }

    /// True if the event is printed. Lines of the tracer are not: functions over the threshold have their own lines.
    pub fn show(&self, event: &SideEvent) -> bool {
        if matches!(event.kind, SideEventKind::GraphEntry | SideEventKind::GraphExit) {
            return false;
        }
        let Some(owners) = TracepointOwners::of(event) else { return true };
        owners.is_unknown(self.has_functions)
            || owners.stall.is_some_and(|stall| self.edges.contains(&(stall, event.time)))
            || owners.function.is_some_and(|function| self.open[function.0] > 0)
    }
}

/// Names of stalls in the text.
pub struct StallNames<'n, 's, 'd> {
    /// Names of functions and tasks.
    pub labels: &'n Labels<'s, 'd>,
    /// Stalls of the trace.
    pub stalls: &'n StallSums,
    /// Numbers of shrinkers that share a function.
    shrinkers: HashMap<Stall, (usize, usize)>,
}

impl<'n, 's, 'd> StallNames<'n, 's, 'd> {
    /// Names of the stalls of a trace.
    pub fn new(labels: &'n Labels<'s, 'd>, stalls: &'n StallSums) -> Self {
        Self { labels, stalls, shrinkers: stalls.shrinker_numbers() }
    }

    /// Name of a stall in the text.
    pub fn name(&self, stall: Stall) -> String {
        let function = |address| self.labels.function(address);
        match stall {
            // They are numbered, since addresses are not printed.
            Stall::Shrinker(..) => match self.shrinkers.get(&stall) {
                Some((number, of)) if *of > 1 => format!("{} #{number}", name_of(stall, function)),
                _ => name_of(stall, function),
            },
            _ => name_of(stall, function),
        }
    }

    /// Number of a shrinker among those of the same function.
    pub fn shrinker_number(&self, stall: Stall) -> Option<usize> {
        self.shrinkers.get(&stall).map(|(number, _)| *number)
    }
}

/// Numbers of the shrinkers of each function, in the order in which they appear: addresses are not printed.
#[derive(Debug, Default)]
pub struct ShrinkerNumbers(HashMap<u64, HashMap<Option<u64>, usize>>);

/// Most shrinkers of a function that get a number: a file may name any number of them.
const NUMBERED_MAX: usize = 4_096;

impl ShrinkerNumbers {
    /// Number of a shrinker of a known function, from 1.
    pub fn number(&mut self, stall: Stall) -> Option<usize> {
        let Stall::Shrinker(Some(function), shrinker) = stall else { return None };
        let known = self.0.entry(function).or_default();
        let next = known.len() + 1;
        if next > NUMBERED_MAX {
            return known.get(&shrinker).copied();
        }
        Some(*known.entry(shrinker).or_insert(next))
    }
}

/// Name of a stall in the text; `function` names the function at an address. Shrinkers of one function are alike.
pub fn name_of(stall: Stall, function: impl Fn(u64) -> String) -> String {
    match stall {
        Stall::Direct => "direct reclaim".to_owned(),
        Stall::Memcg => "memory cgroup reclaim".to_owned(),
        Stall::SoftLimit => "memory cgroup reclaim, soft limit".to_owned(),
        Stall::Node => "node reclaim".to_owned(),
        Stall::DirectCompaction => "direct compaction".to_owned(),
        Stall::Compaction => "compaction in the background".to_owned(),
        Stall::Kswapd(Some(node)) => format!("kswapd of node {node} awake"),
        Stall::Kswapd(None) => "kswapd awake".to_owned(),
        Stall::Shrinker(None, _) => "shrinkers, function unknown".to_owned(),
        Stall::Shrinker(Some(address), _) => format!("shrinker {}", function(address)),
        Stall::Function(address) => format!("function {}", function(address)),
    }
}

/// Name of a stall in JSON.
pub fn key(stall: Stall) -> &'static str {
    match stall {
        Stall::Direct => "direct_reclaim",
        Stall::Memcg => "memcg_reclaim",
        Stall::SoftLimit => "memcg_softlimit_reclaim",
        Stall::Node => "node_reclaim",
        Stall::DirectCompaction => "direct_compaction",
        Stall::Compaction => "compaction",
        Stall::Kswapd(_) => "kswapd",
        Stall::Shrinker(..) => "shrinker",
        Stall::Function(_) => "function",
    }
}
