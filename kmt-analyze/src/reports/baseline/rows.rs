//! Amounts by call site: the kernel's at the begin and the end, and live ones of the trace.
//!
//! What was allocated before the trace and freed in it has no call site in the trace. So the end is, for each call site:
//! begin + live in the trace - older memory that was freed, and the last is the difference. It lies between nothing and all
//! older frees of the cache, which events do show.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use serde::Serialize;

use super::account::{Account, Amounts, add, short};
use super::caches::{self, CacheAccounts};
use super::live::Live;
use crate::int_hash::IntHash;
use crate::ledger::page_totals::FrameTotals;
use crate::render::words::escaped;
use crate::reports::common::ReportContext;
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
    /// Slab objects by cache, beside the frees of older objects; `null`: not recorded twice.
    pub caches: Option<CacheAccounts>,
}

/// One account.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AccountRows {
    /// All call sites.
    pub total: Account,
    /// Number of call sites that changed or have live memory in the trace.
    pub rows_total: usize,
    /// Call sites whose number of older frees cannot be.
    pub contradicted: usize,
    /// Call sites, the largest change or live amount first.
    pub rows: Vec<AccountRow>,
}

/// A call site in an account.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AccountRow {
    /// Function, function and offset, or cache with function and offset.
    pub name: String,
    /// Amounts of the row.
    #[serde(flatten)]
    pub account: Account,
    /// True if `older_freed` cannot be: less than nothing, or more than all older objects of the cache that were freed.
    pub is_contradicted: bool,
}

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

/// All accounts of a trace; `older_frees`: older objects that were freed, by cache.
pub fn compute(
    context: &ReportContext<'_, '_>,
    pages: &HashMap<u32, FrameTotals, IntHash>,
    older_frees: &Amounts,
) -> BaselineRows {
    let allocinfo = twice(context, "allocinfo").map(|files| files.map(bytes_by_function));
    let tagged = allocinfo.iter().flatten().flat_map(Amounts::keys).map(String::as_str).collect();
    let live = Live::of(context, pages, &tagged);
    let page_size = i64::try_from(context.analysis.page_size.0).unwrap_or(i64::MAX);
    let found = |name: &str, amounts: &dyn Fn(&[u8]) -> Amounts, live: &Amounts| {
        let [before, after] = twice(context, name)?;
        Some(joined(&amounts(before), &amounts(after), live))
    };
    let any = |_: &str| i64::MAX;
    let allocinfo = allocinfo.map(|[before, after]| joined(&before, &after, &live.functions));
    let page_owner = found("page_owner", &|file| lines(file, page_size, short), &live.pages);
    let slab = found("slab_traces", &|file| lines(file, 1, in_cache), &live.slab);
    let of_cache = |name: &str| {
        let cache = name.split(caches::APART).next().unwrap_or(name);
        older_frees.get(cache).copied().unwrap_or(0)
    };
    let sites = |slab: &Joined| {
        let sites = slab.iter().map(|(name, account)| (name.as_str(), *account));
        caches::compute(sites, older_frees, context.limit)
    };
    BaselineRows {
        allocinfo: allocinfo.map(|found| rows(found, any, context.limit)),
        page_owner: page_owner.map(|found| rows(found, any, context.limit)),
        caches: slab.as_ref().map(sites),
        slab_traces: slab.map(|found| rows(found, of_cache, context.limit)),
    }
}

/// Accounts by name.
type Joined = BTreeMap<String, Account>;

fn joined(before: &Amounts, after: &Amounts, live: &Amounts) -> Joined {
    let mut found = Joined::new();
    for (name, amount) in before {
        found.entry(name.clone()).or_default().before = *amount;
    }
    for (name, amount) in after {
        found.entry(name.clone()).or_default().after = *amount;
    }
    for (name, amount) in live {
        found.entry(name.clone()).or_default().live = *amount;
    }
    found.values_mut().for_each(|account| *account = account.finish());
    found
}

/// Rows; `older_freed_max`: most that can be freed of what a row had at the begin.
fn rows(found: Joined, older_freed_max: impl Fn(&str) -> i64, limit: usize) -> AccountRows {
    let mut total = Account::default();
    found.values().for_each(|account| total.add(account));
    let row = |(name, account): (String, Account)| {
        let most = older_freed_max(&name).min(account.before);
        let is_contradicted = !(0..=most).contains(&account.older_freed);
        AccountRow { name: name.replace(caches::APART, " "), account, is_contradicted }
    };
    let mut rows: Vec<AccountRow> =
        found.into_iter().filter(|(_, account)| account.is_moved()).map(row).collect();
    rows.sort_by_key(|row| Reverse(row.account.size()));
    let (rows_total, contradicted) = (rows.len(), rows.iter().filter(|row| row.is_contradicted).count());
    rows.truncate(limit);
    AccountRows { total, rows_total, contradicted, rows }
}

/// Cache, function and offset; all caches of kmalloc have one name.
fn in_cache(name: &str) -> String {
    name.split_once(' ').map_or_else(
        || name.to_owned(),
        |(cache, symbol)| format!("{}{}{}", caches::name_of(cache.as_bytes()), caches::APART, short(symbol)),
    )
}

/// Lines of `AMOUNT NAME`.
fn lines(file: &[u8], factor: i64, name_of: impl Fn(&str) -> String) -> Amounts {
    let mut amounts = Amounts::new();
    for line in String::from_utf8_lossy(file).lines() {
        let Some((amount, name)) = line.split_once(' ') else { continue };
        let Ok(amount) = amount.parse::<i64>() else { continue };
        add(&mut amounts, name_of(&escaped(name.as_bytes())), amount.saturating_mul(factor));
    }
    amounts
}

/// Bytes of /proc/allocinfo by function, `f [module]`. A copy that cannot be read has none.
fn bytes_by_function(file: &[u8]) -> Amounts {
    let mut amounts = Amounts::new();
    for line in allocinfo::lines(Path::new("allocinfo"), file).unwrap_or_default() {
        let name =
            line.module.map_or(line.function.clone(), |module| format!("{} [{module}]", line.function));
        add(&mut amounts, escaped(name.as_bytes()), line.bytes);
    }
    amounts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_the_begin_and_what_is_live_less_what_was_freed() {
        let amounts = |text: &str| lines(text.as_bytes(), 4096, short);
        let live = BTreeMap::from([("a+0x1 [m]".to_owned(), 3 * 4096), ("new+0x2".to_owned(), 4096)]);
        let found = joined(
            &amounts("5 a+0x1/0x9 [m]\n7 same+0x3/0x4\nbad\n"),
            &amounts("6 a+0x1/0x9 [m]\n7 same+0x3/0x4\n1 new+0x2/0x3\n"),
            &live,
        );
        let rows = rows(found, |_| 4096, 10);
        let found: Vec<_> =
            rows.rows.iter().map(|row| (row.name.as_str(), row.account.older_freed / 4096)).collect();
        assert_eq!(found, [("a+0x1 [m]", 2), ("new+0x2", 0)]);
        // Only one was freed in its cache.
        assert_eq!(rows.rows.iter().map(|row| row.is_contradicted).collect::<Vec<_>>(), [true, false]);
        assert_eq!((rows.total.before, rows.total.after), (12 * 4096, 14 * 4096));
        assert_eq!((rows.total.live, rows.total.older_freed), (4 * 4096, 2 * 4096));
    }
}
