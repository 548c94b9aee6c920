//! Sums of areas by the keys of `--by`, and the kernel's own counts.

use serde::Serialize;

use super::allocators::Allocator;
use super::percpu::{self, PercpuLine};
use super::sorting::number;
use super::vmallocinfo::{self, VmallocInfoChange};
use crate::collect::AreaKind;
use crate::collect::area_groups::{AreaGroupSums, AreaTotals};
use crate::collect::sums::Sums;
use crate::ledger::frames::NO_STACK;
use crate::reports::common::ReportContext;
use crate::reports::common::recorded_sums::RecordedSums;
use crate::reports::common::sorting::SortKey;
use crate::reports::grouped::{GroupKey, GroupPart, GroupTable, Grouping, Values};
use crate::trace::cpu_nodes;

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AreaRows {
    /// Areas of the allocator.
    pub areas: AreaTables,
}

/// Sums of areas, beside the kernel's own counts.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AreaTables {
    /// Sums of all areas.
    pub total: AreaSums,
    /// Frees without an allocation in the trace: allocated before it, or without an event. `null`: frees were not
    /// recorded.
    pub frees_unmatched: Option<u64>,
    /// Groups of --by.
    #[serde(flatten)]
    pub groups: GroupTable<AreaSums>,
    /// Change of /proc/vmallocinfo; absent: not of this allocator, not read twice, or with a selection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vmallocinfo: Option<VmallocInfoChange>,
    /// The line Percpu of /proc/meminfo: pages of the percpu allocator, used or not; absent: not of this allocator, or not
    /// read twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percpu: Option<PercpuLine>,
    /// True if the number of CPUs is unknown, and bytes of percpu allocations are those of the events.
    #[serde(skip)]
    pub are_bytes_of_events: bool,
    /// True if an area has a call site: in its event, or of a stack.
    #[serde(skip)]
    pub have_call_sites: bool,
}

/// Sums of some areas; `null`: the events of the number were not recorded, or do not have it.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AreaSums {
    /// Successful allocations.
    pub alloc_events: u64,
    /// Failed allocations.
    pub alloc_failures: u64,
    /// Bytes requested: of each CPU for the percpu allocator, with the guard page for vmalloc.
    pub bytes_req: u64,
    /// Bytes allocated: on all CPUs for the percpu allocator. vmalloc: addresses, which may have no pages (ioremap, vmap).
    /// `null`: unknown (percpu before 5.19, where the number of CPUs is not in the file).
    pub bytes_alloc: Option<u64>,
    /// Areas that were freed.
    pub frees_matched: Option<u64>,
    /// Bytes of areas that were freed.
    pub bytes_freed: Option<u64>,
    /// Implied frees: the address was allocated again, and no free event was recorded.
    pub freed_unseen: Option<u64>,
    /// Areas still allocated at the end of the window.
    pub live: Option<u64>,
    /// Bytes of areas still allocated at the end of the window.
    pub bytes_live: Option<u64>,
    /// Bytes requested for areas still allocated at the end of the window.
    pub bytes_req_live: Option<u64>,
    /// Areas whose life crosses a loss.
    pub uncertain: u64,
}

impl AreaSums {
    fn of(totals: &AreaTotals, recorded: RecordedSums) -> Self {
        let is_sized = totals.unsized_events == 0;
        let frees = |number: u64| recorded.frees.then_some(number);
        let lives = |number: u64| recorded.lives.then_some(number);
        Self {
            alloc_events: totals.alloc_events,
            alloc_failures: totals.alloc_failures,
            bytes_req: totals.bytes_req,
            bytes_alloc: is_sized.then_some(totals.bytes_alloc),
            frees_matched: frees(totals.freed),
            bytes_freed: frees(totals.bytes_freed).filter(|_| is_sized),
            freed_unseen: frees(totals.implied_frees),
            live: lives(totals.live),
            bytes_live: lives(totals.bytes_live).filter(|_| is_sized),
            bytes_req_live: lives(totals.bytes_req_live),
            uncertain: totals.uncertain,
        }
    }
}

/// Rows of a trace.
pub fn compute<A: Allocator>(
    context: &ReportContext<'_, '_>,
    sums: &AreaGroupSums,
    by: &[&'static GroupKey],
    order: &[SortKey],
) -> AreaRows {
    let recorded = RecordedSums::areas(context.basis(), A::KIND);
    let values = Values::new(context);
    let mut groups = Grouping::new(by, &values, context.analysis);
    for (group, totals) in &sums.groups {
        let sum: &mut AreaTotals = groups.of(GroupPart::Area(group));
        sum.absorb(*totals);
    }
    let row = |totals: &AreaTotals| AreaSums::of(totals, recorded);
    let mut total = AreaTotals::default();
    sums.groups.values().for_each(|totals| total.absorb(*totals));
    let is_percpu = A::KIND == AreaKind::Percpu;
    let areas = AreaTables {
        total: AreaSums::of(&total, recorded),
        frees_unmatched: recorded.frees.then_some(sums.frees_unmatched),
        groups: groups.table(order, |totals, key: SortKey| number(key, totals), context.limit, row),
        vmallocinfo: if is_percpu { None } else { vmallocinfo::compute(context, sums) },
        percpu: if is_percpu { percpu::compute(context) } else { None },
        are_bytes_of_events: is_percpu && cpu_nodes::possible(context.session.trace.metadata()).is_none(),
        have_call_sites: sums.groups.keys().any(|group| group.call_site != 0 || group.stack != NO_STACK),
    };
    AreaRows { areas }
}
