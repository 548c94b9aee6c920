//! Page pools of the network: rows and their table.

use serde::Serialize;

use crate::render::screen::{Cell, Column, Table};

/// One pool of pages for packets.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PagePoolRow {
    /// Number of the pool, in the order of their first events.
    pub pool: usize,
    /// The task that took most pages into the pool; `null`: none was taken in the trace.
    pub task: Option<String>,
    /// Bytes of pages taken in the trace that the pool still counts: in the pool or in packets.
    pub bytes_held: u64,
    /// Pages taken in the trace, by events.
    pub holds: u64,
    /// Pages given back.
    pub releases: u64,
    /// Those of them that the pool took before the trace.
    pub releases_older: u64,
}

/// Pools that the screen shows.
const POOLS: usize = 8;

/// The table of pools.
pub fn table(pools: &[PagePoolRow]) -> Table {
    Table::of_rows("Pages of page pools (network buffers)", pools.iter().take(POOLS))
        .of("pool", "pools", pools.len())
        .column(Column::name("pool"), |row| Cell::text(format!("pool {}", row.pool)))
        .column(Column::text("task").leaves(1), |row| row.task.as_ref().map_or(Cell::Empty, Cell::text))
        .column(Column::number("still held"), |row| Cell::Bytes(row.bytes_held))
        .column(Column::number("taken").leaves(2), |row| Cell::Count(row.holds))
        .column(Column::number("given back").leaves(2), |row| Cell::Count(row.releases))
        .column(Column::number("older given back").leaves(3), |row| Cell::Count(row.releases_older))
        .into()
}
