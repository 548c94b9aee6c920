//! Tables of those who allocated most memory, and of those who hold most.
//!
//! One table is of slab memory, with rows of `top`, and one of pages, with rows of `top_pages`. Both have the same shape: allocated
//! and still allocated side by side, by function, task and cache or use. The recorder has a row of its own if its share is large.

use std::borrow::Cow;

use super::top::{RecorderPart, TopHolders, TopPart, TopRow};
use super::top_pages::TopPagesRow;
use crate::render::screen::{Cell, Column, Table};
use crate::render::words::share;
use crate::reports::common::View;

/// Share of the recorder, as 1/N, from which it is named.
const RECORDER_NAMED: u64 = 10;

/// Memory and its parts, as a side of a table.
#[derive(Clone, Copy)]
struct Side<'r> {
    holders: &'r TopHolders,
    /// Cache, or use.
    kind: Option<&'r TopPart>,
}

/// Name and bytes of a part of a side.
type Part = for<'r> fn(Side<'r>) -> Option<(Cow<'r, str>, u64)>;

impl<'r> From<&'r TopRow> for Side<'r> {
    fn from(row: &'r TopRow) -> Self {
        Self { holders: &row.holders, kind: row.cache.as_ref() }
    }
}

impl<'r> From<&'r TopPagesRow> for Side<'r> {
    fn from(row: &'r TopPagesRow) -> Self {
        Self { holders: &row.holders, kind: row.of_use.as_ref() }
    }
}

fn named(part: Option<&TopPart>) -> Option<(Cow<'_, str>, u64)> {
    part.map(|part| (part.name.as_str().into(), part.bytes))
}

/// The recorder, if its part is much of all: less is of no interest.
fn recorder(side: Side<'_>) -> Option<(Cow<'_, str>, u64)> {
    let TopHolders { bytes, recorder: RecorderPart { bytes: own, thread }, .. } = side.holders;
    let is_much = *own > 0 && own.saturating_mul(RECORDER_NAMED) >= *bytes;
    is_much.then_some((thread.as_str().into(), *own))
}

fn of_kind(side: Side<'_>) -> Option<(Cow<'_, str>, u64)> {
    named(side.kind)
}

/// Rows behind that of all, before that of the kind.
const PARTS: [(&str, Part); 3] = [
    ("most by function", |side| named(side.holders.function.as_ref())),
    ("by the recorder", recorder),
    ("most by task", |side| side.holders.task.as_ref().map(|task| (task.shown().into(), task.bytes))),
];

/// Heading of memory that is still allocated. Where events were lost, its frees may be among them.
pub fn live_heading(view: &View) -> &'static str {
    if view.is_lossy { "without a free event" } else { "still allocated" }
}

/// Who allocated most slab memory, and who holds most: by function, task and cache.
pub fn slab(allocated: Option<&TopRow>, live: Option<&TopRow>, view: &View) -> Table {
    table(("slab memory", "most by cache"), [allocated.map(Side::from), live.map(Side::from)], view)
}

/// Who allocated most pages, and who holds most: by function, task and use.
pub fn pages(allocated: Option<&TopPagesRow>, live: Option<&TopPagesRow>, view: &View) -> Table {
    table(("pages", "most by use"), [allocated.map(Side::from), live.map(Side::from)], view)
}

fn table(
    (title, kind): (&'static str, &'static str),
    [allocated, live]: [Option<Side<'_>>; 2],
    view: &View,
) -> Table {
    let sides = [allocated, live].into_iter().flatten();
    let is_there = |part: &Part| sides.clone().any(|side| part(side).is_some());
    let parts = PARTS.into_iter().chain([(kind, of_kind as Part)]);
    let parts = parts.filter(|(_, part)| is_there(part)).map(|(name, part)| (name, Some(part)));
    let all = sides.clone().take(1).map(|_| ("all", None));
    // Where events were lost, allocations may be among them.
    let heading = if view.is_window_lossy { "allocated, at least" } else { "allocated" };
    let cells = |side: Option<Side<'_>>, part: Option<Part>| match (side, part) {
        (Some(side), None) => [Cell::text(view.bytes(side.holders.bytes)), Cell::Empty],
        (Some(side), Some(part)) => part(side).map_or([Cell::Empty, Cell::Empty], |(name, bytes)| {
            [Cell::text(name), Cell::text(share(bytes, side.holders.bytes))]
        }),
        (None, _) => [Cell::Empty, Cell::Empty],
    };
    let rows: Vec<(&str, Option<Part>)> = all.chain(parts).collect();
    let mut table = Table::of_rows("", rows)
        .column(Column::whole(title), |(name, _)| Cell::text(*name))
        .columns([Column::name(heading), Column::number("share")], |(_, part)| cells(allocated, *part));
    if live.is_some() {
        let columns = [Column::name(live_heading(view)), Column::number("share of it")];
        table = table.columns(columns, |(_, part)| cells(live, *part));
    }
    table.into()
}
