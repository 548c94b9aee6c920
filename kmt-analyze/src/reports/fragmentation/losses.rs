//! Unused memory by place at the end of the trace: the losses that the answer names, and their table.
//!
//! Places are inside objects, inside slabs, between objects and between pages. Each part of the report gives one of them.

use super::FragmentationTables;
use super::internal::{InternalTables, Waste, largest};
use super::occupancy::Occupied;
use super::pages::ZoneRow;
use super::slabs::{SlabTails, Traced};
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::render::words::share;
use crate::reports::common::lead::MaybeRefused;
use crate::reports::common::{ReportContext, View};
use crate::sort_rows::SortRows;
use crate::trace::names::function_of;

/// Place of unused memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnusedIn {
    /// Bytes allocated beyond those requested.
    Objects,
    /// Bytes of slabs after the last object.
    Slabs,
    /// Bytes of slabs without objects.
    BetweenObjects,
    /// Free memory in blocks that are too small.
    BetweenPages,
}

/// Unused memory of one place; `None`: unknown.
#[derive(Debug)]
pub struct Loss {
    pub place: UnusedIn,
    /// Unused bytes.
    pub bytes: Option<u64>,
    /// Bytes that they are a part of.
    pub of: Option<u64>,
    /// The call site, cache or zone with the largest part, and its bytes.
    pub largest: Option<(String, u64)>,
}

/// Order of the requests that free memory is judged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requested {
    /// Largest order that was requested in the trace; without page events the order up to which the kernel tries hard.
    pub order: u8,
    /// It was requested in the trace.
    pub is_traced: bool,
}

/// PAGE_ALLOC_COSTLY_ORDER (include/linux/mmzone.h 4.4 to 7.2).
const COSTLY_ORDER: u8 = 3;

impl Requested {
    /// Of a trace.
    pub fn of(context: &ReportContext<'_, '_>) -> Self {
        let analysis = context.analysis;
        let sites = analysis.interner.pages.items().iter().zip(&analysis.balance.frames.sites);
        let requested = sites.filter(|(_, sums)| sums.alloc_events > 0 || sums.alloc_failures > 0);
        let largest = requested.map(|(site, _)| site.order).max();
        Self { order: largest.unwrap_or(COSTLY_ORDER), is_traced: largest.is_some() }
    }
}

/// Bytes wasted over all allocations, and bytes allocated; `None`: no allocation was recorded.
fn wasted_in_all(internal: &InternalTables) -> Option<(u64, u64)> {
    let known = [&internal.kmalloc, &internal.kmalloc_large, &internal.caches].into_iter().flatten();
    let parts = known.map(|waste| (waste.bytes_wasted, waste.bytes_alloc));
    parts.reduce(|a, b| (a.0.saturating_add(b.0), a.1.saturating_add(b.1)))
}

/// Losses of all places, the largest first, unknown ones last.
pub fn compute(traced: &Traced<'_, '_, '_>, tables: &FragmentationTables, requested: Requested) -> Vec<Loss> {
    let page_size = traced.context.analysis.page_size.0;
    let mut losses = vec![
        objects(traced, &tables.internal),
        self::slabs(tables.slabs.as_ref()),
        between_objects(&tables.occupancy),
        between_pages(tables.pages.zones.as_deref(), requested, page_size),
    ];
    // The sort is stable: places of equal losses keep their order.
    losses.sort_rows_by_key(|loss| std::cmp::Reverse(loss.bytes));
    losses
}

fn objects(traced: &Traced<'_, '_, '_>, internal: &InternalTables) -> Loss {
    let kinds = [&internal.kmalloc, &internal.kmalloc_large, &internal.caches];
    let known = || kinds.into_iter().flatten();
    // A kind that was not recorded is not part of the sum; one without frees makes it unknown.
    let sum = |of: fn(&Waste) -> Option<u64>| {
        known().map(of).try_fold(0, |sum: u64, part| Some(sum.saturating_add(part?)))
    };
    let is_any = known().next().is_some();
    let bytes = sum(|waste| waste.bytes_wasted_live).filter(|_| is_any);
    Loss {
        place: UnusedIn::Objects,
        of: sum(|waste| waste.bytes_live).filter(|_| is_any),
        largest: largest(traced).filter(|_| bytes.is_some()),
        bytes,
    }
}

