//! Tables of slabs that were allocated in the trace, and of call sites whose objects keep nearly empty slabs.
//!
//! Both are made of the rows in `occupancy`. Figures are uncertain where slabs were allocated before the trace.

use super::occupancy::{Occupied, OccupiedCache, PINNED_BYTES_MIN, PINNED_SLABS_MIN, PinRow};
use crate::render::screen::{Cell, Column, Ink, Screen, Table};
use crate::render::words::{count, counted, listed, size};
use crate::reports::common::View;
use crate::reports::common::cells::{is_more, part};
use crate::reports::common::lead::MaybeRefused;

/// Caches, unless more are allowed.
const ROWS: usize = 8;

/// Adds slabs by cache, by filling and over time.
pub fn add(screen: &mut Screen, rows: &MaybeRefused<Occupied>, view: &View) {
    let MaybeRefused::Found(rows) = rows else { return };
    let active: Vec<&OccupiedCache> =
        rows.caches.iter().filter(|c| c.slabs + c.slabs_born + c.older_slabs_died > 0).collect();
    let shown = || active.iter().take(part(view.limit, ROWS)).copied();
    screen.table(
        Table::of_rows("between objects: slabs allocated in the trace, at its end", shown())
            .of("cache", "caches", active.len())
            .column(Column::name("cache"), |c| Cell::text(&c.cache))
            .column(Column::number("slabs").leaves(1), |c| Cell::Count(c.slabs))
            .column(Column::number("held"), |c| Cell::Bytes(c.bytes_held))
            .column(Column::number("in objects"), |c| Cell::Bytes(c.bytes_live))
            .column(Column::number("unused"), |c| Cell::Bytes(c.bytes_held.saturating_sub(c.bytes_live)))
            .column(Column::number("in use").leaves(2), |c| Cell::share(c.bytes_live, c.bytes_held))
            .column(Column::number("empty").leaves(3), |c| Cell::Count(c.slabs_empty))
            .column(Column::number("sparse").leaves(4), |c| Cell::Count(c.slabs_sparse))
            .column(Column::number("allocated").leaves(5), |c| Cell::Count(c.slabs_born))
            .column(Column::number("freed").leaves(6), |c| Cell::Count(c.slabs_died))
            .column(Column::number("older freed").leaves(7), |c| Cell::Count(c.older_slabs_died))
            .explain("sparse", SPARSE_NOTE)
            .explain("allocated", "allocated, freed: slabs; older freed: slabs older than the trace."),
    );
    screen.lines("", sums(rows));
    screen.table(if view.look.wide || is_more(view.limit) { steps(rows, view) } else { sparklines(rows) });
    screen.note(uncertain_caches(shown()));
    if view.is_lossy {
        screen.note(
            "Events were lost: slabs and objects whose free was lost count as held; slabs whose allocation was lost count as older than the trace.",
        );
    }
}

/// Meaning of sparse slabs.
const SPARSE_NOTE: &str = "sparse: at most a quarter of the bytes that were once live on the slab still are.";

/// Slabs of all caches: by filling, and allocated and freed.
fn sums(rows: &Occupied) -> Vec<String> {
    let f = &rows.slabs_by_filling;
    let fillings = [
        ("empty", f.empty),
        ("up to 25 %", f.to_25_percent),
        ("up to 50 %", f.to_50_percent),
        ("up to 75 %", f.to_75_percent),
        ("above 75 %", f.below_100_percent),
        ("full", f.full),
    ];
    let fillings = fillings.iter().filter(|(_, number)| *number > 0);
    let fillings: Vec<String> = fillings.map(|(name, number)| format!("{} {name}", count(*number))).collect();
    let older = match rows.sum(|c| c.older_slabs_died) {
        0 => String::new(),
        older => format!("; {} freed", counted(older, "older slab", "older slabs")),
    };
    let (allocated, freed) = (count(rows.sum(|c| c.slabs_born)), count(rows.sum(|c| c.slabs_died)));
    let mut lines = vec![format!("slabs: {allocated} allocated in the trace, {freed} of them freed{older}")];
    let pages = rows.sum(|c| c.older_pages_in_use);
    if pages > 0 {
        let pages = count(pages);
        lines.push(format!("older pages with objects of the trace: {pages} (how full is unknown)"));
    }
    lines.extend((!fillings.is_empty()).then(|| format!("filling at the end: {}", fillings.join(", "))));
    lines
}

