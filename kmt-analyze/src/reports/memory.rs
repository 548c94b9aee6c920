//! `memory`: slab objects, pages, vmalloc areas and percpu allocations beside each other, by module, task or cgroup.
//!
//! Four kinds of sums are joined under one name here; other reports have one kind each. Rows and screen are here.

use kmt_format::schema::Meaning;
use serde::Serialize;

use crate::collect::groups::{AreaGroup, AreaGroupSums, AreaTotals};
use crate::collect::sums::Sums;
use crate::collect::{AreaGroups, AreaKind, Collectors, Groups, Handle, PageGroups};
use crate::failure::Result;
use crate::ledger::frames::NO_STACK;
use crate::ledger::totals::{FrameTotals, Totals};
use crate::pass::Needs;
use crate::render::screen::{Cell, Column, CommandLine, Screen};
use crate::render::words::counted;
use crate::reports::common::basis::Input;
use crate::reports::common::rows::RecordedSums;
use crate::reports::common::stated::Keys;
use crate::reports::common::{Context, ReportContext, View};
use crate::reports::grouped::{GroupKey, GroupPart, GroupTable, Grouping, Values};
use crate::reports::report::Report;

/// All kinds of memory by any key that they share.
#[derive(Debug, clap::Args)]
pub struct MemoryReport {
    /// Group by these keys: call_site, function, line, file, dir, subsystem, module, task, comm, cgroup, cpu. Pages and
    /// vmalloc areas have call sites where their stacks were recorded. Several keys: a row for each combination
    #[arg(long, value_name = "GROUP", value_delimiter = ',', value_parser = GroupKey::parse_areas)]
    #[arg(default_value = "module")]
    by: Vec<&'static GroupKey>,
}

impl Report for MemoryReport {
    type Handles = MemoryHandles;
    type Rows = MemoryRows;

    const NAME: &'static str = "memory";
    const TITLE: &'static str = "all kinds of memory";
    const ABOUT: &'static str = "Slab, pages, vmalloc, percpu by module, task or cgroup";
    const RESTS_ON: Input = Input::Allocs;
    const KEYS: Keys = Keys::Tasks;

    fn adds_sums(&self) -> bool {
        !self.by.iter().any(|key| key.is_of_tasks())
    }

    fn needs(&self) -> Needs {
        self.by.iter().map(|key| key.needs()).collect()
    }

    fn check(&self, context: &Context<'_, '_>) -> Result<()> {
        self.by.iter().try_for_each(|key| key.check(context.session))
    }

    fn refuses(&self, context: &ReportContext<'_, '_>) -> Option<String> {
        let has_areas = [AreaKind::Vmalloc, AreaKind::Percpu].map(|kind| context.basis().areas(kind)[0]);
        context.basis().lacks(self.rests_on()).filter(|_| !has_areas.contains(&true))
    }

    fn collect(&self, _: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        let areas = [AreaKind::Vmalloc, AreaKind::Percpu];
        (
            collectors.add(Groups),
            collectors.add(PageGroups),
            areas.map(|kind| collectors.add(AreaGroups(kind))),
        )
    }

    /// Groups by keys `by`, the largest first: by live memory at an instant, else by allocated memory.
    fn compute(&self, context: &ReportContext<'_, '_>, handles: &Self::Handles) -> Self::Rows {
        let &(slab, pages, [vmalloc, percpu]) = handles;
        let analysis = context.analysis;
        let values = Values::new(context);
        let mut groups: Grouping<'_, '_, MemorySums> = Grouping::new(&self.by, &values, analysis);
        for (group, totals) in analysis.get(slab).iter().filter(|(_, sum)| **sum != Totals::default()) {
            let Some(site) = analysis.interner.sites.get(group.site) else { continue };
            groups.of(GroupPart::Slab(group, site)).slab += totals;
        }
        let pages = &analysis.get(pages).0;
        let pages_are_unknown = are_pages_unknown(context);
        for (group, totals) in pages.iter().filter(|(_, sum)| !pages_are_unknown && !sum.has_no_pages()) {
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
            shown: MemoryShown {
                pages_lack_stacks: !pages_are_unknown
                    && !pages.is_empty()
                    && pages.keys().all(|group| group.stack == NO_STACK),
                pages_are_unknown,
            },
        }
    }

