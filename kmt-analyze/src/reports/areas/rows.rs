//! Sums of areas by the keys of `--by`, and the kernel's own counts.
//!
//! The two allocators, with their nouns and events, and the order of rows are here too: rows of both reports are made alike.

use std::fmt::Debug;

use serde::Serialize;

use super::vmallocinfo::{self, PercpuLine, VmallocInfoChange};
use crate::collect::AreaKind;
use crate::collect::groups::{AreaGroupSums, AreaTotals};
use crate::collect::sums::Sums;
use crate::ledger::frames::NO_STACK;
use crate::reports::common::ReportContext;
use crate::reports::common::rows::RecordedSums;
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
    #[serde(skip)]
    pub shown: AreasShown,
}

/// Facts that only the screen has.
#[derive(Debug)]
pub struct AreasShown {
    /// True if the number of CPUs is unknown, and bytes of percpu allocations are those of the events.
    pub are_bytes_of_events: bool,
    /// True if an area has a call site: in its event, or of a stack.
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
        vmallocinfo: if is_percpu { None } else { vmallocinfo::vmallocinfo(context, sums) },
        percpu: if is_percpu { vmallocinfo::percpu(context) } else { None },
        shown: AreasShown {
            are_bytes_of_events: is_percpu && cpu_nodes::possible(context.session.trace.metadata()).is_none(),
            have_call_sites: sums.groups.keys().any(|group| group.call_site != 0 || group.stack != NO_STACK),
        },
    };
    AreaRows { areas }
}

/// Names that sort areas.
pub const AREA_SUMS: &[SortKey] = &[
    SortKey::Count,
    SortKey::Failed,
    SortKey::Req,
    SortKey::Alloc,
    SortKey::Freed,
    SortKey::LiveAreas,
    SortKey::Live,
    SortKey::Uncertain,
    SortKey::Name,
];

/// Number of these sums; the larger one is the first. `None`: the name.
fn number(key: SortKey, sums: &AreaTotals) -> Option<u128> {
    let with = |first: u64, second: u64| Some(u128::from(first) << 64 | u128::from(second));
    match key {
        SortKey::Count => with(sums.alloc_events, 0),
        SortKey::Failed => with(sums.alloc_failures, 0),
        SortKey::Req => with(sums.bytes_req, 0),
        SortKey::Alloc => with(sums.bytes_alloc, sums.bytes_req),
        SortKey::Freed => with(sums.bytes_freed, sums.freed),
        SortKey::LiveAreas => with(sums.live, 0),
        SortKey::Live => with(sums.bytes_live, sums.bytes_req_live),
        SortKey::Uncertain => with(sums.uncertain, 0),
        _ => None,
    }
}

/// An allocator of areas.
pub trait Allocator: Debug + Send + Sync + 'static {
    /// Kind of the allocator's events.
    const KIND: AreaKind;
    /// The command.
    const NAME: &'static str;
    /// Heading in the text of `all`.
    const TITLE: &'static str;
    /// Description in the list of commands.
    const ABOUT: &'static str;
    /// Areas of the allocator in sentences: one, several.
    const NOUNS: [&'static str; 2];
}

/// vmalloc, vmap, ioremap, kernel stacks.
#[derive(Debug)]
pub struct Vmalloc;

/// The percpu allocator.
#[derive(Debug)]
pub struct Percpu;

impl Allocator for Vmalloc {
    const KIND: AreaKind = AreaKind::Vmalloc;
    const NAME: &'static str = "vmalloc";
    const TITLE: &'static str = "vmalloc areas";
    const ABOUT: &'static str = "vmalloc areas by call site, beside /proc/vmallocinfo";
    const NOUNS: [&'static str; 2] = ["vmalloc area", "vmalloc areas"];
}

impl Allocator for Percpu {
    const KIND: AreaKind = AreaKind::Percpu;
    const NAME: &'static str = "percpu";
    const TITLE: &'static str = "percpu allocations";
    const ABOUT: &'static str = "Percpu allocations by call site, beside /proc/meminfo";
    const NOUNS: [&'static str; 2] = ["percpu allocation", "percpu allocations"];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_sorts_by_its_heading() {
        let headings = super::super::SUMS.iter().map(|column| column.heading).chain(["uncertain"]);
        for heading in headings {
            let key = SortKey::named(&heading.replace(' ', "_"));
            assert!(key.is_some_and(|key| AREA_SUMS.contains(&key)), "{heading}");
        }
    }
}
