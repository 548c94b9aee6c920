//! `tasks`: slab and page load by process.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::parts::{self, Page, Report, Subject};
use super::report::{RowOptions, more, shown};
use super::selection::task_names;
use super::session::Session;
use super::sorting::{SortKey, sort_rows};
use crate::analysis::page_totals::FrameTotals;
use crate::analysis::pass;
use crate::analysis::sinks::page_use::Use;
use crate::analysis::sinks::tasks::TaskSums;
use crate::analysis::sinks::{PageUse, Sinks, Tasks};
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
    /// What it did to the page allocator.
    page_use: Use,
}

/// Prints the table.
pub fn run(session: &Session<'_>, options: &RowOptions) -> Result<Outcome> {
    let report = TaskLoad { sort: options.sort.clone() };
    parts::run(session, &options.selection, options.limit, options.json, &[&report])
}

/// The report.
#[derive(Debug)]
pub struct TaskLoad {
    /// Rows sorted by these.
    pub sort: Vec<SortKey>,
}

impl Report for TaskLoad {
    fn title(&self) -> &'static str {
        "tasks"
    }

    fn want(&self, subject: &Subject<'_, '_>, sinks: &mut Sinks) {
        sinks.tasks = Some(Tasks::default());
        sinks.page_use = Some(PageUse::new(subject.session.pageblock_order().0.into()));
    }

    fn page(&self, subject: &Subject<'_, '_>, result: &mut pass::Result) -> Page {
        let (session, result) = (subject.session, &*result);

        let (pageblock_order, assumed) = session.pageblock_order();
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
        let page_use = result.balance.sinks.page_use.as_ref().map(|p| &p.tasks);
        for pid in page_use.into_iter().flat_map(|p| p.keys()) {
            by_pid.entry(*pid).or_default();
        }
        let names = task_names(session);
        let mut rows: Vec<Row> = by_pid
            .into_iter()
            .map(|(pid, (sums, freed_elsewhere))| {
                let comm = names.get(&pid).map(|c| c.to_vec());
                let name = comm.as_ref().map_or("<...>".to_owned(), |c| escaped(c));
                let page_use = page_use.and_then(|p| p.get(&pid)).copied().unwrap_or_default();
                Row { pid, comm, name: format!("{name}-{pid}"), sums, freed_elsewhere, page_use }
            })
            .filter(|r| {
                r.sums.slab.alloc_events + r.sums.freed_here + r.sums.slab.live > 0
                    || r.sums.pages != FrameTotals::default()
                    || r.page_use != Use::default()
            })
            .collect();
        sort_rows(&mut rows, &self.sort, |r| (&r.sums.slab, &r.name));
        let shown = shown(Some(subject.limit), rows.len());
        let page_size = result.page_size.0;
        Page::of(
            |out| {
                out.insert("tasks_total".into(), json!(rows.len()));
                let rows = rows.iter().take(shown);
                out.insert("tasks".into(), rows.map(|r| row_json(r, page_size)).collect());
            },
            || page(&rows, shown, page_size) + &page_use_text(&rows, shown, (pageblock_order, assumed)),
        )
    }
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
        "page_allocator": {
            "alloc_events": row.page_use.allocs,
            "zone_locked_events": row.page_use.allocs_under_lock,
            "free_events": row.page_use.frees_direct,
            "free_batched_events": row.page_use.frees_batched,
            "pcpu_pages_drained": row.page_use.pages_drained,
            "pcpu_drains": row.page_use.drains,
            "pcpu_refills": row.page_use.refills,
            "fallbacks": row.page_use.fallbacks,
            "fallbacks_causing": row.page_use.causing,
            "fallbacks_severe": row.page_use.severe,
            "fallbacks_moderate": row.page_use.moderate,
            "fallbacks_type_changed": row.page_use.changed,
        },
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

/// The columns of trace-pagealloc-postprocess.
fn page_use_text(rows: &[Row], shown: usize, (pageblock_order, assumed): (u32, bool)) -> String {
    use Align::{Left, Right};
    let mut rows: Vec<&Row> = rows.iter().filter(|r| r.page_use != Use::default()).collect();
    if rows.is_empty() {
        return String::new();
    }
    rows.sort_by(|a, b| (b.page_use.allocs, &a.name).cmp(&(a.page_use.allocs, &b.name)));
    let shown = shown.min(rows.len());
    let cells: Vec<Vec<String>> = rows
        .iter()
        .take(shown)
        .map(|r| {
            let u = &r.page_use;
            let numbers = [
                u.allocs,
                u.allocs_under_lock,
                u.frees_direct,
                u.frees_batched,
                u.pages_drained,
                u.drains,
                u.refills,
                u.fallbacks,
                u.causing,
                u.changed,
                u.severe,
                u.moderate,
            ];
            std::iter::once(r.name.clone()).chain(numbers.map(count)).collect()
        })
        .collect();
    let columns = [
        ("task", Left),
        ("allocs", Right),
        ("under lock", Right),
        ("frees", Right),
        ("batched", Right),
        ("drained", Right),
        ("drains", Right),
        ("refills", Right),
        ("fallbacks", Right),
        ("causing", Right),
        ("type changed", Right),
        ("severe", Right),
        ("moderate", Right),
    ];
    let assumed = if assumed { " (assumed)" } else { "" };
    format!(
        "\nevents of the page allocator\n{}{}\nEvents, not pages. A batched free is also a free. Drains and refills are runs of events of per-CPU lists. Fallbacks below pageblock order {pageblock_order}{assumed} are causing fragmentation, severe up to order 3.\n",
        table(&columns, &cells),
        more(shown, rows.len(), "tasks")
    )
}
