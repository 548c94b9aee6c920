//! Amounts by call site: the kernel's at the begin and the end, and live ones of the trace.
//!
//! What was allocated before the trace and freed in it has no call site in the trace. So the end is, for each call site:
//! begin + live in the trace - older memory that was freed, and the last is the difference.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use serde::Serialize;

use crate::int_hash::IntHash;
use crate::ledger::page_totals::FrameTotals;
use crate::pass::caches::{CacheKey, parts_of};
use crate::render::screen::function_of;
use crate::reports::common::ReportContext;
use crate::reports::common::page_callers::{caller, is_allocator};
use crate::reports::common::rows::text;
use crate::trace::aliases::Aliases;
use crate::trace::allocinfo;

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BaselineRows {
    /// Bytes by function, from /proc/allocinfo: slab objects and pages; `null`: not recorded twice.
    pub allocinfo: Option<AccountRows>,
    /// Bytes of pages by call site, from page_owner; `null`: not recorded twice.
    pub page_owner: Option<AccountRows>,
    /// Slab objects by cache and call site, from `alloc_traces`; `null`: not recorded twice.
    pub slab_traces: Option<AccountRows>,
}

/// One account.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AccountRows {
    /// All call sites.
    pub total: Account,
    /// Number of call sites that changed or have live memory in the trace.
    pub rows_total: usize,
    /// Call sites, the largest change or live amount first.
    pub rows: Vec<AccountRow>,
}

/// A call site in an account.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AccountRow {
    /// Function, function and offset, or cache with function and offset.
    pub name: String,
    /// Its amounts.
    #[serde(flatten)]
    pub account: Account,
}

/// Amounts of a call site: bytes or objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Account {
    /// At the begin, by the kernel.
    pub before: i64,
    /// Allocated in the trace and live at its end.
    pub live: i64,
    /// At the end, by the kernel.
    pub after: i64,
    /// before + live - after: older memory that was freed in the trace, if all events are there.
    pub older_freed: i64,
}

impl Account {
    fn finish(self) -> Self {
        let older_freed = self.before.saturating_add(self.live).saturating_sub(self.after);
        Self { older_freed, ..self }
    }

    fn add(&mut self, other: &Self) {
        self.before = self.before.saturating_add(other.before);
        self.live = self.live.saturating_add(other.live);
        self.after = self.after.saturating_add(other.after);
        self.older_freed = self.older_freed.saturating_add(other.older_freed);
    }
}

/// Amounts by name.
type Amounts = BTreeMap<String, i64>;

/// Names of the attached files, without `.before` and `.after`.
const NAMES: [&str; 3] = ["allocinfo", "page_owner", "slab_traces"];

/// True if a file has any account twice.
pub fn has_any(context: &ReportContext<'_, '_>) -> bool {
    NAMES.iter().any(|name| twice(context, name).is_some())
}

fn twice<'d>(context: &ReportContext<'_, 'd>, name: &str) -> Option<[&'d [u8]; 2]> {
    let metadata = context.session.trace.metadata();
    let at = |when: &str| metadata.attachment(&format!("{name}.{when}"));
    Some([at("before")?, at("after")?])
}

/// All accounts of a trace.
pub fn of(context: &ReportContext<'_, '_>, pages: &HashMap<u32, FrameTotals, IntHash>) -> BaselineRows {
    let live = Live::of(context, pages);
    let page_size = i64::try_from(context.analysis.page_size.0).unwrap_or(i64::MAX);
    let account = |name: &str, amounts: &dyn Fn(&[u8]) -> Amounts, live: &Amounts| {
        let [before, after] = twice(context, name)?;
        Some(rows(&amounts(before), &amounts(after), live, context.limit))
    };
    BaselineRows {
        allocinfo: account("allocinfo", &bytes_by_function, &live.functions),
        page_owner: account("page_owner", &|file| lines(file, page_size), &live.pages),
        slab_traces: account("slab_traces", &|file| lines(file, 1), &live.slab),
    }
}

fn rows(before: &Amounts, after: &Amounts, live: &Amounts, limit: usize) -> AccountRows {
    let mut found: BTreeMap<&str, Account> = BTreeMap::new();
    for (name, amount) in before {
        found.entry(name).or_default().before = *amount;
    }
    for (name, amount) in after {
        found.entry(name).or_default().after = *amount;
    }
    for (name, amount) in live {
        found.entry(name).or_default().live = *amount;
    }
    let mut total = Account::default();
    let mut all: Vec<(&str, Account)> = Vec::new();
    for (name, account) in found {
        let account = account.finish();
        total.add(&account);
        if account.live != 0 || account.before != account.after {
            all.push((name, account));
        }
    }
    let change = |account: &Account| account.after.saturating_sub(account.before).unsigned_abs();
    all.sort_by_key(|(_, account)| Reverse(change(account).max(account.live.unsigned_abs())));
    let rows_total = all.len();
    let row = |(name, account): (&str, Account)| AccountRow { name: name.to_owned(), account };
    AccountRows { total, rows_total, rows: all.into_iter().take(limit).map(row).collect() }
}

