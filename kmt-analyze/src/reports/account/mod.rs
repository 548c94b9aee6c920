//! `account`: the account file of trace_analyze.py.
//!
//! The account has sums of live and allocated bytes for each caller, made of the events of a trace by the rules of that program
//! (`rules`). It is printed in that program's layout, or as JSON.

mod rules;

use rules::{Account, AccountObject, Caller};

use std::cmp::Reverse;

use kmt_common::tell;
use serde::Serialize;

use crate::failure::{Outcome, Result};
use crate::limits;
use crate::pass::Selection;
use crate::pass::condition::Key;
use crate::pass::operations::operations;
use crate::render::head::Head;
use crate::render::out::{Schema, print_rows};
use crate::render::screen::Screen;
use crate::reports::common::rows::Address;
use crate::reports::common::stated::Keys;
use crate::reports::document::print_screen;
use crate::reports::output::Output;
use crate::sort_rows::SortRows;
use crate::stream::op::Kind;
use crate::stream::{Api, NewItems, Op, Site};
use crate::trace::faults::Faults;
use crate::trace::open::outcome;
use crate::trace::session::Session;

/// Order of the rows, the largest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Order {
    /// Bytes of all allocations
    TotalDynamic,
    /// Bytes in use
    CurrentDynamic,
    /// Allocations
    AllocCount,
    /// Frees
    FreeCount,
    /// Bytes in use beyond those requested
    Waste,
}

/// Options of the report.
#[derive(Debug, clap::Args)]
pub struct AccountOptions {
    /// Order of the rows
    #[arg(short, long, value_enum, default_value = "current_dynamic")]
    order_by: Order,
    /// Only kmalloc and kfree
    #[arg(long, conflicts_with = "cache")]
    malloc: bool,
    /// Only kmem_cache_alloc and kmem_cache_free
    #[arg(long)]
    cache: bool,
    /// Show at most N rows; 0: all [default: all]
    #[arg(short, long = "lines", value_name = "N", value_parser = limits::lines)]
    lines: Option<usize>,
}

/// Prints the account.
pub fn run(
    session: &Session<'_>,
    options: &AccountOptions,
    selection: &Selection,
    output: &Output,
) -> Result<Outcome> {
    selection.check(session, "account", Keys::Slab)?;
    let (account, faults) = read(session, options, selection)?;
    let rows = compute(session, &account, selection, options);
    if output.json {
        print_rows(&session.env, Schema::first("account"), &rows, options.lines)?;
    } else {
        print_screen(session, Screen::verbatim(text(&rows.account)), &output.show)?;
        if selection.is_active() {
            tell!("note: selected by {}", selection.options().join(" "));
        }
        if rows.account.duplicate_pointers > 0 {
            tell!(
                "note: {} pointers were allocated again without a free: the account keeps both, the exact live bytes are in summary",
                rows.account.duplicate_pointers
            );
        }
    }
    Ok(outcome(session, &faults))
}

/// The account of a trace, and the faults found in it. Refused as `Clock::units` is.
fn read(session: &Session<'_>, options: &AccountOptions, selection: &Selection) -> Result<(Account, Faults)> {
    let mut lifetimes = selection.terms_of(session)?;
    lifetimes.retain(|term| term.key == Key::Lifetime);
    let mut reader = AccountReader {
        account: Account::new(selection.bounds(session), lifetimes, session.ages()),
        apis: [!options.cache, !options.malloc],
        counts_frees: !selection.is_about_allocations(),
        sites: Vec::new(),
        origins: Vec::new(),
    };
    let faults = operations(session, selection, |ops, new_items| reader.enter(ops, &new_items));
    let mut account = reader.account;
    if selection.is_active() {
        account.leave_out_unused();
    }
    Ok((account, faults))
}

/// Reads operations into an account.
#[derive(Debug)]
struct AccountReader {
    account: Account,
    /// By [`Api`], whether its events count.
    apis: [bool; 2],
    /// Frees without an allocation count: no condition is about the allocation.
    counts_frees: bool,
    /// Sites, and whether they are selected.
    sites: Vec<(Site, bool)>,
    /// By number of the origin, whether it is selected.
    origins: Vec<bool>,
}

impl AccountReader {
    fn enter(&mut self, ops: &[Op], new_items: &NewItems) {
        self.sites.extend(&new_items.sites);
        self.origins.extend(new_items.origins.iter().map(|(_, is_selected)| is_selected));
        for op in ops {
            match op.code.kind() {
                Kind::Alloc => self.alloc(op),
                Kind::Kfree if self.apis[Api::Kmalloc as usize] => self.free(op),
                Kind::CacheFree if self.apis[Api::Cache as usize] => self.free(op),
                _ => {}
            }
        }
    }

    fn is_origin_selected(&self, op: &Op) -> bool {
        self.origins.get(op.origin as usize).copied().unwrap_or(false)
    }

    fn alloc(&mut self, op: &Op) {
        let Some(&(site, is_selected)) = self.sites.get(op.code.number() as usize) else { return };
        if self.apis[site.api as usize] {
            let object = AccountObject {
                call_site: site.call_site,
                bytes_alloc: site.bytes_alloc,
                bytes_req: site.bytes_req,
                born: op.time,
                is_selected: is_selected && self.is_origin_selected(op),
            };
            self.account.alloc(op.value, object);
        }
    }

    fn free(&mut self, op: &Op) {
        let is_selected = self.counts_frees && self.is_origin_selected(op);
        self.account.free(op.value, op.time, is_selected);
    }
}

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
fn compute(
    session: &Session<'_>,
    account: &Account,
    selection: &Selection,
    options: &AccountOptions,
) -> AccountRows {
    let mut callers: Vec<(u64, Caller)> = account.callers.iter().map(|(&site, &sums)| (site, sums)).collect();
    callers.sort_rows_by_key(|(_, sums)| Reverse(key(sums, options.order_by)));
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

/// The sums, and the rows.
fn text(account: &AccountRow) -> String {
    let mut out = String::new();
    for (heading, value) in [
        ("current bytes allocated:", account.current_bytes_allocated),
        ("current bytes requested:", account.current_bytes_requested),
        ("current wasted bytes:", account.current_wasted_bytes),
        ("number of allocs:", account.allocs),
        ("number of frees:", account.frees),
        ("number of callers:", account.callers as u64),
    ] {
        out.push_str(&format!("{heading}{value:>width$}\n", width = 35 - heading.len()));
    }
    out.push_str(
        "\n   total    waste      net alloc/free  caller\n---------------------------------------------\n",
    );
    for row in &account.rows {
        out.push_str(&format!(
            "{:>8} {:>8} {:>8} {:>5}/{:<5} {}\n",
            row.total, row.waste, row.net, row.alloc, row.free, row.caller,
        ));
    }
    out
}
