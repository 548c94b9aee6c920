//! Sums of pages by call site.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::passed_over::{PassedOver, PassedOverRow};
use super::sorting::number;
use crate::int_hash::IntHash;
use crate::ledger::page_totals::FrameTotals;
use crate::reports::common::ReportContext;
use crate::reports::common::page_callers;
use crate::reports::common::recorded_sums::RecordedSums;
use crate::reports::common::rows::{Address, FrameSums, PageAmounts};
use crate::reports::common::sorting::{SortKey, sort_rows};
use crate::reports::common::symbol::Symbol;

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
    for (stack, totals) in stacks {
        let addresses = analysis.interner.stacks.get(*stack).map(Vec::as_slice).unwrap_or_default();
        let sums = by_caller.entry(page_callers::caller(addresses, symbols)).or_default();
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