fn slabs(slabs: Option<&SlabTails>) -> Loss {
    let first = slabs.and_then(|slabs| slabs.caches.first());
    Loss {
        place: UnusedIn::Slabs,
        bytes: slabs.map(|slabs| slabs.tail_bytes),
        of: slabs.map(|slabs| slabs.bytes_held),
        largest: first.map(|cache| (cache.cache.clone(), cache.tail_bytes)),
    }
}

fn between_objects(occupancy: &MaybeRefused<Occupied>) -> Loss {
    let MaybeRefused::Found(rows) = occupancy else {
        return Loss { place: UnusedIn::BetweenObjects, bytes: None, of: None, largest: None };
    };
    let held = rows.sum(|c| c.bytes_held);
    Loss {
        place: UnusedIn::BetweenObjects,
        bytes: Some(held.saturating_sub(rows.sum(|c| c.bytes_live))),
        of: Some(held),
        largest: rows.caches.first().map(|c| (c.cache.clone(), c.bytes_held.saturating_sub(c.bytes_live))),
    }
}

fn between_pages(zones: Option<&[ZoneRow]>, requested: Requested, page_size: u64) -> Loss {
    let bytes = |pages: u64| pages.saturating_mul(page_size);
    let rows = zones.map(last_of);
    let sum = |of: &dyn Fn(&ZoneRow) -> u64| {
        rows.as_ref().map(|rows| rows.iter().map(|row| of(row)).fold(0, u64::saturating_add))
    };
    let unusable = |row: &ZoneRow| bytes(row.unusable_pages(requested.order));
    let largest = rows.iter().flatten().max_by_key(|row| unusable(row));
    Loss {
        place: UnusedIn::BetweenPages,
        bytes: sum(&unusable),
        of: sum(&|row| bytes(row.free_pages)),
        largest: largest.map(|row| (row.name(), unusable(row))),
    }
}

/// Rows of the last snapshot.
fn last_of(zones: &[ZoneRow]) -> Vec<&ZoneRow> {
    let last = zones.last().map_or("", |row| row.when);
    let after = if zones.iter().any(|row| row.when == "after") { "after" } else { last };
    zones.iter().filter(|row| row.when == after).collect()
}

/// A screen with the largest loss, and a table of all.
pub fn screen(rows: &FragmentationTables, losses: &[Loss], requested: Requested, view: &View) -> Screen {
    let mut screen = Screen::new(answer(rows, losses, requested, view));
    let largest = |loss: &Loss| loss.largest.clone().filter(|(_, bytes)| *bytes > 0);
    screen.table(
        Table::of_rows("", losses.iter().filter(|loss| loss.bytes.is_some()))
            .column(Column::whole("place"), |loss| Cell::text(name(loss.place)))
            .column(Column::number("unused"), |loss| Cell::bytes(loss.bytes))
            .column(Column::number("of"), |loss| Cell::bytes(loss.of))
            .column(Column::number("share"), |loss| {
                loss.bytes.zip(loss.of).map_or(Cell::Unknown, |(part, all)| Cell::share(part, all))
            })
            .column(Column::name("largest part").leaves(1), |loss| {
                largest(loss).map_or(Cell::Empty, |(name, _)| Cell::symbol(name))
            })
            .column(Column::number("its bytes").leaves(2), |loss| {
                largest(loss).map_or(Cell::Empty, |(_, bytes)| Cell::Bytes(bytes))
            })
            .explain("of", meaning(losses, requested)),
    );
    for reason in unknown(rows, losses) {
        screen.note(reason);
    }
    screen
}

