//! Sums of pages by call site, and the order of all rows of pages.
//!
//! The call site is the first function of a stack outside of the page allocator. Functions between it and the allocator are
//! counted too (`PassedOverRow`), so that a wrapper can be seen.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::int_hash::IntHash;
use crate::ledger::totals::FrameTotals;
use crate::render::words::escaped;
use crate::reports::common::ReportContext;
use crate::reports::common::labels::Symbol;
use crate::reports::common::page_sums::{self, is_allocator, is_tracer};
use crate::reports::common::rows::{Address, FrameSums, PageAmounts, RecordedSums};
use crate::reports::common::sorting::{SortKey, sort_rows};
use crate::sort_rows::SortRows;
use crate::trace::names::function_of;

/// Sums of one call site.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageCallerRow {
    #[serde(flatten)]
    pub pages: PageAmounts,
    /// Allocations that returned no page.
    pub alloc_failures: Option<u64>,
    /// Address of the call site; `null`: no stack.
    pub call_site: Option<Address>,
    /// Function and offset, or the address.
    #[serde(flatten)]
    pub symbol: Symbol,
    /// Functions of the allocator below the call site, the one that it calls first; those of the tracer are left out.
    pub passed_over: Vec<PassedOverRow>,
}

/// Sums and allocator functions of one call site.
#[derive(Default)]
struct OfCaller {
    totals: FrameTotals,
    passed_over: PassedOver,
}

/// Sums by the first function in the stack outside the allocator; empty without stacks.
pub fn compute(
    context: &ReportContext<'_, '_>,
    stacks: &HashMap<u32, FrameTotals, IntHash>,
    recorded: RecordedSums,
    keys: &[SortKey],
) -> Vec<PageCallerRow> {
    let (symbols, analysis) = (context.symbols(), context.analysis);
    let mut by_caller: BTreeMap<Option<u64>, OfCaller> = BTreeMap::new();
    // Pages outside of the window have sums of 0.
    for (stack, totals) in stacks.iter().filter(|(_, totals)| **totals != FrameTotals::default()) {
        let addresses = analysis.interner.stacks.get(*stack).map(Vec::as_slice).unwrap_or_default();
        let sums = by_caller.entry(page_sums::caller(addresses, symbols)).or_default();
        sums.totals += totals;
        sums.passed_over.add(addresses, totals.frames_alloc, |a| symbols.raw(a));
    }
    if by_caller.keys().all(Option::is_none) {
        return Vec::new();
    }
    let named = |(address, sums)| (address, context.labels().of_pages(address), sums);
    let mut rows: Vec<(Option<u64>, Symbol, OfCaller)> = by_caller.into_iter().map(named).collect();
    sort_rows(&mut rows, keys, |row, key| number(key, &row.2.totals), |a, b| a.1.cmp(&b.1));
    rows.into_iter().map(|row| caller_row(row, analysis.page_size.0, recorded)).collect()
}

fn caller_row(
    (address, symbol, sums): (Option<u64>, Symbol, OfCaller),
    page_size: u64,
    recorded: RecordedSums,
) -> PageCallerRow {
    let FrameSums { pages, alloc_failures, .. } = FrameSums::of(&sums.totals, page_size, recorded);
    PageCallerRow {
        pages,
        alloc_failures,
        call_site: address.map(Address),
        symbol,
        passed_over: sums.passed_over.rows(recorded.allocs),
    }
}

/// Names that sort pages. Bytes of pages have the order of the pages.
pub const PAGE_SUMS: &[SortKey] = &[
    SortKey::Pages,
    SortKey::Alloc,
    SortKey::Count,
    SortKey::Failed,
    SortKey::FreedPages,
    SortKey::Freed,
    SortKey::ImpliedFrees,
    SortKey::LivePages,
    SortKey::Live,
    SortKey::Uncertain,
    SortKey::Name,
];

/// Number of these sums; the larger one is the first. `None`: the name.
pub fn number(key: SortKey, sums: &FrameTotals) -> Option<u128> {
    let number = match key {
        SortKey::Pages | SortKey::Alloc => sums.frames_alloc,
        SortKey::Count => sums.alloc_events,
        SortKey::Failed => sums.alloc_failures,
        SortKey::FreedPages | SortKey::Freed => sums.frames_freed,
        SortKey::ImpliedFrees => sums.frames_freed_implied,
        SortKey::LivePages | SortKey::Live => sums.frames_live,
        SortKey::Uncertain => sums.frames_uncertain,
        _ => return None,
    };
    Some(number.into())
}

