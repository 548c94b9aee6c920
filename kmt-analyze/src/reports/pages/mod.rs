//! `pages`: page allocations by order, migrate type and flags, and by call site where stacks were recorded.
//!
//! Sums by order, migrate type and flags are those that each pass has; `PageGroups` has those by stack, for call sites and
//! `--by`. Rows are made here, the screen in `text`.

mod callers;
mod text;

use callers::{PAGE_SUMS, PageCallerRow, number};

use std::collections::BTreeMap;

use kmt_format::schema::Meaning;
use serde::Serialize;

use crate::collect::groups::PageGroupSums;
use crate::collect::{Collectors, Handle, PageGroups, PageStacks};
use crate::failure::Result;
use crate::ledger::totals::FrameTotals;
use crate::pass::selection::Selection;
use crate::pass::{Analysis, Needs};
use crate::render::screen::Screen;
use crate::render::words::escaped;
use crate::reports::common::basis::Input;
use crate::reports::common::page_sums::PageSums;
use crate::reports::common::rows::{FrameSums, RecordedSums};
use crate::reports::common::sorting::{SortKey, sort_keys, sort_rows};
use crate::reports::common::stated::Keys;
use crate::reports::common::{Context, ReportContext, View};
use crate::reports::grouped::{GroupKey, GroupPart, GroupTable, Grouping, Values};
use crate::reports::report::Report;
use crate::stream::{GfpFlags, NO_GFP, known_gfp};

/// Page allocations by their properties and by call site.
#[derive(Debug, Default, clap::Args)]
pub struct Pages {
    /// Group by these keys: order, migratetype, gfp, task, comm, cgroup, cpu, and where stacks were recorded call_site, function,
    /// line, file, dir, subsystem, module. Several keys: a row for each combination
    #[arg(long, value_name = "GROUP", value_delimiter = ',', value_parser = GroupKey::parse_pages)]
    by: Vec<&'static GroupKey>,
    /// Sort by these columns, the most important first [default: pages; with --at: live_pages]
    #[arg(short, long, value_parser = sort_keys(PAGE_SUMS), value_name = "KEY", value_delimiter = ',')]
    sort: Vec<SortKey>,
    /// Below each call site show the functions of the allocator that it called
    #[arg(short, long, conflicts_with = "by")]
    verbose: bool,
}

impl Report for Pages {
    type Handles = (Handle<PageStacks>, Option<Handle<PageGroups>>);
    type Rows = PageRows;

    const NAME: &'static str = "pages";
    const ABOUT: &'static str = "Pages by call site, order, migrate type and flags";
    const RESTS_ON: Input = Input::Pages;
    const KEYS: Keys = Keys::Pages;

    fn for_selection(mut self, selection: &Selection) -> Self {
        if self.sort.is_empty() && selection.at.is_some() {
            self.sort.push(SortKey::LivePages);
        }
        self
    }

    fn adds_sums(&self) -> bool {
        !self.by.iter().any(|key| key.is_of_tasks() || key.needs_stacks())
    }

    fn refuses(&self, context: &ReportContext<'_, '_>) -> Option<String> {
        let has_stacks = context.recorded(Meaning::KERNEL_STACK) == Some(true);
        let key = self.by.iter().find(|key| key.needs_stacks() && !has_stacks);
        context.basis().lacks(self.rests_on()).or_else(|| {
            Some(format!("their {} are unknown: record with --stack kmem:mm_page_alloc", key?.nouns.several))
        })
    }

    fn needs(&self) -> Needs {
        Needs::EVENT_COUNTS | Needs::FLAG_NAMES | self.by.iter().map(|key| key.needs()).collect()
    }

    fn check(&self, context: &Context<'_, '_>) -> Result<()> {
        self.by.iter().try_for_each(|key| key.check(context.session))
    }

    fn collect(&self, _: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        let groups = (!self.by.is_empty()).then(|| collectors.add(PageGroups));
        (collectors.add(PageStacks), groups)
    }

    /// Rows of a trace.
    fn compute(&self, context: &ReportContext<'_, '_>, handles: &Self::Handles) -> PageRows {
        let analysis = context.analysis;
        let is_recorded = context.recorded(Meaning::PAGE_ALLOC) == Some(true)
            || context.recorded(Meaning::PAGE_FREE) == Some(true);
        if !is_recorded {
            return PageRows { pages: None };
        }
        let recorded = RecordedSums::pages(context.basis());
        let (keys, stacks) = (self.sort.as_slice(), &analysis.get(handles.0).stacks);
        let is_folded = context.session.trace.header().folded;
        let order = unless_given(keys);
        let tables = PageTables {
            all: PageSums::of(analysis, recorded),
            by_order_and_migratetype: by_type(analysis, recorded, keys),
            by_gfp_flags: by_flags(analysis, recorded, keys),
            // Events of survivors alone would make call sites of young pages look small.
            callers: if is_folded { Vec::new() } else { callers::compute(context, stacks, recorded, order) },
            other_events: other_events(context),
            groups: handles.1.map(|sums| groups(context, analysis.get(sums), &self.by, order)),
        };
        PageRows { pages: Some(tables) }
    }

    fn screen(&self, rows: &PageRows, view: &View) -> Screen {
        text::screen(self, rows, view)
    }
}

