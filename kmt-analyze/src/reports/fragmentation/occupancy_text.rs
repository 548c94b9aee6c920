//! Tables of slabs that were allocated in the trace.

use super::occupancy_rows::{Occupied, OccupiedCache};
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::render::text::count;
use crate::render::words::{counted, listed};
use crate::reports::common::View;
use crate::reports::common::answer::MaybeRefused;
use crate::reports::common::shown::{is_more, part};

/// Caches, unless more are allowed.
const ROWS: usize = 8;

/// Adds slabs by cache, by filling and over time.
pub fn add(screen: &mut Screen, rows: &MaybeRefused<Occupied>, view: &View) {
    let MaybeRefused::Found(rows) = rows else { return };
    let active: Vec<&OccupiedCache> =
        rows.caches.iter().filter(|c| c.slabs + c.slabs_born + c.older_slabs_died > 0).collect();
    let shown = || active.iter().take(part(view.limit, ROWS)).copied();
    let mut table = table(active.len());
    shown().for_each(|cache| table.row(cells(cache)));
    screen.table(table);
    screen.lines("", sums(rows));
    screen.table(if view.look.is_wide() || is_more(view.limit) { steps(rows, view) } else { course(rows) });
    screen.note(uncertain_caches(shown()));
    if view.is_lossy {
        screen.note(
            "Events were lost: slabs and objects whose free was lost count as held; slabs whose allocation was lost count as older than the trace.",
        );
    }
}

/// Slabs by cache, without rows.
fn table(total: usize) -> Table {
    let columns = [
        Column::name("cache"),
        Column::number("slabs").leaves(1),
        Column::number("held"),
        Column::number("in objects"),
        Column::number("unused"),
        Column::number("in use").leaves(2),
        Column::number("empty").leaves(3),
        Column::number("sparse").leaves(4),
        Column::number("allocated").leaves(5),
        Column::number("freed").leaves(6),
        Column::number("older freed").leaves(7),
    ];
    let title = "between objects: slabs allocated in the trace, at its end";
    let mut table = Table::new(title, columns).of("cache", "caches", total);
    table.explain("sparse", SPARSE_NOTE);
    table.explain("allocated", "allocated, freed: slabs; older freed: slabs older than the trace.");
    table
}

/// Meaning of sparse slabs.
pub const SPARSE_NOTE: &str =
    "sparse: at most a quarter of the bytes that were once live on the slab still are.";

fn cells(c: &OccupiedCache) -> [Cell; 11] {
    [
        Cell::text(&c.cache),
        Cell::Count(c.slabs),
        Cell::Bytes(c.bytes_held),
        Cell::Bytes(c.bytes_live),
        Cell::Bytes(c.bytes_held.saturating_sub(c.bytes_live)),
        Cell::share(c.bytes_live, c.bytes_held),
        Cell::Count(c.slabs_empty),
        Cell::Count(c.slabs_sparse),
        Cell::Count(c.slabs_born),
        Cell::Count(c.slabs_died),
        Cell::Count(c.older_slabs_died),
    ]
}

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
    let sums = &rows.sums;
    let older = match sums.older_slabs_died {
        0 => String::new(),
        older => format!("; {} freed", counted(older, "older slab", "older slabs")),
    };
    let (allocated, freed) = (count(sums.slabs_born), count(sums.slabs_died));
    let mut lines = vec![format!("slabs: {allocated} allocated in the trace, {freed} of them freed{older}")];
    if sums.older_pages_in_use > 0 {
        let pages = count(sums.older_pages_in_use);
        lines.push(format!("older pages with objects of the trace: {pages} (how full is unknown)"));
    }
    lines.extend((!fillings.is_empty()).then(|| format!("filling at the end: {}", fillings.join(", "))));
    lines
}

/// Slabs over time as two small charts.
fn course(rows: &Occupied) -> Table {
    let columns = [
        Column::whole("over time"),
        Column::whole("start to end"),
        Column::number("at most"),
        Column::number("at end"),
    ];
    let mut table = Table::new("", columns);
    let held: Vec<u64> = rows.over_time.iter().map(|step| step.bytes_held).collect();
    let live: Vec<u64> = rows.over_time.iter().map(|step| step.bytes_live).collect();
    let unused: Vec<u64> = held.iter().zip(&live).map(|(held, live)| held.saturating_sub(*live)).collect();
    for (name, values) in [("slabs held", held), ("in objects", live), ("unused", unused)] {
        let (most, last) = (values.iter().max().copied(), values.last().copied());
        if most.is_some_and(|most| most > 0) {
            table.row([Cell::text(name), Cell::Course(values), Cell::bytes(most), Cell::bytes(last)]);
        }
    }
    table
}

/// Slabs at the end of each step.
fn steps(rows: &Occupied, view: &View) -> Table {
    let columns = [
        Column::number("time"),
        Column::number("held"),
        Column::number("in objects"),
        Column::number("unused").leaves(1),
        Column::number("in use").leaves(2),
    ];
    let mut table = Table::new("slabs over time", columns);
    for step in &rows.over_time {
        table.row([
            Cell::text(view.time(step.time)),
            Cell::Bytes(step.bytes_held),
            Cell::Bytes(step.bytes_live),
            Cell::Bytes(step.bytes_held.saturating_sub(step.bytes_live)),
            Cell::share(step.bytes_live, step.bytes_held),
        ]);
    }
    table
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