/// An allocator function between a call site and the event.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PassedOverRow {
    /// Function, without its offset.
    pub function: String,
    /// Pages allocated through it; `null`: allocations were not recorded.
    pub pages_alloc: Option<u64>,
}

/// Allocator functions of the stacks of one call site.
#[derive(Debug, Default)]
pub struct PassedOver {
    /// By function: smallest distance from the call site, and pages.
    functions: BTreeMap<String, (usize, u64)>,
}

impl PassedOver {
    /// Adds the pages of one stack, whose addresses begin with the innermost. A function that occurs twice in the stack
    /// counts once.
    pub fn add(&mut self, stack: &[u64], pages: u64, symbol: impl Fn(u64) -> Vec<u8>) {
        let symbols = stack.iter().filter(|&&address| address != 0).map(|&address| symbol(address));
        let passed: Vec<Vec<u8>> =
            symbols.take_while(|symbol| is_allocator(symbol)).filter(|symbol| !is_tracer(symbol)).collect();
        let mut of_stack = BTreeMap::new();
        for (distance, symbol) in passed.iter().rev().enumerate() {
            of_stack.entry(function_of(&escaped(symbol))).or_insert(distance);
        }
        for (function, distance) in of_stack {
            let sums = self.functions.entry(function).or_insert((distance, 0));
            *sums = (sums.0.min(distance), sums.1.saturating_add(pages));
        }
    }

    /// Functions passed over, the one that the call site calls first.
    pub fn rows(self, is_recorded: bool) -> Vec<PassedOverRow> {
        let mut functions: Vec<_> = self.functions.into_iter().collect();
        functions.sort_rows_by_key(|(_, (distance, _))| *distance);
        let row = |(function, (_, pages)): (String, (usize, u64))| PassedOverRow {
            function,
            pages_alloc: is_recorded.then_some(pages),
        };
        functions.into_iter().map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_sorts_by_its_heading() {
        let own = ["allocs", "failed", "uncertain"];
        let headings = super::super::text::PAGES.iter().map(|column| column.heading).chain(own);
        for heading in headings.filter(|heading| *heading != "share") {
            let key = SortKey::named(&heading.replace(' ', "_"));
            assert!(key.is_some_and(|key| PAGE_SUMS.contains(&key)), "{heading}");
        }
        for key in PAGE_SUMS {
            assert_eq!(number(*key, &FrameTotals::default()).is_some(), *key != SortKey::Name, "{key:?}");
        }
    }

    const NAMES: [&str; 7] = [
        "trace_event_raw_event_mm_page_alloc+0x1/0x2",
        "__alloc_pages+0x26b/0x320",
        "alloc_pages_mpol+0x86/0x170",
        "folio_alloc_noprof+0x5c/0xb0",
        "alloc_pages_mpol+0x90/0x170",
        "page_cache_ra_unbounded+0x10/0x20",
        "kmalloc_of_a_caller+0x1/0x2",
    ];

    fn functions(stacks: &[(&[usize], u64)]) -> Vec<(String, u64)> {
        let mut passed = PassedOver::default();
        for (stack, pages) in stacks {
            let stack: Vec<u64> = stack.iter().map(|index| *index as u64 + 1).collect();
            passed.add(&stack, *pages, |address| NAMES[address as usize - 1].as_bytes().to_vec());
        }
        passed.rows(true).into_iter().map(|row| (row.function, row.pages_alloc.unwrap())).collect()
    }

    #[test]
    fn the_functions_below_a_call_site_are_in_the_order_of_calls() {
        let one = functions(&[(&[0, 1, 2, 3, 5, 6], 4)]);
        let names: Vec<&str> = one.iter().map(|row| row.0.as_str()).collect();
        assert_eq!(names, ["folio_alloc_noprof", "alloc_pages_mpol", "__alloc_pages"]);
        assert!(one.iter().all(|row| row.1 == 4));
        let both = functions(&[(&[1, 2, 3, 5], 4), (&[0, 1, 5], 2), (&[5], 9)]);
        let expected = [("__alloc_pages", 6), ("folio_alloc_noprof", 4), ("alloc_pages_mpol", 4)];
        assert_eq!(both, expected.map(|(name, pages)| (name.to_owned(), pages)));
    }

    #[test]
    fn a_function_that_occurs_twice_counts_once() {
        let found = functions(&[(&[2, 3, 4, 5], 3)]);
        let expected = [("alloc_pages_mpol", 3), ("folio_alloc_noprof", 3)];
        assert_eq!(found, expected.map(|(name, pages)| (name.to_owned(), pages)));
    }
}