/// Groups by keys `by`, sorted by keys `order`.
fn groups(
    context: &ReportContext<'_, '_>,
    sums: &PageGroupSums,
    by: &[&'static GroupKey],
    order: &[SortKey],
) -> GroupTable<FrameSums> {
    let analysis = context.analysis;
    let values = Values::new(context);
    let mut groups = Grouping::new(by, &values, analysis);
    for (group, totals) in sums.0.iter().filter(|(_, totals)| **totals != FrameTotals::default()) {
        let Some(site) = analysis.interner.pages.get(group.site) else { continue };
        let sum: &mut FrameTotals = groups.of(GroupPart::Pages(group, site));
        *sum += totals;
    }
    let recorded = RecordedSums::pages(context.basis());
    let row = |totals: &FrameTotals| FrameSums::of(totals, analysis.page_size.0, recorded);
    groups.table(order, |totals, key: SortKey| number(key, totals), context.limit, row)
}

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageRows {
    /// Sums of pages; `null`: no page event was recorded.
    pub pages: Option<PageTables>,
}

/// Sums of all pages, and of each kind of allocation.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageTables {
    /// All pages.
    #[serde(flatten)]
    pub all: PageSums,
    /// By requested order and migrate type.
    pub by_order_and_migratetype: Vec<PageTypeRow>,
    /// By allocation flags.
    pub by_gfp_flags: Vec<PageFlagsRow>,
    /// By the first function in the stack outside the allocator; empty without stacks, which sums of objects that died young do
    /// not have.
    pub callers: Vec<PageCallerRow>,
    /// Counts of other events of the page allocator, by name.
    pub other_events: BTreeMap<String, u64>,
    /// Groups of --by.
    #[serde(flatten)]
    pub groups: Option<GroupTable<FrameSums>>,
}

/// Sums of one order and migrate type.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageTypeRow {
    /// Sums of its pages.
    #[serde(flatten)]
    pub sums: FrameSums,
    /// log2 of the pages of an allocation.
    pub order: u8,
    /// The kernel's number of the migrate type.
    pub migratetype: i32,
    /// Name of the migrate type.
    pub migratetype_text: String,
}

/// Sums of one value of gfp_flags.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageFlagsRow {
    /// Sums of its pages.
    #[serde(flatten)]
    pub sums: FrameSums,
    /// The flags; `null`: the events have none.
    pub gfp_flags: Option<u64>,
    /// Names of the flags, or `unknown`.
    pub gfp_flags_text: String,
    /// True if they have __GFP_NOWARN or __GFP_NORETRY: the caller expects failures; also if they are unknown.
    pub expects_failures: bool,
}

/// Flags of callers that expect failures.
const EXPECTED: GfpFlags = GfpFlags::NOWARN.union(GfpFlags::NORETRY);

/// The order of tables without one of their own: by pages, unless keys are given.
fn unless_given(keys: &[SortKey]) -> &[SortKey] {
    if keys.is_empty() { &[SortKey::Pages] } else { keys }
}

fn by_type(analysis: &Analysis, recorded: RecordedSums, keys: &[SortKey]) -> Vec<PageTypeRow> {
    let mut sums: BTreeMap<(u8, i32), FrameTotals> = BTreeMap::new();
    for (site, totals) in analysis.interner.pages.items().iter().zip(&analysis.balance.frames.sites) {
        *sums.entry((site.order, site.migratetype)).or_default() += totals;
    }
    sums.retain(|_, totals| *totals != FrameTotals::default());
    let row = |((order, migratetype), totals): ((u8, i32), FrameTotals)| PageTypeRow {
        sums: FrameSums::of(&totals, analysis.page_size.0, recorded),
        order,
        migratetype,
        migratetype_text: analysis.migratetypes.name(migratetype),
    };
    let mut sums: Vec<_> = sums.into_iter().collect();
    sort_rows(&mut sums, keys, |(_, totals), key| number(key, totals), |a, b| a.0.cmp(&b.0));
    sums.into_iter().map(row).collect()
}

fn by_flags(analysis: &Analysis, recorded: RecordedSums, keys: &[SortKey]) -> Vec<PageFlagsRow> {
    let mut sums: BTreeMap<u64, FrameTotals> = BTreeMap::new();
    for (site, totals) in analysis.interner.pages.items().iter().zip(&analysis.balance.frames.sites) {
        *sums.entry(site.gfp_flags).or_default() += totals;
    }
    sums.retain(|_, totals| *totals != FrameTotals::default());
    let row = |(gfp_flags, totals): (u64, FrameTotals)| PageFlagsRow {
        sums: FrameSums::of(&totals, analysis.page_size.0, recorded),
        gfp_flags: known_gfp(gfp_flags),
        gfp_flags_text: escaped(&analysis.interner.gfp_text(gfp_flags)),
        expects_failures: gfp_flags == NO_GFP || analysis.interner.gfp(gfp_flags).intersects(EXPECTED),
    };
    let mut sums: Vec<_> = sums.into_iter().collect();
    sort_rows(&mut sums, keys, |(_, totals), key| number(key, totals), |a, b| a.0.cmp(&b.0));
    sums.into_iter().map(row).collect()
}

/// Events of the page allocator other than allocations and frees: per-CPU lists, fallbacks.
fn other_events(context: &ReportContext<'_, '_>) -> BTreeMap<String, u64> {
    let (session, analysis) = (context.session, context.analysis);
    let mut counts = BTreeMap::new();
    for &(class, _, number) in &analysis.event_counts {
        let Some(class) = session.trace.schema().class(class as usize) else { continue };
        let is_page = class.system == "kmem" && class.name.starts_with("mm_");
        if is_page && !matches!(class.meaning, Meaning::PAGE_ALLOC | Meaning::PAGE_FREE) {
            *counts.entry(class.name.clone()).or_insert(0) += number;
        }
    }
    counts
}
