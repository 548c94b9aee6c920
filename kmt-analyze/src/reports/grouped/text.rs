//! The screen of groups.

use super::rows::GroupRows;
use crate::render::screen::{CommandLine, Screen};
use crate::reports::common::View;
use crate::reports::common::cells::{slab_cells, slab_columns};
use crate::reports::common::lead::lead;
use crate::reports::common::sorting::SortKey;

/// The largest groups, and the share of the first.
pub fn screen(report: &'static str, rows: &GroupRows, sort: Option<SortKey>, view: &View) -> Screen {
    let GroupRows { table, all } = rows;
    let first = table.first();
    let first = first.as_ref().map(|(name, row)| (name.as_str(), &row.sums));
    let answer = lead(sort, table.groups_total as u64, table.nouns(), all, first, view);
    let mut screen = Screen::new(answer);
    screen.table(table.table(slab_columns(sort, view.is_lossy), |row| {
        slab_cells(&row.sums, row.estimated.as_ref(), view.is_lossy).into_iter().collect()
    }));
    if table.by.iter().any(|key| ["call_site", "function"].contains(&key.name)) {
        screen.next("lifetimes", "how long objects live, and where they are freed");
    } else {
        let keys: String = table.by.iter().map(|key| format!("{},", key.name)).collect();
        screen
            .next(CommandLine::from(report).option("--by", format!("{keys}call_site")), "call sites of each");
    }
    screen
}
