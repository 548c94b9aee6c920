//! The table of lifetimes.

use super::rows::{Distribution, LifetimeRow, LifetimeRows};
use crate::render::table::{Align, table};
use crate::render::text::{count, duration, percent};
use crate::reports::common::View;
use crate::reports::common::shown::more;

/// Sites of frees that a row names.
const FREEING_SITES: usize = 2;

/// The table, and the meaning of its columns.
pub fn of(rows: &LifetimeRows, view: &View) -> String {
    let cells: Vec<Vec<String>> = rows.lifetimes.iter().map(|row| cells(row, view)).collect();
    table(&columns(view), &cells)
        + &more(rows.lifetimes.len(), rows.lifetimes_total, "call sites")
        + "\nLifetimes are those of objects whose free was seen; those that go on and those freed unseen are in none of them, so where their shares are large the percentiles are too short.\nper decade: tenths of the lives of 1 ns, 10 ns, 100 ns ... (+ less than a tenth, . none, * all)\n"
}

fn columns(view: &View) -> Vec<(&'static str, Align)> {
    use Align::{Left, Right};
    let mut columns = vec![
        ("allocated at", Left),
        ("of", Left),
        ("n", Right),
        ("p50", Right),
        ("p90", Right),
        ("p99", Right),
        ("max", Right),
        ("per decade", Left),
        ("go on", Right),
        ("unseen", Right),
    ];
    columns.extend(view.is_lossy.then_some(("uncertain", Right)));
    columns.push(("freed at", Left));
    columns
}

fn cells(row: &LifetimeRow, view: &View) -> Vec<String> {
    let time = |time: Option<u64>| time.map_or("-".to_owned(), |time| duration(time, view.unit));
    let lifetime = &row.lifetime;
    let lives = lifetime.n + row.censored + row.freed_unseen;
    let mut cells = vec![
        row.symbol.clone(),
        row.api.to_owned(),
        count(lifetime.n),
        time(lifetime.p50),
        time(lifetime.p90),
        time(lifetime.p99),
        time(lifetime.max),
        sketch(lifetime),
        percent(row.censored, lives),
        percent(row.freed_unseen, lives),
    ];
    cells.extend(view.is_lossy.then(|| percent(row.uncertain, lives)));
    cells.push(freeing_sites(row));
    cells
}

/// The most frequent sites of the frees, with their shares.
pub fn freeing_sites(row: &LifetimeRow) -> String {
    let named = row.freed_by.iter().take(FREEING_SITES);
    let share = |frees: u64| percent(frees, row.lifetime.n);
    let mut out: Vec<String> = named.map(|site| format!("{} {}", site.symbol, share(site.frees))).collect();
    if row.freed_by.len() > FREEING_SITES {
        out.push(format!("{} more", row.freed_by.len() - FREEING_SITES));
    }
    out.join(", ")
}

/// A character for each power of ten from a nanosecond on: the share of its lifetimes, in tenths.
fn sketch(lifetimes: &Distribution) -> String {
    let digit = |n: u64| match (10 * n).checked_div(lifetimes.n).unwrap_or(0) {
        0 if n == 0 => '.',
        0 => '+',
        tenths @ 1..=9 => char::from(b'0' + tenths as u8),
        _ => '*',
    };
    lifetimes.decades.iter().map(|&n| digit(n)).collect()
}
