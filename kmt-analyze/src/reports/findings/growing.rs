//! Who allocates memory that grows, and where, as fields.
//!
//! Programs that read the JSON need the numbers and names that the sentence of a finding has, without parsing it. They come
//! from the rows of `leaks`, so both reports agree. `growth` puts them into findings.

use serde::Serialize;

use crate::reports::common::rows::Address;
use crate::reports::leaks::judge::verdict::Verdict;
use crate::reports::leaks::{LeakRow, LeakTables, UnseenRow};
use crate::trace::names::function_of;

/// Memory that grows.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Growing {
    /// Verdict of `leaks` on its first call site, or kind of pages; `null`: no event shows the growth.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub verdict: Option<Verdict>,
    /// Function of its first call site; `null`: unknown.
    pub function: Option<String>,
    /// Function and offset of the call site, as in `leaks`; `null`: unknown.
    pub symbol: Option<String>,
    /// Address of the call site; `null`: unknown.
    pub call_site: Option<Address>,
    /// Function of the call site that grows most, where that is not the first one.
    pub largest_function: Option<String>,
    /// Cache or size class of its objects, as in `leaks`; `null`: pages.
    pub cache: Option<String>,
    /// Order, flags and migrate type of its pages; `null`: slab objects, or pages of a call site.
    pub page_kind: Option<String>,
    /// Time from which it grows, in the clock's unit; `null`: from the begin of the window, or unknown.
    pub since: Option<u64>,
    /// Tasks that allocated most of it, those with most first.
    pub tasks: Vec<GrowingTask>,
    /// Number of call sites, or of kinds of pages, that grow together; `null`: unknown.
    pub call_sites: Option<usize>,
    /// Number of its row in `leaks.families`; `null`: in none.
    pub family: Option<usize>,
}

/// A task, or short-lived tasks of one name, that allocated memory that grows.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GrowingTask {
    /// Name and id; of several their number and name: `883 short-lived tasks named head`.
    pub task: String,
    /// Share of the task, or of these tasks, in the growth, in percent; `null`: unknown.
    pub percent: Option<f64>,
}

impl Growing {
    /// A family of call sites, by its number; `None`: it has no rows.
    pub fn of_family(tables: &LeakTables, number: usize) -> Option<Self> {
        let family = tables.text.families.get(number)?;
        let leader = family.table.rows.first()?;
        Some(Self {
            largest_function: family.largest.as_ref().map(|row| function_of(&row.symbol)),
            tasks: tasks(&family.holders, family.growth.per_window),
            call_sites: Some(family.table.total),
            family: Some(number),
            ..Self::of_row(leader)
        })
    }

    /// Growth of pages, by its number; `None`: there is none.
    pub fn of_pages(tables: &LeakTables, number: usize) -> Option<Self> {
        let growth = tables.text.page_growths.get(number)?;
        Some(Self {
            tasks: tasks(&growth.holders, growth.growth.per_window),
            call_sites: Some(growth.sum.rows),
            ..Self::of_row(&growth.most)
        })
    }

    /// A call site of which one task's objects may grow.
    pub fn possible(row: &LeakRow) -> Self {
        let parts: Vec<(String, u64)> =
            row.holders.iter().map(|holder| (holder.task.clone(), holder.old_survivors)).collect();
        Self { tasks: tasks(&parts, row.old_survivors), call_sites: Some(1), ..Self::of_row(row) }
    }

    /// A cache that grew without events.
    pub fn unseen(row: &UnseenRow) -> Self {
        let task = |task: &String| GrowingTask { task: task.clone(), percent: None };
        Self {
            cache: Some(row.growth.cache.clone()),
            tasks: row.tasks.iter().map(task).collect(),
            ..Self::default()
        }
    }

    fn of_row(row: &LeakRow) -> Self {
        let is_slab = row.api.is_some();
        let has_site = row.call_site.is_some();
        let symbol: &str = &row.symbol;
        Self {
            verdict: Some(row.verdict),
            function: has_site.then(|| function_of(symbol)),
            symbol: has_site.then(|| symbol.to_owned()),
            call_site: row.call_site,
            since: row.since,
            cache: is_slab.then(|| row.cache.clone()),
            page_kind: (!is_slab && !has_site).then(|| format!("{symbol} ({})", row.cache)),
            ..Self::default()
        }
    }
}

/// Tasks with their parts of a whole.
fn tasks(parts: &[(String, u64)], whole: u64) -> Vec<GrowingTask> {
    let percent = |part: u64| (whole > 0).then(|| (100.0 * part as f64 / whole as f64).min(100.0));
    let parts = parts.iter().filter(|(_, part)| *part > 0);
    parts.map(|(task, part)| GrowingTask { task: task.clone(), percent: percent(*part) }).collect()
}
