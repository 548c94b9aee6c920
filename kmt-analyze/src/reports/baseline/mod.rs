//! `baseline`: memory at the begin and the end of a recording, as the kernel accounts for it, beside the trace.
//!
//! Memory that was allocated before the trace and freed in it has no call site in the trace. So for each call site the end is:
//! begin + live in the trace - older memory that was freed, and the last is the difference. It lies between nothing and all older
//! frees of the cache, which events do show. The kernel's amounts come from snapshots in the file.

mod names;

use names::{Account, Amounts, CacheAccount, CacheAccounts, Live, add_account, short};

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use crate::collect::{Collectors, Handle, PageStacks, Unmatched};
use crate::pass::Needs;
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::render::words::{count, counted, escaped};
use crate::reports::common::basis::Input;
use crate::reports::common::{Context, ReportContext, View};
use crate::reports::report::Report;
use crate::sort_rows::SortRows;
use crate::trace::allocinfo;

/// The kernel's own accounts beside the trace.
#[derive(Debug, clap::Args)]
pub struct BaselineReport;

impl Report for BaselineReport {
    type Handles = (Handle<PageStacks>, Handle<Unmatched>);
    type Rows = BaselineRows;

    const NAME: &'static str = "baseline";
    const TITLE: &'static str = "comparison with the kernel's own accounts";
    const ABOUT: &'static str = "allocinfo, page_owner, slab traces: before + born here = now";
    const RESTS_ON: Input = Input::Nothing;
    const NEEDS: Needs = Needs::CACHE_NAMES;

    fn refuses(&self, context: &ReportContext<'_, '_>) -> Option<String> {
        let is_part = context.selection.is_active();
        let part =
            || "the kernel accounts for all tasks and the whole time: it refuses selections".to_owned();
        is_part.then(part).or_else(|| {
            let none =
                "the recording has none of them: record with --baseline allocinfo,page_owner,slab_traces";
            (!has_any(context)).then(|| none.to_owned())
        })
    }

    fn collect(&self, _: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        (collectors.add(PageStacks), collectors.add(Unmatched))
    }

    /// All accounts of a trace.
    fn compute(&self, context: &ReportContext<'_, '_>, handles: &Self::Handles) -> BaselineRows {
        let analysis = context.analysis;
        let older_frees = names::older_frees(analysis, &analysis.get(handles.1).0);
        let allocinfo = twice(context, "allocinfo").map(|files| files.map(bytes_by_function));
        let tagged = allocinfo.iter().flatten().flat_map(Amounts::keys).map(String::as_str).collect();
        let live = Live::of(context, &analysis.get(handles.0).stacks, &tagged);
        let page_size = i64::try_from(analysis.page_size.0).unwrap_or(i64::MAX);
        let found = |name: &str, amounts: &dyn Fn(&[u8]) -> Amounts, live: &Amounts| {
            let [before, after] = twice(context, name)?;
            Some(joined(&amounts(before), &amounts(after), live))
        };
        let any = |_: &str| i64::MAX;
        let allocinfo = allocinfo.map(|[before, after]| joined(&before, &after, &live.functions));
        let page_owner = found("page_owner", &|file| lines(file, page_size, short), &live.pages);
        let slab = found("slab_traces", &|file| lines(file, 1, in_cache), &live.slab);
        let of_cache = |name: &str| {
            let cache = name.split(names::APART).next().unwrap_or(name);
            older_frees.get(cache).copied().unwrap_or(0)
        };
        let sites = |slab: &Joined| {
            let sites = slab.iter().map(|(name, account)| (name.as_str(), *account));
            names::caches(sites, &older_frees, context.limit)
        };
        BaselineRows {
            allocinfo: allocinfo.map(|found| rows(found, any, context.limit)),
            page_owner: page_owner.map(|found| rows(found, any, context.limit)),
            caches: slab.as_ref().map(sites),
            slab_traces: slab.map(|found| rows(found, of_cache, context.limit)),
        }
    }

    /// Accounts: begin + live in the trace - older memory freed = end.
    fn screen(&self, rows: &BaselineRows, view: &View) -> Screen {
        let accounts = [
            ("/proc/allocinfo, bytes by function", &rows.allocinfo, Unit::Bytes),
            ("page_owner, bytes of pages by call site", &rows.page_owner, Unit::Bytes),
            ("slab traces, objects by cache and call site", &rows.slab_traces, Unit::Objects),
        ];
        let mut screen = Screen::default();
        for (title, rows, unit) in accounts {
            let Some(rows) = rows else { continue };
            screen.answer(sentence(title, &rows.total, unit, view));
            screen.table(table(title, rows, unit));
        }
        if let Some(caches) = &rows.caches {
            screen.answer(exact(caches));
            screen.table(cache_table(caches));
        }
        screen.note(
            "The kernel's numbers are read before and after the events; its own work in between is in them too.",
        );
        screen.next("leaks", "pages and objects that stay");
        screen.next("callers --sort live", "live objects by call site");
        screen
    }
}

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
fn has_any(context: &ReportContext<'_, '_>) -> bool {
    NAMES.iter().any(|name| twice(context, name).is_some())
}

fn twice<'d>(context: &ReportContext<'_, 'd>, name: &str) -> Option<[&'d [u8]; 2]> {
    let metadata = context.session.trace.metadata();
    let at = |when: &str| metadata.attachment(&format!("{name}.{when}"));
    Some([at("before")?, at("after")?])
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
        AccountRow { name: name.replace(names::APART, " "), account, is_contradicted }
    };
    let mut rows: Vec<AccountRow> =
        found.into_iter().filter(|(_, account)| account.is_moved()).map(row).collect();
    rows.sort_rows_by_key(|row| Reverse(row.account.size()));
    let (rows_total, contradicted) = (rows.len(), rows.iter().filter(|row| row.is_contradicted).count());
    rows.truncate(limit);
    AccountRows { total, rows_total, contradicted, rows }
}

