//! Sums of slab objects, pages and areas of one module, task or call site.

use serde::Serialize;

use crate::collect::area_groups::{AreaGroup, AreaGroupSums, AreaTotals};
use crate::collect::sums::Sums;
use crate::collect::{AreaGroups, AreaKind, Groups, Handle, PageGroups};
use crate::ledger::frames::NO_STACK;
use crate::ledger::page_totals::FrameTotals;
use crate::ledger::totals::Totals;
use crate::reports::common::ReportContext;
use crate::reports::common::recorded_sums::RecordedSums;
use crate::reports::grouped::{GroupKey, GroupPart, GroupTable, Grouping, Values};

/// Collectors of slab objects, pages, vmalloc areas and percpu allocations.
pub type MemoryHandles = (Handle<Groups>, Handle<PageGroups>, [Handle<AreaGroups>; 2]);

/// Memory of all groups.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MemoryRows {
    /// The groups.
    #[serde(flatten)]
    pub table: GroupTable<MemoryRow>,
    /// True if pages were allocated, and none of them has a stack.
    #[serde(skip)]
    pub pages_lack_stacks: bool,
}

/// Memory of one group. Slab objects are on pages, and pages of vmalloc are pages: kinds are not added up.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MemoryRow {
    /// Slab objects; `null`: not recorded.
    pub slab: Option<KindSums>,
    /// Pages; `null`: not recorded.
    pub pages: Option<KindSums>,
    /// vmalloc areas; `null`: not recorded.
    pub vmalloc: Option<KindSums>,
    /// Percpu allocations, on all CPUs; `null`: not recorded.
    pub percpu: Option<KindSums>,
}

/// Sums of one kind of memory.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct KindSums {
    /// Successful allocations.
    pub alloc_events: u64,
    /// Bytes allocated; `null`: not in the events.
    pub bytes_alloc: Option<u64>,
    /// Bytes still allocated at the end of the window; `null`: not in the events, or frees were not recorded.
    pub bytes_live: Option<u64>,
}

/// Sums of one group, by kind of memory.
#[derive(Debug, Default)]
struct MemorySums {
    slab: Totals,
    pages: FrameTotals,
    vmalloc: AreaTotals,
    percpu: AreaTotals,
}

impl MemorySums {
    /// Largest of its kinds: live or allocated bytes.
    fn largest(&self, is_live: bool, page_size: u64) -> u64 {
        let bytes = |frames: u64| frames.saturating_mul(page_size);
        let Self { slab, pages, vmalloc, percpu } = self;
        let all = match is_live {
            true => [slab.bytes_live, bytes(pages.frames_live), vmalloc.bytes_live, percpu.bytes_live],
            false => [slab.bytes_alloc, bytes(pages.frames_alloc), vmalloc.bytes_alloc, percpu.bytes_alloc],
        };
        all.into_iter().max().unwrap_or(0)
    }

    fn row(&self, context: &ReportContext<'_, '_>) -> MemoryRow {
        let (basis, page_size) = (context.basis(), context.analysis.page_size.0);
        let bytes = |frames: u64| frames.saturating_mul(page_size);
        let sums = |recorded: RecordedSums, alloc_events, alloc: u64, live: u64| KindSums {
            alloc_events,
            bytes_alloc: Some(alloc),
            bytes_live: recorded.lives.then_some(live),
        };
        let areas = |kind, totals: &AreaTotals| {
            let recorded = RecordedSums::areas(basis, kind);
            let is_sized = totals.unsized_events == 0;
            let sums = sums(recorded, totals.alloc_events, totals.bytes_alloc, totals.bytes_live);
            recorded.allocs.then(|| KindSums {
                bytes_alloc: sums.bytes_alloc.filter(|_| is_sized),
                bytes_live: sums.bytes_live.filter(|_| is_sized),
                ..sums
            })
        };
        let (slab, pages) = (RecordedSums::slab(basis, None), RecordedSums::pages(basis));
        let Self { slab: s, pages: p, vmalloc, percpu } = self;
        MemoryRow {
            slab: basis.allocs(None).then(|| sums(slab, s.alloc_events, s.bytes_alloc, s.bytes_live)),
            pages: pages
                .allocs
                .then(|| sums(pages, p.alloc_events, bytes(p.frames_alloc), bytes(p.frames_live))),
            vmalloc: areas(AreaKind::Vmalloc, vmalloc),
            percpu: areas(AreaKind::Percpu, percpu),
        }
    }
}

/// Groups by keys `by`, the largest first: by live memory at an instant, else by allocated memory.
pub fn compute(
    context: &ReportContext<'_, '_>,
    &(slab, pages, [vmalloc, percpu]): &MemoryHandles,
    by: &[&'static GroupKey],
) -> MemoryRows {
    let analysis = context.analysis;
    let values = Values::new(context);
    let mut groups: Grouping<'_, '_, MemorySums> = Grouping::new(by, &values, analysis);
    for (group, totals) in analysis.get(slab).iter().filter(|(_, sum)| **sum != Totals::default()) {
        let Some(site) = analysis.interner.sites.get(group.site) else { continue };
        groups.of(GroupPart::Slab(group, site)).slab += totals;
    }
    let pages = &analysis.get(pages).0;
    for (group, totals) in pages.iter().filter(|(_, sum)| !sum.has_no_pages()) {
        let Some(site) = analysis.interner.pages.get(group.site) else { continue };
        groups.of(GroupPart::Pages(group, site)).pages += totals;
    }
    for (group, totals) in areas(analysis.get(vmalloc)) {
        groups.of(GroupPart::Area(group)).vmalloc.absorb(*totals);
    }
    for (group, totals) in areas(analysis.get(percpu)) {
        groups.of(GroupPart::Area(group)).percpu.absorb(*totals);
    }
    let (page_size, is_live) = (analysis.page_size.0, context.selection.at.is_some());
    let largest = |sums: &MemorySums, ()| Some(sums.largest(is_live, page_size).into());
    MemoryRows {
        table: groups.table(&[()], largest, context.limit, |sums| sums.row(context)),
        pages_lack_stacks: !pages.is_empty() && pages.keys().all(|group| group.stack == NO_STACK),
    }
}

/// Areas with their sums.
fn areas(sums: &AreaGroupSums) -> impl Iterator<Item = (&AreaGroup, &AreaTotals)> {
    sums.groups.iter().filter(|(_, totals)| **totals != AreaTotals::default())
}
