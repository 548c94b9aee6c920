//! The screen of the kernel's accounts.

use super::rows::{Account, AccountRows, BaselineRows};
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::render::text::count;
use crate::reports::common::View;

/// What an account counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Bytes,
    Objects,
}

/// Accounts: begin + live in the trace - older memory freed = end.
pub fn of(rows: &BaselineRows, view: &View) -> Screen {
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
    Table::of_rows(title, rows.rows.iter())
        .of("call site", "call sites", rows.rows_total)
        .column(Column::name("call site"), |row| Cell::symbol(row.name.clone()))
        .column(Column::number("before").leaves(1), move |row| cell(row.account.before))
        .column(Column::number("born here"), move |row| cell(row.account.live))
        .column(Column::number("older freed").leaves(2), move |row| cell(row.account.older_freed))
        .column(Column::number("now"), move |row| cell(row.account.after))
        .column(Column::number("change").leaves(3), move |row| {
            change(row.account.after.saturating_sub(row.account.before))
        })
        .into()
}
