//! `tasks`: slab and page load by process.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::report::{RowOptions, emit, more, shown};
use super::selection::{Wants, analyse_for, task_names};
use super::session::Session;
use super::sorting::sort_rows;
use crate::analysis::page_totals::FrameTotals;
use crate::analysis::sinks::tasks::TaskSums;
use crate::analysis::sinks::{Sinks, Tasks};
use crate::failure::{Outcome, Result};
use crate::render::json;
use crate::render::table::{Align, table};
use crate::render::text::{count, escaped};

struct Row {
    pid: i32,
    comm: Option<Vec<u8>>,
    name: String,
    sums: TaskSums,
    /// Freed by other tasks: objects and bytes.
    freed_elsewhere: (u64, u64),
}

/// Prints the table.
pub fn run(session: &Session<'_>, options: &RowOptions) -> Result<Outcome> {
    let sinks = || Sinks { tasks: Some(Tasks::default()), ..Sinks::default() };
    let result = analyse_for(session, &options.selection, &Wants { sinks: &sinks, ..Wants::default() });
    let mut by_pid: BTreeMap<i32, (TaskSums, (u64, u64))> = BTreeMap::new();
    let tasks = result.balance.sinks.tasks.as_ref();
    let pid = |origin: u32| result.interner.origins.get(origin).map_or(0, |o| o.pid);
    for (number, sums) in tasks.into_iter().flat_map(|t| t.origins.iter().enumerate()) {
        let entry = &mut by_pid.entry(pid(number as u32)).or_default().0;
        entry.slab += &sums.slab;
        entry.pages += &sums.pages;
        entry.freed_here += sums.freed_here;
        entry.bytes_freed_here += sums.bytes_freed_here;
    }
    for (&(from, to), &(objects, bytes)) in tasks.into_iter().flat_map(|t| &t.handed) {
        if pid(from) != pid(to) {
            let entry = &mut by_pid.entry(pid(from)).or_default().1;
            *entry = (entry.0 + objects, entry.1 + bytes);
        }
    }
    let names = task_names(session);
    let mut rows: Vec<Row> = by_pid
        .into_iter()
        .map(|(pid, (sums, freed_elsewhere))| {
            let comm = names.get(&pid).map(|c| c.to_vec());
            let name = comm.as_ref().map_or("<...>".to_owned(), |c| escaped(c));
            Row { pid, comm, name: format!("{name}-{pid}"), sums, freed_elsewhere }
        })
        .filter(|r| {
            r.sums.slab.alloc_events + r.sums.freed_here + r.sums.slab.live > 0
                || r.sums.pages != FrameTotals::default()
        })
        .collect();
    sort_rows(&mut rows, &options.sort, |r| (&r.sums.slab, &r.name));
    let shown = shown(options.limit, rows.len());
    let page_size = result.page_size.0;
    emit(
        session,
        &result,
        options.json,
        |out| {
            out.insert("tasks_total".into(), json!(rows.len()));
            let rows = rows.iter().take(shown);
            out.insert("tasks".into(), rows.map(|r| row_json(r, page_size)).collect());
        },
        || page(&rows, shown, page_size),
    )
}

fn row_json(row: &Row, page_size: u64) -> Value {
    json!({
        "pid": row.pid,
        "comm": row.comm.as_ref().map(|c| json::text(c)),
        "slab": json::row(&row.sums.slab),
        "slab_frees": row.sums.freed_here,
        "slab_bytes_freed_by_it": row.sums.bytes_freed_here,
        "slab_freed_by_others": row.freed_elsewhere.0,
        "slab_bytes_freed_by_others": row.freed_elsewhere.1,
        "pages": json::frames(&row.sums.pages, page_size),
    })
}

fn page(rows: &[Row], shown: usize, page_size: u64) -> String {
    use Align::{Left, Right};
    let columns = [
        ("task", Left),
        ("allocs", Right),
        ("bytes_alloc", Right),
        ("live", Right),
        ("bytes_live", Right),
        ("frees", Right),
        ("freed by others", Right),
        ("pages", Right),
        ("page bytes", Right),
        ("pages live", Right),
    ];
    let cells: Vec<Vec<String>> = rows
        .iter()
        .take(shown)
        .map(|r| {
            vec![
                r.name.clone(),
                count(r.sums.slab.alloc_events),
                count(r.sums.slab.bytes_alloc),
                count(r.sums.slab.live),
                count(r.sums.slab.bytes_live),
                count(r.sums.freed_here),
                count(r.freed_elsewhere.0),
                count(r.sums.pages.frames_alloc),
                count(r.sums.pages.frames_alloc.saturating_mul(page_size)),
                count(r.sums.pages.frames_live),
            ]
        })
        .collect();
    let mut out = table(&columns, &cells) + &more(shown, rows.len(), "tasks");
    out.push_str(
        "\nObjects and pages are charged to the task that allocated them, whoever frees them. Slab objects lie in pages: the two are not to be added. Interrupts are charged to the task that they interrupt.\n",
    );
    out
}