/// Slabs over time as two small charts.
fn sparklines(rows: &Occupied) -> Table {
    let held: Vec<u64> = rows.over_time.iter().map(|step| step.bytes_held).collect();
    let live: Vec<u64> = rows.over_time.iter().map(|step| step.bytes_live).collect();
    let unused = held.iter().zip(&live).map(|(held, live)| held.saturating_sub(*live)).collect();
    let lines = [("slabs held", held), ("in objects", live), ("unused", unused)];
    Table::of_rows("", lines.into_iter().filter(|(_, values)| values.iter().any(|&value| value > 0)))
        .column(Column::whole("over time"), |(name, _)| Cell::text(*name))
        .column(Column::whole("start to end"), |(_, values)| Cell::Sparkline(values.clone()))
        .column(Column::number("at most"), |(_, values)| Cell::bytes(values.iter().max().copied()))
        .column(Column::number("at end"), |(_, values)| Cell::bytes(values.last().copied()))
        .into()
}

/// Slabs at the end of each step.
fn steps(rows: &Occupied, view: &View) -> Table {
    Table::of_rows("slabs over time", &rows.over_time)
        .column(Column::number("time"), |step| Cell::text(view.time(step.time)))
        .column(Column::number("held"), |step| Cell::Bytes(step.bytes_held))
        .column(Column::number("in objects"), |step| Cell::Bytes(step.bytes_live))
        .column(Column::number("unused").leaves(1), |step| {
            Cell::Bytes(step.bytes_held.saturating_sub(step.bytes_live))
        })
        .column(Column::number("in use").leaves(2), |step| Cell::share(step.bytes_live, step.bytes_held))
        .into()
}

/// Caches whose slabs may have more room than shown.
fn uncertain_caches<'c>(caches: impl Iterator<Item = &'c OccupiedCache>) -> String {
    let caches = caches.filter(|cache| matches!(cache.frees_seen, "partly" | "none"));
    let names: Vec<String> = caches.map(|cache| cache.cache.clone()).collect();
    if names.is_empty() {
        return String::new();
    }
    format!("Some objects of {} are freed without an event: their slabs may be emptier.", listed(&names))
}

/// Call sites, unless more are allowed.
const PINNED_ROWS: usize = 5;

/// Adds call sites that keep nearly empty slabs; those with smaller effects where more rows are allowed.
pub fn add_pinned(screen: &mut Screen, rows: &MaybeRefused<Occupied>, view: &View) {
    let MaybeRefused::Found(rows) = rows else { return };
    let is_all = view.look.wide || is_more(view.limit);
    if !is_all && !rows.pinned_by.iter().any(|row| row.is_pinner) {
        return;
    }
    let pins = |row: &PinRow| match row.is_pinner {
        true => Cell::Verdict("pins".to_owned(), Ink::Bad),
        false => Cell::Empty,
    };
    let age = |age: Option<u64>| age.map_or(Cell::Empty, |age| Cell::Duration(age, view.unit));
    let shown = rows.pinned_by.iter().take(part(view.limit, PINNED_ROWS));
    screen.table(
        Table::of_rows("between objects: nearly empty slabs", shown)
            .of("call site", "call sites", rows.pinned_by_total)
            .column(Column::name("call site of live objects"), |row| Cell::from(&row.symbol))
            .column(Column::whole("verdict"), |row| pins(row))
            .column(Column::number("sparse slabs"), |row| Cell::text(format!("{:.1}", row.sparse_slabs)))
            .column(Column::number("unused there"), |row| Cell::Bytes(row.pinned_sparse_bytes))
            .column(Column::number("live there").leaves(2), |row| Cell::Count(row.sparse_objects))
            .column(Column::number("mean age").leaves(1), |row| age(row.sparse_age_mean))
            .column(Column::number("live in all").leaves(4), |row| Cell::Count(row.objects))
            .column(Column::number("unused in all").leaves(3), |row| Cell::Bytes(row.pinned_bytes))
            .explain(
                "verdict",
                format!(
                    "pins: keeps at least {} unused on {PINNED_SLABS_MIN} sparse slabs or more; the objects of a slab share its unused bytes equally.",
                    size(PINNED_BYTES_MIN as u64)
                ),
            )
            .explain("sparse slabs", SPARSE_NOTE),
    );
}
