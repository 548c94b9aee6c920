//! Sums of pages by order and migrate type, by flags, by call site.

use std::collections::{BTreeMap, HashMap};

use kmt_format::schema::Meaning;
use serde::Serialize;

use crate::analysis::page_callers::{self, is_allocator};
use crate::int_hash::IntHash;
use crate::ledger::frames::NO_STACK;
use crate::ledger::page_totals::FrameTotals;
use crate::pass::Analysis;
use crate::pass::filter::Names;
use crate::pass::names::TraceNames;
use crate::render::text::escaped;
use crate::reports::common::Context;
use crate::reports::common::basis::Basis;
use crate::reports::common::known::Known;
use crate::reports::common::page_sums::PageSums;
use crate::reports::common::recorded::recorded;
use crate::reports::common::rows::{Address, FrameSums};
use crate::trace::session::Session;

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
    /// By order and migrate type that were asked for.
    pub by_order_and_migratetype: Vec<PageTypeRow>,
    /// By allocation flags.
    pub by_gfp_flags: Vec<PageFlagsRow>,
    /// By the first function in the stack that is none of the allocator's; empty where no stacks were recorded.
    pub callers: Vec<PageCallerRow>,
    /// Counts of other events of the page allocator, by name.
    pub other_events: BTreeMap<String, u64>,
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
    /// Its name.
    pub migratetype_text: String,
}

/// Sums of one value of gfp_flags.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageFlagsRow {
    /// Sums of its pages.
    #[serde(flatten)]
    pub sums: FrameSums,
    /// The flags.
    pub gfp_flags: u64,
    /// Their names.
    pub gfp_flags_text: String,
}

/// Sums of one call site.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageCallerRow {
    /// Pages allocated.
    pub pages_alloc: Option<u64>,
    /// Bytes of them.
    pub bytes_alloc: Option<u64>,
    /// Pages freed.
    pub pages_freed: Option<u64>,
    /// Bytes of them.
    pub bytes_freed: Option<u64>,
    /// Pages allocated again while they seemed live.
    pub pages_freed_unseen: Option<u64>,
    /// Bytes of them.
    pub bytes_freed_unseen: Option<u64>,
    /// Pages allocated at the end of the window.
    pub pages_live: Option<u64>,
    /// Bytes of them.
    pub bytes_live: Option<u64>,
    /// Pages of allocations that cross a loss.
    pub pages_uncertain: Option<u64>,
    /// Live bytes of those.
    pub bytes_live_uncertain: Option<u64>,
    /// Address of the call site; `null`: no stack.
    pub call_site: Option<Address>,
    /// Function and offset, or the address.
    pub symbol: String,
}

/// Rows of a trace.
pub fn of(
    context: &Context<'_, '_>,
    analysis: &Analysis,
    stacks: &HashMap<u32, FrameTotals, IntHash>,
) -> PageRows {
    let session = context.session;
    let is_recorded = recorded(session, analysis, Meaning::PAGE_ALLOC) == Some(true)
        || recorded(session, analysis, Meaning::PAGE_FREE) == Some(true);
    if !is_recorded {
        return PageRows { pages: None };
    }
    let known = Known::pages(&Basis::of(session, analysis));
    let names = TraceNames::new(session);
    let tables = PageTables {
        all: PageSums::of(analysis, known),
        by_order_and_migratetype: by_type(analysis, &names, known),
        by_gfp_flags: by_flags(analysis, &names, known),
        callers: callers(session, analysis, stacks, known),
        other_events: other_events(session, analysis),
    };
    PageRows { pages: Some(tables) }
}

fn by_type(analysis: &Analysis, names: &dyn Names, known: Known) -> Vec<PageTypeRow> {
    let mut sums: BTreeMap<(u8, i32), FrameTotals> = BTreeMap::new();
    for (site, totals) in analysis.interner.pages.items().iter().zip(&analysis.balance.frames.sites) {
        *sums.entry((site.order, site.migratetype)).or_default() += totals;
    }
    sums.retain(|_, totals| *totals != FrameTotals::default());
    let row = |((order, migratetype), totals): ((u8, i32), FrameTotals)| PageTypeRow {
        sums: FrameSums::of(&totals, analysis.page_size.0, known),
        order,
        migratetype,
        migratetype_text: names.migratetype(migratetype),
    };
    sums.into_iter().map(row).collect()
}

fn by_flags(analysis: &Analysis, names: &dyn Names, known: Known) -> Vec<PageFlagsRow> {
    let mut sums: BTreeMap<u64, FrameTotals> = BTreeMap::new();
    for (site, totals) in analysis.interner.pages.items().iter().zip(&analysis.balance.frames.sites) {
        *sums.entry(site.gfp_flags).or_default() += totals;
    }
    sums.retain(|_, totals| *totals != FrameTotals::default());
    let row = |(gfp_flags, totals): (u64, FrameTotals)| PageFlagsRow {
        sums: FrameSums::of(&totals, analysis.page_size.0, known),
        gfp_flags,
        gfp_flags_text: escaped(&names.gfp(&analysis.interner, gfp_flags)),
    };
    sums.into_iter().map(row).collect()
}

/// Sums by the first function in the stack that is none of the allocator's; none without stacks.
fn callers(
    session: &Session<'_>,
    analysis: &Analysis,
    stacks: &HashMap<u32, FrameTotals, IntHash>,
    known: Known,
) -> Vec<PageCallerRow> {
    let env = session.print_env();
    let mut by_caller: BTreeMap<u64, FrameTotals> = BTreeMap::new();
    for (stack, totals) in stacks {
        let addresses = analysis.interner.stacks.get(*stack).map(Vec::as_slice).unwrap_or_default();
        let caller = match *stack {
            NO_STACK => 0,
            _ => page_callers::caller(addresses, |a| is_allocator(&env.symbol_with_offset(a))),
        };
        *by_caller.entry(caller).or_default() += totals;
    }
    if by_caller.keys().all(|&address| address == 0) {
        return Vec::new();
    }
    let name = |address: u64| match address {
        0 => "(no stack)".to_owned(),
        _ => escaped(&env.symbol_with_offset(address)),
    };
    let mut rows: Vec<(u64, String, FrameTotals)> =
        by_caller.into_iter().map(|(address, totals)| (address, name(address), totals)).collect();
    rows.sort_by(|a, b| (b.2.frames_alloc, &a.1).cmp(&(a.2.frames_alloc, &b.1)));
    rows.into_iter().map(|row| caller_row(row, analysis.page_size.0, known)).collect()
}

fn caller_row(
    (address, symbol, totals): (u64, String, FrameTotals),
    page_size: u64,
    known: Known,
) -> PageCallerRow {
    let sums = FrameSums::of(&totals, page_size, known);
    PageCallerRow {
        pages_alloc: sums.pages_alloc,
        bytes_alloc: sums.bytes_alloc,
        pages_freed: sums.pages_freed,
        bytes_freed: sums.bytes_freed,
        pages_freed_unseen: sums.pages_freed_unseen,
        bytes_freed_unseen: sums.bytes_freed_unseen,
        pages_live: sums.pages_live,
        bytes_live: sums.bytes_live,
        pages_uncertain: sums.pages_uncertain,
        bytes_live_uncertain: sums.bytes_live_uncertain,
        call_site: (address != 0).then_some(Address(address)),
        symbol,
    }
}

/// Events of the page allocator that are no allocations or frees: per-CPU lists, fallbacks.
fn other_events(session: &Session<'_>, analysis: &Analysis) -> BTreeMap<String, u64> {
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
