//! Rows of `latency`: stalls, the allocations that waited, and reclaim by task.
//!
//! They are made of the sums of the collector `Stalls`. Allocations that waited come with their stack and flags.

use serde::Serialize;

use super::compactors;
use super::intervals::{self, LongIntervals};
use super::kinds::{self, ShrinkerFunction, StallKind};
use super::tasks::{self, ReclaimTask, Recorded};
use super::tracepoints::{StallNames, key};
use crate::collect::stalls::{Compactors, Delayed, StallSums, Waits};
use crate::pass::Analysis;
use crate::render::words::escaped;
use crate::reports::common::ReportContext;
use crate::reports::common::rows::Address;
use crate::sort_rows::SortRows;

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LatencyRows {
    /// Times that tasks waited.
    pub latency: LatencyTables,
    #[serde(skip)]
    pub shown: LatencyShown,
}

/// Facts that only the screen has.
#[derive(Debug)]
pub struct LatencyShown {
    /// The outermost intervals with the events of their tasks, where a threshold was given.
    pub long_intervals: Option<LongIntervals>,
    /// Allocations that failed after a wait.
    pub failed_allocations: u64,
    /// Only names tell kernel threads from tasks that compact for their own allocations.
    pub guesses_compactors: bool,
}

/// Times that tasks waited.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LatencyTables {
    /// Stalls by kind.
    pub kinds: Vec<StallKind>,
    /// Shrinkers by function.
    pub shrinker_functions: Vec<ShrinkerFunction>,
    /// Number of kinds of allocations that waited.
    pub delayed_allocations_total: usize,
    /// Allocations that waited.
    pub delayed_allocations: Vec<DelayedAllocation>,
    /// Number of tasks.
    pub tasks_total: usize,
    /// Reclaim by task.
    pub tasks: Vec<ReclaimTask>,
    /// Events that were not recorded.
    pub not_recorded: Vec<&'static str>,
    /// Ends without a begin, which was before the trace or lost; no sum includes them.
    pub ends_without_begin: u64,
    /// Begins without an end; no sum includes them.
    pub begins_without_end: u64,
    /// Stalls that no allocation of their task followed.
    pub stalls_without_allocation: u64,
    /// Intervals at least this long are listed, in the clock's unit; `null`: none are.
    pub threshold: Option<u64>,
    /// Intervals of that length.
    pub intervals: Vec<IntervalRow>,
    /// Intervals of that length beyond the limit of the list.
    pub intervals_left_out: u64,
}

/// One interval.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct IntervalRow {
    /// Name of the stall in the text.
    pub kind: String,
    /// Thread id.
    pub pid: i32,
    /// CPU.
    pub cpu: u32,
    /// Time of its begin.
    pub begin: u64,
    /// Time of its end.
    pub end: u64,
    /// Length of the interval, in the clock's unit.
    pub length: u64,
}

/// Rows of a trace.
pub fn compute(context: &ReportContext<'_, '_>, stalls: &StallSums, threshold: Option<u64>) -> LatencyRows {
    let analysis = context.analysis;
    let recorded = Recorded::of(context);
    let labels = context.labels();
    let names = StallNames::new(labels, stalls);
    let (delayed_allocations, delayed_allocations_total) = delayed(&names, analysis, context.limit);
    let (tasks, tasks_total) = tasks::compute(stalls, labels, &recorded, context.limit);
    let interval = |i: &crate::collect::stalls::Interval| IntervalRow {
        kind: names.name(i.stall),
        pid: i.pid,
        cpu: i.cpu,
        begin: i.begin,
        end: i.end,
        length: i.end.saturating_sub(i.begin),
    };
    let tables = LatencyTables {
        kinds: kinds::compute(&names),
        shrinker_functions: kinds::by_function(&names),
        delayed_allocations_total,
        delayed_allocations,
        tasks_total,
        tasks,
        not_recorded: recorded.missing(),
        ends_without_begin: stalls.ends_without_begin,
        begins_without_end: stalls.begins_without_end,
        stalls_without_allocation: stalls.without_allocation,
        threshold,
        intervals: stalls.intervals.iter().map(interval).collect(),
        intervals_left_out: stalls.intervals_left_out,
    };
    let has_direct = tables.kinds.iter().any(|kind| kind.kind == "direct_compaction");
    let shown = LatencyShown {
        long_intervals: threshold.map(|_| intervals::compute(context, &names, recorded.graph)),
        failed_allocations: stalls.delayed.iter().filter(|(d, _)| d.failed).map(|(_, w)| w.count).sum(),
        guesses_compactors: has_direct && compactors(context.session) != Compactors::Announced,
    };
    LatencyRows { latency: tables, shown }
}

/// Allocations of one kind that waited.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DelayedAllocation {
    /// Stall that they waited for, as in `kinds`.
    pub kind: &'static str,
    /// log2 of the pages of an allocation.
    pub order: u8,
    /// Requested migrate type.
    pub migratetype: String,
    /// Allocation flags.
    pub gfp_flags: u64,
    /// Names of the allocation flags.
    pub gfp_flags_text: String,
    /// Call site of the slab allocation that needed the pages; `null`: none found.
    pub call_site: Option<Address>,
    /// Function and offset of that call site.
    pub symbol: Option<String>,
    /// They failed after the wait.
    pub failed: bool,
    /// Number of waits.
    pub count: u64,
    /// Sum of their waits, in the clock's unit.
    pub total: u64,
    /// Longest wait, in the clock's unit.
    pub max: u64,
}

/// Allocations that waited, the longest waits first, at most `limit`; and the number of all.
fn delayed(
    names: &StallNames<'_, '_, '_>,
    analysis: &Analysis,
    limit: usize,
) -> (Vec<DelayedAllocation>, usize) {
    let mut all: Vec<(Delayed, Waits)> = names.stalls.delayed.iter().map(|(d, w)| (*d, *w)).collect();
    all.sort_rows_by_key(|(delayed, waits)| (std::cmp::Reverse(waits.total), *delayed));
    let interner = &analysis.interner;
    let row = |(delayed, waits): &(Delayed, Waits)| {
        let pages = interner.pages.get(delayed.page_site).copied().unwrap_or_default();
        let slab = delayed.slab_site.and_then(|site| interner.sites.get(site));
        DelayedAllocation {
            kind: key(delayed.stall),
            order: pages.order,
            migratetype: analysis.migratetypes.name(pages.migratetype),
            gfp_flags: pages.gfp_flags,
            gfp_flags_text: escaped(&interner.gfp_text(pages.gfp_flags)),
            call_site: slab.map(|site| Address(site.call_site)),
            symbol: slab.map(|site| names.labels.symbol(site.call_site)),
            failed: delayed.failed,
            count: waits.count,
            total: waits.total,
            max: waits.max,
        }
    };
    (all.iter().take(limit).map(row).collect(), all.len())
}