    /// Memory of all kinds by group.
    fn screen(&self, rows: &Self::Rows, view: &View) -> Screen {
        let table = &rows.table;
        if table.groups_total == 0 {
            return Screen::new("No memory was allocated, or the selection leaves none.");
        }
        let nouns = table.nouns();
        let groups = counted(table.groups_total as u64, nouns.one, nouns.several);
        let mut screen = Screen::new(format!("Memory of {groups}, the largest first."));
        if let Some((phrase, row)) = table.first_known() {
            let parts = [("slab objects", row.slab), ("pages", row.pages), ("vmalloc areas", row.vmalloc)];
            let part = |(what, sums): (&str, Option<KindSums>)| {
                let bytes = sums?.bytes_alloc.filter(|&bytes| bytes > 0)?;
                Some(format!("{} of {what}", view.bytes(bytes)))
            };
            let parts: Vec<String> = parts.into_iter().filter_map(part).collect();
            if !parts.is_empty() {
                screen.answer(format!("{phrase}: {} allocated.", parts.join(", ")));
            }
        }
        let is_recorded = |of: fn(&MemoryRow) -> Option<KindSums>| {
            table.groups.iter().any(|group| of(&group.row).is_some())
        };
        let kinds: Vec<_> = KINDS.into_iter().filter(|kind| is_recorded(kind.2)).collect();
        let columns: Vec<Column> =
            kinds.iter().flat_map(|(allocated, live, _)| [allocated.clone(), live.clone()]).collect();
        screen.table(table.table(columns, |row| {
            let cells = kinds.iter().flat_map(|(.., of)| {
                let sums = of(row);
                [Cell::bytes(sums.and_then(|s| s.bytes_alloc)), Cell::bytes(sums.and_then(|s| s.bytes_live))]
            });
            cells.collect()
        }));
        screen.note(
            "Slab objects are on pages, and so is memory of vmalloc and percpu areas: do not add up the columns.",
        );
        if rows.shown.pages_lack_stacks && table.by.iter().any(|key| key.needs_stacks()) {
            screen.note("Pages have no call sites here: the recording has no stacks of pages.");
            screen.next(
                CommandLine::recording("--stack kmem:mm_page_alloc"),
                "a recording with call sites of pages",
            );
        }
        if rows.shown.pages_are_unknown {
            screen
                .note("Pages are unknown: the sums of objects that died young have no stacks. See `pages`.");
        }
        screen.next("summary", "totals of all memory");
        if table.by.iter().all(|key| key.name != "call_site") {
            let keys: String = table.by.iter().map(|key| format!("{},", key.name)).collect();
            screen.next(
                CommandLine::from("memory").option("--by", format!("{keys}call_site")),
                "call sites of each",
            );
        }
        screen
    }
}

/// Collectors of slab objects, pages, vmalloc areas and percpu allocations.
pub type MemoryHandles = (Handle<Groups>, Handle<PageGroups>, [Handle<AreaGroups>; 2]);

/// Memory of all groups.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MemoryRows {
    /// The groups.
    #[serde(flatten)]
    pub table: GroupTable<MemoryRow>,
    /// Facts that only the screen has.
    #[serde(skip)]
    shown: MemoryShown,
}

/// Facts that only the screen has.
#[derive(Debug)]
struct MemoryShown {
    /// True if pages were allocated, and none of them has a stack.
    pages_lack_stacks: bool,
    /// True if pages have stacks, and those that are in sums have none.
    pages_are_unknown: bool,
}

/// True if pages have stacks, and those that are in sums have none: a group may have more pages than its events show.
fn are_pages_unknown(context: &ReportContext<'_, '_>) -> bool {
    context.session.trace.header().folded && context.recorded(Meaning::KERNEL_STACK) == Some(true)
}

/// Memory of one group. Slab objects are on pages, and pages of vmalloc are pages: kinds are not added up.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MemoryRow {
    /// Slab objects; `null`: not recorded.
    pub slab: Option<KindSums>,
    /// Pages; `null`: not recorded, or the sums of objects that died young lack their stacks.
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
        let has_pages = pages.allocs && !are_pages_unknown(context);
        let Self { slab: s, pages: p, vmalloc, percpu } = self;
        MemoryRow {
            slab: basis.allocs(None).then(|| sums(slab, s.alloc_events, s.bytes_alloc, s.bytes_live)),
            pages: has_pages
                .then(|| sums(pages, p.alloc_events, bytes(p.frames_alloc), bytes(p.frames_live))),
            vmalloc: areas(AreaKind::Vmalloc, vmalloc),
            percpu: areas(AreaKind::Percpu, percpu),
        }
    }
}

/// Areas with their sums.
fn areas(sums: &AreaGroupSums) -> impl Iterator<Item = (&AreaGroup, &AreaTotals)> {
    sums.groups.iter().filter(|(_, totals)| **totals != AreaTotals::default())
}

/// Columns of allocated and live bytes, and their sums in a row.
type Kind = (Column, Column, fn(&MemoryRow) -> Option<KindSums>);

/// All kinds; one that was not recorded has no columns.
const KINDS: [Kind; 4] = [
    (Column::number("slab"), Column::number("slab live").leaves(1), |row| row.slab),
    (Column::number("pages"), Column::number("pages live").leaves(2), |row| row.pages),
    (Column::number("vmalloc").leaves(4), Column::number("vmalloc live").leaves(3), |row| row.vmalloc),
    (Column::number("percpu").leaves(6), Column::number("percpu live").leaves(5), |row| row.percpu),
];
