//! The account: sums, and a row for each caller.

use std::cmp::Reverse;

use serde::Serialize;

use super::{AccountOptions, Order};
use crate::pass::Selection;
use crate::render::head::Head;
use crate::reports::account::rules::{Account, Caller};
use crate::reports::common::rows::Address;
use crate::trace::session::Session;

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AccountRows {
    /// The trace and its clock.
    #[serde(flatten)]
    pub head: Head,
    /// Selection, as it would be given on the command line; empty: everything is counted.
    pub selection_options: Vec<String>,
    /// The account.
    pub account: AccountRow,
}

/// Sums of all callers, by the rules of trace_analyze.py.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AccountRow {
    /// Bytes allocated for the objects in use.
    pub current_bytes_allocated: u64,
    /// Bytes requested for the objects in use.
    pub current_bytes_requested: u64,
    /// Bytes allocated beyond those requested.
    pub current_wasted_bytes: u64,
    /// Allocations.
    pub allocs: u64,
    /// Frees of objects allocated in the trace.
    pub frees: u64,
    /// Number of callers, including those beyond the limit of rows.
    pub callers: usize,
    /// Allocations of a pointer in use: its free was not recorded, and the account holds both objects.
    pub duplicate_pointers: u64,
    /// Frees of pointers without an allocation in the trace.
    pub unmatched_frees: u64,
    /// Callers, the largest of the chosen order first.
    pub rows: Vec<AccountCallerRow>,
}

/// Sums of one caller.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AccountCallerRow {
    /// Address of the call site.
    pub address: Address,
    /// Function and offset, or the address.
    pub caller: String,
    /// Bytes of all allocations.
    pub total: u64,
    /// Bytes of the objects in use beyond those requested.
    pub waste: u64,
    /// Bytes allocated for the objects in use.
    pub net: u64,
    /// Allocations.
    pub alloc: u64,
    /// Frees of objects that it allocated.
    pub free: u64,
}

/// The rows of an account.
pub fn compute(
    session: &Session<'_>,
    account: &Account,
    selection: &Selection,
    options: &AccountOptions,
) -> AccountRows {
    let mut callers: Vec<(u64, Caller)> = account.callers.iter().map(|(&site, &sums)| (site, sums)).collect();
    callers.sort_by_key(|(_, sums)| Reverse(key(sums, options.order_by)));
    let shown = options.lines.unwrap_or(usize::MAX);
    let symbols = session.symbolizer();
    let row = |(address, sums): &(u64, Caller)| {
        let symbol = symbols.shown(*address);
        AccountCallerRow {
            address: Address(*address),
            caller: symbol.split(['/', ' ']).next().unwrap_or_default().to_owned(),
            total: sums.total_dynamic,
            waste: sums.waste(),
            net: sums.current_dynamic,
            alloc: sums.alloc_count,
            free: sums.free_count,
        }
    };
    let sum = account.sum();
    let account = AccountRow {
        current_bytes_allocated: sum.current_dynamic,
        current_bytes_requested: sum.current_req,
        current_wasted_bytes: sum.waste(),
        allocs: sum.alloc_count,
        frees: sum.free_count,
        callers: callers.len(),
        duplicate_pointers: account.duplicates,
        unmatched_frees: account.unmatched_frees,
        rows: callers.iter().take(shown).map(row).collect(),
    };
    let head = Head::of(session.trace, &session.losses);
    AccountRows { head, selection_options: selection.options(), account }
}

fn key(sums: &Caller, order: Order) -> u64 {
    match order {
        Order::TotalDynamic => sums.total_dynamic,
        Order::CurrentDynamic => sums.current_dynamic,
        Order::AllocCount => sums.alloc_count,
        Order::FreeCount => sums.free_count,
        Order::Waste => sums.waste(),
    }
}