/// Function and offset, without the size that the kernel prints: `f+0x1 [module]`.
fn short(symbol: &str) -> String {
    let (name, module) =
        symbol.split_once(" [").map_or((symbol, None), |(name, module)| (name, Some(module)));
    let name = name.split('/').next().unwrap_or(name);
    module.map_or(name.to_owned(), |module| format!("{name} [{module}"))
}

/// Lines of `AMOUNT ALLOCATIONS NAME`.
fn lines(file: &[u8], factor: i64) -> Amounts {
    let mut amounts = Amounts::new();
    for line in String::from_utf8_lossy(file).lines() {
        let mut words = line.splitn(3, ' ');
        let amount = words.next().and_then(|amount| amount.parse::<i64>().ok());
        let (Some(amount), Some(name)) = (amount, words.nth(1)) else { continue };
        let sum = amounts.entry(short(name)).or_default();
        *sum = sum.saturating_add(amount.saturating_mul(factor));
    }
    amounts
}

/// Bytes of /proc/allocinfo by function. A copy that cannot be read has none.
fn bytes_by_function(file: &[u8]) -> Amounts {
    let mut amounts = Amounts::new();
    for line in allocinfo::lines(Path::new("allocinfo"), file).unwrap_or_default() {
        let sum = amounts.entry(line.function).or_default();
        *sum = sum.saturating_add(line.bytes);
    }
    amounts
}

/// Live memory of the trace, by the names of each account.
#[derive(Default)]
struct Live {
    functions: Amounts,
    pages: Amounts,
    slab: Amounts,
}

impl Live {
    fn of(context: &ReportContext<'_, '_>, pages: &HashMap<u32, FrameTotals, IntHash>) -> Self {
        let (analysis, env) = (context.analysis, context.print_env());
        let aliases = Aliases::of(context.session.trace.metadata());
        let mut live = Self::default();
        let add = |amounts: &mut Amounts, name: String, amount: u64| {
            let sum = amounts.entry(name).or_default();
            *sum = sum.saturating_add(i64::try_from(amount).unwrap_or(i64::MAX));
        };
        for part in parts_of(analysis).filter(|part| part.totals.live > 0) {
            let symbol = text(&env.symbol_with_offset(part.site.call_site));
            let cache = match &part.key {
                CacheKey::Named(name) => text(aliases.target(name)),
                key => crate::pass::caches::name_of(key, analysis),
            };
            add(&mut live.slab, format!("{cache} {}", short(&symbol)), part.totals.live);
            add(&mut live.functions, function_of(&symbol), part.totals.bytes_live);
        }
        for (stack, totals) in pages.iter().filter(|(_, totals)| totals.frames_live > 0) {
            let bytes = totals.frames_live.saturating_mul(analysis.page_size.0);
            let stack = analysis.interner.stacks.get(*stack).map(Vec::as_slice).unwrap_or_default();
            let symbol = match caller(stack, |address| is_allocator(&env.symbol_with_offset(address))) {
                0 => "?".to_owned(),
                address => text(&env.symbol_with_offset(address)),
            };
            add(&mut live.functions, function_of(&symbol), bytes);
            add(&mut live.pages, short(&symbol), bytes);
        }
        live
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_the_begin_and_what_is_live_less_what_was_freed() {
        let amounts = |text: &str| lines(text.as_bytes(), 4096);
        let live = BTreeMap::from([("a+0x1 [m]".to_owned(), 3 * 4096), ("new+0x2".to_owned(), 4096)]);
        let rows = rows(
            &amounts("5 2 a+0x1/0x9 [m]\n7 7 same+0x3/0x4\nbad\n"),
            &amounts("6 2 a+0x1/0x9 [m]\n7 7 same+0x3/0x4\n1 1 new+0x2/0x3\n"),
            &live,
            10,
        );
        let found: Vec<_> =
            rows.rows.iter().map(|row| (row.name.as_str(), row.account.older_freed / 4096)).collect();
        assert_eq!(found, [("a+0x1 [m]", 2), ("new+0x2", 0)]);
        assert_eq!((rows.total.before, rows.total.after), (12 * 4096, 14 * 4096));
        assert_eq!((rows.total.live, rows.total.older_freed), (4 * 4096, 2 * 4096));
    }
}
