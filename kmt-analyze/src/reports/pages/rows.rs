//! Sums of pages by order and migrate type, by flags, by call site.

use std::collections::{BTreeMap, HashMap};

use kmt_format::schema::Meaning;
use serde::Serialize;

use super::callers::{self, PageCallerRow};
use super::sorting::number;
use crate::int_hash::IntHash;
use crate::ledger::page_totals::FrameTotals;
use crate::pass::Analysis;
use crate::render::words::escaped;
use crate::reports::common::ReportContext;
use crate::reports::common::page_sums::PageSums;
use crate::reports::common::recorded_sums::RecordedSums;
use crate::reports::common::rows::FrameSums;
use crate::reports::common::sorting::{SortKey, sort_rows};
use crate::reports::grouped::GroupTable;
use crate::stream::{GfpFlags, NO_GFP, known_gfp};

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
    /// By the first function in the stack outside the allocator; empty without stacks.
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

/// Rows of a trace.
pub fn compute(
    context: &ReportContext<'_, '_>,
    stacks: &HashMap<u32, FrameTotals, IntHash>,
    keys: &[SortKey],
) -> PageRows {
    let analysis = context.analysis;
    let is_recorded = context.recorded(Meaning::PAGE_ALLOC) == Some(true)
        || context.recorded(Meaning::PAGE_FREE) == Some(true);
    if !is_recorded {
        return PageRows { pages: None };
    }
    let recorded = RecordedSums::pages(context.basis());
    let tables = PageTables {
        all: PageSums::of(analysis, recorded),
        by_order_and_migratetype: by_type(analysis, recorded, keys),
        by_gfp_flags: by_flags(analysis, recorded, keys),
        callers: callers::compute(context, stacks, recorded, unless_given(keys)),
        other_events: other_events(context),
        groups: None,
    };
    PageRows { pages: Some(tables) }
}

/// The order of tables without one of their own: by pages, unless keys are given.
pub fn unless_given(keys: &[SortKey]) -> &[SortKey] {
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
