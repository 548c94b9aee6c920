//! The screen of all kinds of memory.

use super::rows::{KindSums, MemoryRow, MemoryRows};
use crate::render::screen::{Cell, Column, CommandLine, Screen};
use crate::render::words::counted;
use crate::reports::common::View;

/// Columns of allocated and live bytes, and their sums in a row.
type Kind = (Column, Column, fn(&MemoryRow) -> Option<KindSums>);

/// All kinds; one that was not recorded has no columns.
const KINDS: [Kind; 4] = [
    (Column::number("slab"), Column::number("slab live").leaves(1), |row| row.slab),
    (Column::number("pages"), Column::number("pages live").leaves(2), |row| row.pages),
    (Column::number("vmalloc").leaves(4), Column::number("vmalloc live").leaves(3), |row| row.vmalloc),
    (Column::number("percpu").leaves(6), Column::number("percpu live").leaves(5), |row| row.percpu),
];

/// Memory of all kinds by group.
pub fn screen(rows: &MemoryRows, view: &View) -> Screen {
    let table = &rows.table;
    if table.groups_total == 0 {
        return Screen::new("No memory was allocated, or the selection leaves none.");
    }
    let nouns = table.nouns();
    let groups = counted(table.groups_total as u64, nouns.one, nouns.several);
    let mut screen = Screen::new(format!("Memory of {groups}, the largest first."));
    if let Some((phrase, row)) = table.first_known() {
        let parts = [("slab objects", row.slab), ("pages", row.pages), ("vmalloc areas", row.vmalloc)];
        let part = |(what, sums): (&str, Option<KindSums>)| {
            let bytes = sums?.bytes_alloc.filter(|&bytes| bytes > 0)?;
            Some(format!("{} of {what}", view.bytes(bytes)))
        };
        let parts: Vec<String> = parts.into_iter().filter_map(part).collect();
        if !parts.is_empty() {
            screen.answer(format!("{phrase}: {} allocated.", parts.join(", ")));
        }
    }
    let is_recorded =
        |of: fn(&MemoryRow) -> Option<KindSums>| table.groups.iter().any(|group| of(&group.row).is_some());
    let kinds: Vec<_> = KINDS.into_iter().filter(|kind| is_recorded(kind.2)).collect();
    let columns: Vec<Column> =
        kinds.iter().flat_map(|(allocated, live, _)| [allocated.clone(), live.clone()]).collect();
    screen.table(table.table(columns, |row| {
        let cells = kinds.iter().flat_map(|(.., of)| {
            let sums = of(row);
            [Cell::bytes(sums.and_then(|s| s.bytes_alloc)), Cell::bytes(sums.and_then(|s| s.bytes_live))]
        });
        cells.collect()
    }));
    screen.note(
        "Slab objects are on pages, and so is memory of vmalloc and percpu areas: do not add up the columns.",
    );
    if rows.pages_lack_stacks && table.by.iter().any(|key| key.needs_stacks()) {
        screen.note("Pages have no call sites here: record with --stack kmem:mm_page_alloc.");
    }
    screen.next("summary", "totals of all memory");
    if table.by.iter().all(|key| key.name != "call_site") {
        let keys: String = table.by.iter().map(|key| format!("{},", key.name)).collect();
        screen.next(
            CommandLine::from("memory").option("--by", format!("{keys}call_site")),
            "call sites of each",
        );
    }
    screen
}
