//! Holders of pages: the table of those in no account, or of all pages by the keys of `--by`.
//!
//! With stacks a holder is a call site, without them a task.

use super::rows::{BalanceRows, PAGES_RECORD, PageGroupRow, PageHolderRow, PageUses};
use crate::render::look::Look;
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::reports::grouped::GroupTable;
use crate::trace::names::function_of;

/// A sentence on the largest holder.
pub fn answer(pages: &PageUses, look: &Look) -> Option<String> {
    let first = pages.holders.first()?;
    let bytes = |row: &PageHolderRow| Cell::bytes(row.bytes_live.or(row.bytes_alloc)).shown(look);
    let state = if first.bytes_live.is_some() { "still has" } else { "allocated" };
    Some(match pages.has_stacks {
        true => format!(
            "Of pages in no account the trace {state} most from {} ({}, {}).",
            first.symbol.as_str(),
            first.r#use,
            bytes(first)
        ),
        false => format!(
            "Of pages whose use is not known the trace {state} most from {} ({}).",
            first.task,
            bytes(first)
        ),
    })
}

/// A holder in words: `at board_ring [board]`, or `of unknown use by board-800`.
pub fn whose(row: &PageHolderRow) -> String {
    match row.call_site {
        Some(_) => format!("at {}", function_of(&row.symbol)),
        None => format!("of unknown use by {}", row.task),
    }
}

/// Adds the table of groups of `--by`.
pub fn add_groups(screen: &mut Screen, groups: &GroupTable<PageGroupRow>, has_stacks: bool) {
    let in_none = if has_stacks { "in no account" } else { "in no account or unknown use" };
    let columns = [
        Column::name("use").leaves(1),
        Column::number("allocated").leaves(3),
        Column::number("still allocated"),
        Column::number(in_none),
    ];
    let cells = |row: &PageGroupRow| {
        let name = match row.uses_total {
            0 | 1 => Cell::text(row.r#use),
            several => Cell::text(format!("{} and {} more", row.r#use, several - 1)),
        };
        let bytes = [row.bytes_live, row.bytes_live_in_no_account].map(Cell::bytes);
        [name, Cell::Bytes(row.bytes_alloc)].into_iter().chain(bytes).collect()
    };
    screen.table(groups.table(columns, cells));
    if !has_stacks && groups.by.iter().any(|key| key.needs_stacks()) {
        screen.note("Pages have no call sites here; to record them: --stack kmem:mm_page_alloc");
    }
}

/// Adds the table of holders, and where stacks are missing, the recording that has them.
pub fn add(screen: &mut Screen, rows: &BalanceRows, pages: &PageUses) {
    if pages.holders_total == 0 {
        return;
    }
    let title = match pages.has_stacks {
        true => "Pages in no account, by call site",
        false => "Pages in no account or of unknown use, by task",
    };
    let (one, several) = if pages.has_stacks { ("call site", "call sites") } else { ("task", "tasks") };
    let task = |row: &&PageHolderRow| match row.tasks_total {
        0 | 1 => Cell::text(&row.task),
        several => Cell::text(format!("{} and {} more", row.task, several - 1)),
    };
    let table = Table::of_rows(title, &pages.holders)
        .of(one, several, pages.holders_total)
        .column_if(pages.has_stacks, Column::name("call site"), |row| Cell::from(&row.symbol))
        .column(if pages.has_stacks { Column::name("task").leaves(2) } else { Column::name("task") }, task)
        .column(Column::name("use").leaves(1), |row| Cell::text(row.r#use))
        .column(Column::number("allocated").leaves(3), |row| Cell::bytes(row.bytes_alloc))
        .column(Column::number("still allocated"), |row| Cell::bytes(row.bytes_live));
    screen.table(table);
    if !pages.has_stacks {
        screen.note(
            "kernel: pages of slabs, kernel stacks, vmalloc, drivers or buffers. Only call stacks show which.",
        );
        if rows.record != PAGES_RECORD {
            screen.lines("Recording with the call sites of pages", vec![PAGES_RECORD.to_owned()]);
        }
    }
}
