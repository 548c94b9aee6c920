//! Holders of pages in no account: rows and their table.
//!
//! With stacks a holder is a call site, without them a task.

use serde::Serialize;

use super::rows::{BalanceRows, PAGES_RECORD, PageUses};
use crate::render::look::Look;
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::reports::common::labels::Symbol;
use crate::reports::common::rows::Address;

/// Pages of one holder that are in no account, as far as their use is known.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageHolderRow {
    /// Use of the pages: `network buffers`, `drivers and other modules` ...; `kernel`: kernel memory of any use.
    pub r#use: &'static str,
    /// Bytes allocated in the trace.
    pub bytes_alloc: u64,
    /// Bytes of them still allocated at the end; `null`: frees were not recorded.
    pub bytes_live: Option<u64>,
    /// Address of the call site: the innermost function outside of allocators, DMA and buffer functions; `null`: no stack.
    pub call_site: Option<Address>,
    /// Function and offset, or the address.
    #[serde(flatten)]
    pub symbol: Symbol,
    /// Module of the call site, `[kernel]` for the core kernel; `null`: unknown.
    pub module: Option<String>,
    /// The task that allocated most of the pages, and its id.
    pub task: String,
    /// Number of tasks that allocated some.
    pub tasks_total: usize,
}

/// A sentence on the largest holder.
pub fn answer(pages: &PageUses, look: &Look) -> Option<String> {
    let first = pages.holders.first()?;
    let bytes = |row: &PageHolderRow| Cell::Bytes(row.bytes_live.unwrap_or(row.bytes_alloc)).shown(look);
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
        .column(Column::number("allocated").leaves(3), |row| Cell::Bytes(row.bytes_alloc))
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