/// Cache, function and offset; all caches of kmalloc have one name.
fn in_cache(name: &str) -> String {
    name.split_once(' ').map_or_else(
        || name.to_owned(),
        |(cache, symbol)| format!("{}{}{}", names::name_of(cache.as_bytes()), names::APART, short(symbol)),
    )
}

/// Lines of `AMOUNT NAME`.
fn lines(file: &[u8], factor: i64, name_of: impl Fn(&str) -> String) -> Amounts {
    let mut amounts = Amounts::new();
    for line in String::from_utf8_lossy(file).lines() {
        let Some((amount, name)) = line.split_once(' ') else { continue };
        let Ok(amount) = amount.parse::<i64>() else { continue };
        add_account(&mut amounts, name_of(&escaped(name.as_bytes())), amount.saturating_mul(factor));
    }
    amounts
}

/// Bytes of /proc/allocinfo by function, `f [module]`. A copy that cannot be read has none.
fn bytes_by_function(file: &[u8]) -> Amounts {
    let mut amounts = Amounts::new();
    for line in allocinfo::lines(Path::new("allocinfo"), file).unwrap_or_default() {
        let name =
            line.module.map_or(line.function.clone(), |module| format!("{} [{module}]", line.function));
        add_account(&mut amounts, escaped(name.as_bytes()), line.bytes);
    }
    amounts
}

/// What an account counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Bytes,
    Objects,
}

fn sentence(title: &str, total: &Account, unit: Unit, view: &View) -> String {
    let amount = |amount: i64| match unit {
        Unit::Bytes if amount < 0 => format!("-{}", view.bytes(amount.unsigned_abs())),
        Unit::Bytes => view.bytes(amount.unsigned_abs()),
        Unit::Objects if amount < 0 => format!("-{}", count(amount.unsigned_abs())),
        Unit::Objects => count(amount.unsigned_abs()),
    };
    let name = title.split(',').next().unwrap_or(title);
    let Account { before, live, after, older_freed } = *total;
    let [before, live, after, older_freed] = [before, live, after, older_freed].map(amount);
    format!("{name}: {before} before + {live} born here - {older_freed} of older ones freed = {after} now.")
}

/// Caches whose events explain the change, and the one with most that they do not.
fn exact(caches: &CacheAccounts) -> String {
    let CacheAccounts { caches_total, caches_exact, rows, .. } = caches;
    let most = rows.first().filter(|row| row.unseen != 0).map(|row| {
        let amount = counted(row.unseen.unsigned_abs(), "object", "objects");
        format!("; most is missing in {}: {amount}", row.name)
    });
    let total = counted(*caches_total as u64, "cache", "caches");
    format!(
        "Events explain the change of {} of {total} to the object{}.",
        count(*caches_exact as u64),
        most.unwrap_or_default()
    )
}

fn cache_table(caches: &CacheAccounts) -> Table {
    let cell = |amount: i64| u64::try_from(amount).map_or(Cell::Change(amount), Cell::Count);
    let moved = |row: &CacheAccount| row.account.after.saturating_sub(row.account.before);
    Table::of_rows("slab traces, objects by cache", caches.rows.iter())
        .of("cache", "caches", caches.rows_total)
        .column(Column::name("cache"), |row| Cell::text(row.name.clone()))
        .column(Column::number("before").leaves(1), move |row| cell(row.account.before))
        .column(Column::number("born here"), move |row| cell(row.account.live))
        .column(Column::number("older freed").leaves(2), move |row| cell(row.older_freed_by_events))
        .column(Column::number("now"), move |row| cell(row.account.after))
        .column(Column::number("change").leaves(3), move |row| Cell::Change(moved(row)))
        .column(Column::number("unseen"), |row| Cell::Change(row.unseen))
        .explain("older freed", "older freed: frees of objects that were allocated before the trace")
        .explain("unseen", "unseen: the part of the change that no event shows")
        .into()
}

fn table(title: &str, rows: &AccountRows, unit: Unit) -> Table {
    let cell = move |amount: i64| match (unit, u64::try_from(amount)) {
        (Unit::Bytes, Ok(amount)) => Cell::Bytes(amount),
        (Unit::Bytes, Err(_)) => Cell::BytesChange(amount),
        (Unit::Objects, Ok(amount)) => Cell::Count(amount),
        (Unit::Objects, Err(_)) => Cell::Change(amount),
    };
    let change = move |amount: i64| match unit {
        Unit::Bytes => Cell::BytesChange(amount),
        Unit::Objects => Cell::Change(amount),
    };
    let table = Table::of_rows(title, rows.rows.iter())
        .of("call site", "call sites", rows.rows_total)
        .column(Column::name("call site"), |row| Cell::symbol(row.name.clone()))
        .column(Column::number("before").leaves(1), move |row| cell(row.account.before))
        .column(Column::number("born here"), move |row| cell(row.account.live))
        .column(Column::number("older freed").leaves(2), move |row| cell(row.account.older_freed))
        .column(Column::number("now"), move |row| cell(row.account.after))
        .column(Column::number("change").leaves(3), move |row| {
            change(row.account.after.saturating_sub(row.account.before))
        });
    if rows.contradicted == 0 {
        return table.into();
    }
    let fits = |row: &&AccountRow| Cell::text(if row.is_contradicted { "no" } else { "" });
    let reason = "fits: no, if older freed is below 0 or above all older memory: its events are missing, or have another \
                  call site";
    table.column(Column::name("fits"), fits).explain("fits", reason).into()
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
