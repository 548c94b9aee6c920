//! The screen of the kernel's accounts.

use super::account::Account;
use super::caches::{CacheAccount, CacheAccounts};
use super::rows::{AccountRow, AccountRows, BaselineRows};
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::render::words::{count, counted};
use crate::reports::common::View;

/// What an account counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Bytes,
    Objects,
}

/// Accounts: begin + live in the trace - older memory freed = end.
pub fn screen(rows: &BaselineRows, view: &View) -> Screen {
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