/// Meaning of the sizes.
fn meaning(losses: &[Loss], requested: Requested) -> String {
    let known = losses.iter().filter(|loss| loss.bytes.is_some());
    let parts = known.map(|loss| match loss.place {
        UnusedIn::Objects => "live objects of the trace".to_owned(),
        UnusedIn::Slabs => "all slabs".to_owned(),
        UnusedIn::BetweenObjects => "slabs allocated in the trace".to_owned(),
        UnusedIn::BetweenPages => {
            let largest = if requested.is_traced { ", the largest requested" } else { "" };
            format!("free memory (unused: in blocks below order {}{largest})", requested.order)
        }
    });
    format!("of: {}.", parts.collect::<Vec<_>>().join("; "))
}

/// Name of a place.
fn name(place: UnusedIn) -> &'static str {
    match place {
        UnusedIn::Objects => "inside objects",
        UnusedIn::Slabs => "inside slabs",
        UnusedIn::BetweenObjects => "between objects",
        UnusedIn::BetweenPages => "between pages",
    }
}

/// The answer where all losses at the end are unknown.
fn unknown_at_end(wasted_in_all: Option<(u64, u64)>, view: &View) -> String {
    const NEEDS: &str = "it needs frees, page events, and snapshots of /proc/slabinfo and /proc/buddyinfo";
    match wasted_in_all.filter(|(wasted, _)| *wasted > 0) {
        Some((wasted, all)) => format!(
            "Objects wasted {} of {} over all allocations ({}). Unused memory at the end is unknown: {NEEDS}.",
            view.bytes(wasted),
            view.bytes(all),
            share(wasted, all)
        ),
        None => format!("Unused memory is unknown: {NEEDS}."),
    }
}

/// The largest loss.
fn answer(rows: &FragmentationTables, losses: &[Loss], requested: Requested, view: &View) -> String {
    let loss = losses.iter().find_map(|loss| Some((loss, loss.bytes?)));
    let Some((loss, bytes)) = loss else { return unknown_at_end(wasted_in_all(&rows.internal), view) };
    if bytes == 0 {
        return "No unused memory was found: at the end of the trace, none of its live objects and slabs has any."
            .to_owned();
    }
    let of = match loss.place {
        UnusedIn::Objects => "of the live objects of the trace".to_owned(),
        UnusedIn::Slabs => "of all slab memory".to_owned(),
        UnusedIn::BetweenObjects => "of the slabs allocated in the trace".to_owned(),
        UnusedIn::BetweenPages => format!("of the free memory, in blocks below order {}", requested.order),
    };
    let part = loss.of.map_or(String::new(), |all| format!(" ({} {of})", share(bytes, all)));
    let largest = loss.largest.as_ref().filter(|(_, bytes)| *bytes > 0);
    let largest = largest.map_or(String::new(), |(name, part)| {
        let preposition = if loss.place == UnusedIn::Objects { "at" } else { "in" };
        let part = if *part == bytes { "all".to_owned() } else { view.bytes(*part) };
        format!(", {part} of it {preposition} {}", function_of(name))
    });
    format!("Largest loss: {} {}{part}{largest}.", view.bytes(bytes), name(loss.place))
}

/// Reasons why the loss of a place is unknown.
fn unknown(rows: &FragmentationTables, losses: &[Loss]) -> Vec<String> {
    let of = |place: UnusedIn| losses.iter().any(|loss| loss.place == place && loss.bytes.is_none());
    let mut reasons = Vec::new();
    if of(UnusedIn::Objects) {
        reasons.push("inside objects: unknown at the end; it needs allocations and frees.".to_owned());
    }
    if of(UnusedIn::Slabs) {
        reasons.push("inside slabs: unknown; the file has no /proc/slabinfo.".to_owned());
    }
    if let MaybeRefused::Refused { refused } = &rows.occupancy {
        reasons.push(format!("between objects: unknown; {refused}."));
    }
    if of(UnusedIn::BetweenPages) {
        reasons.push("between pages: unknown; the file has no /proc/buddyinfo.".to_owned());
    }
    reasons
}
