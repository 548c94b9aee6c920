//! `tasks`: slab and page load by process.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::collect::Collectors;
use crate::collect::Handle;
use crate::collect::page_use::Use;
use crate::collect::tasks::OriginSums;
use crate::collect::{PageUse, Tasks};
use crate::ledger::page_totals::FrameTotals;
use crate::pass;
use crate::pass::Analysis;
use crate::pass::selection::Selection;
use crate::render::json;
use crate::render::table::{Align, table};
use crate::render::text::{count, escaped};
use crate::reports::common::basis::{Basis, Input};
use crate::reports::common::known::{Known, cell, legend};
use crate::reports::common::sorting::SortOptions;
use crate::reports::common::sorting::{SortKey, sort_rows};
use crate::reports::common::stated::Keys;
use crate::reports::common::sums::{more, shown};
use crate::reports::common::trust::recorded_class;
use crate::reports::common::{Context, View};
use crate::reports::report::{Page, Report};
use crate::trace::session::Session;
use crate::trace::session::task_names;

struct Row {
    pid: i32,
    comm: Option<Vec<u8>>,
    name: String,
    sums: OriginSums,
    /// Freed by other tasks: objects and bytes.
    freed_elsewhere: (u64, u64),
    /// What it did to the page allocator.
    page_use: Use,
}

/// The report.
#[derive(Debug)]
pub struct TaskReport {
    /// Rows sorted by these.
    pub sort: Vec<SortKey>,
}

impl Report for TaskReport {
    type Options = SortOptions;
    type Handles = (Handle<Tasks>, Handle<PageUse>);
    type Rows = Page;

    const NAME: &'static str = "tasks";
    const KEY: &'static str = "tasks";
    const TITLE: &'static str = "tasks";
    const ABOUT: &'static str = "Slab and page load by process";

    fn new(options: SortOptions, selection: &Selection) -> Self {
        Self { sort: options.keys(selection) }
    }

    fn usual() -> Option<Self> {
        Some(Self { sort: vec![SortKey::Alloc] })
    }

    fn rests_on(&self) -> Input {
        Input::Allocs
    }

    fn keys(&self) -> Keys {
        Keys::All
    }

    fn collect(&self, context: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        let pageblock_order = context.session.pageblock_order().0.into();
        (collectors.add(Tasks), collectors.add(PageUse { pageblock_order }))
    }

    fn compute(&self, context: &Context<'_, '_>, result: &Analysis, handles: &Self::Handles) -> Page {
        let session = context.session;

        let (pageblock_order, assumed) = session.pageblock_order();
        let mut by_pid: BTreeMap<i32, (OriginSums, (u64, u64))> = BTreeMap::new();
        let (tasks, page_use) = (result.get(handles.0), result.get(handles.1));
        let pid = |origin: u32| result.interner.origins.get(origin).map_or(0, |o| o.pid);
        for (number, sums) in tasks.origins.iter().enumerate() {
            let entry = &mut by_pid.entry(pid(number as u32)).or_default().0;
            entry.slab += &sums.slab;
            entry.pages += &sums.pages;
            entry.freed_here += sums.freed_here;
            entry.bytes_freed_here += sums.bytes_freed_here;
        }
        for (&(from, to), &(objects, bytes)) in &tasks.handed {
            if pid(from) != pid(to) {
                let entry = &mut by_pid.entry(pid(from)).or_default().1;
                *entry = (entry.0 + objects, entry.1 + bytes);
            }
        }
        for pid in page_use.keys() {
            by_pid.entry(*pid).or_default();
        }
        let names = task_names(session);
        let mut rows: Vec<Row> = by_pid
            .into_iter()
            .map(|(pid, (sums, freed_elsewhere))| {
                let comm = names.get(&pid).map(|c| c.to_vec());
                let name = comm.as_ref().map_or("<...>".to_owned(), |c| escaped(c));
                let page_use = page_use.get(&pid).copied().unwrap_or_default();
                Row { pid, comm, name: format!("{name}-{pid}"), sums, freed_elsewhere, page_use }
            })
            .filter(|r| {
                r.sums.slab.alloc_events + r.sums.freed_here + r.sums.slab.live > 0
                    || r.sums.pages != FrameTotals::default()
                    || r.page_use != Use::default()
            })
            .collect();
        sort_rows(&mut rows, &self.sort, |r| (r.sums.slab, &r.name));
        let shown = shown(Some(context.limit), rows.len());
        let page_size = result.page_size.0;
        let known = Recorded::of(session, result);
        Page::of(
            |out| {
                out.insert("tasks_total".into(), json!(rows.len()));
                let rows = rows.iter().take(shown);
                out.insert("tasks".into(), rows.map(|r| row_json(r, page_size, &known)).collect());
            },
            || {
                page(&rows, shown, page_size, &known, session.losses.any())
                    + &page_use_text(&rows, shown, (pageblock_order, assumed), &known)
            },
        )
    }

    fn text(&self, rows: &Page, _: &View) -> String {
        rows.text.clone()
    }
}

/// Which numbers of a row are known.
struct Recorded {
    slab: Known,
    pages: Known,
    /// mm_page_alloc_zone_locked, mm_page_free_batched, mm_page_pcpu_drain, mm_page_alloc_extfrag.
    zone_locked: bool,
    batched: bool,
    drained: bool,
    fallbacks: bool,
}

impl Recorded {
    fn of(session: &Session<'_>, result: &pass::Analysis) -> Self {
        let basis = Basis::of(session, result);
        let has = |name: &str| recorded_class(session, result, |class| class.name == name) == Some(true);
        Self {
            slab: Known::slab(&basis, None),
            pages: Known::pages(&basis),
            zone_locked: has("mm_page_alloc_zone_locked"),
            batched: has("mm_page_free_batched"),
            drained: has("mm_page_pcpu_drain"),
            fallbacks: has("mm_page_alloc_extfrag"),
        }
    }

    /// The columns of trace-pagealloc-postprocess in their order: names, numbers, whether they are known.
    fn page_use(&self, u: &Use) -> [(&'static str, u64, bool); 12] {
        let fallbacks = self.fallbacks && u.untold == 0;
        [
            ("alloc_events", u.allocs, self.pages.allocs),
            ("zone_locked_events", u.allocs_under_lock, self.zone_locked),
            ("free_events", u.frees_direct, self.pages.frees),
            ("free_batched_events", u.frees_batched, self.batched),
            ("pcpu_pages_drained", u.pages_drained, self.drained),
            ("pcpu_drains", u.drains, self.drained),
            ("pcpu_refills", u.refills, self.zone_locked),
            ("fallbacks", u.fallbacks, self.fallbacks),
            ("fallbacks_causing", u.causing, fallbacks),
            ("fallbacks_type_changed", u.changed, fallbacks),
            ("fallbacks_severe", u.severe, fallbacks),
            ("fallbacks_moderate", u.moderate, fallbacks),
        ]
    }
}

fn row_json(row: &Row, page_size: u64, known: &Recorded) -> Value {
    let told = |is_known: bool, number: u64| json!(is_known.then_some(number));
    let page_use = known.page_use(&row.page_use).into_iter();
    let page_use: Map<String, Value> =
        page_use.map(|(name, number, is_known)| (name.to_owned(), told(is_known, number))).collect();
    json!({
        "pid": row.pid,
        "comm": row.comm.as_ref().map(|c| json::text(c)),
        "slab": known.slab.mask(json::row(&row.sums.slab)),
        "slab_frees": told(known.slab.frees, row.sums.freed_here),
        "slab_bytes_freed_by_it": told(known.slab.lives, row.sums.bytes_freed_here),
        "slab_freed_by_others": told(known.slab.lives, row.freed_elsewhere.0),
        "slab_bytes_freed_by_others": told(known.slab.lives, row.freed_elsewhere.1),
        "pages": known.pages.mask(json::frames(&row.sums.pages, page_size)),
        "page_allocator": page_use,
    })
}

fn page(rows: &[Row], shown: usize, page_size: u64, known: &Recorded, is_lossy: bool) -> String {
    use Align::{Left, Right};
    let mut columns = vec![
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
    columns.extend(is_lossy.then_some(("uncertain", Right)));
    let cells: Vec<Vec<String>> = rows
        .iter()
        .take(shown)
        .map(|r| {
            let mut cells = vec![
                r.name.clone(),
                cell(known.slab.allocs, count(r.sums.slab.alloc_events)),
                cell(known.slab.allocs, count(r.sums.slab.bytes_alloc)),
                cell(known.slab.lives, count(r.sums.slab.live)),
                cell(known.slab.lives, count(r.sums.slab.bytes_live)),
                cell(known.slab.frees, count(r.sums.freed_here)),
                cell(known.slab.lives, count(r.freed_elsewhere.0)),
                cell(known.pages.allocs, count(r.sums.pages.frames_alloc)),
                cell(known.pages.allocs, count(r.sums.pages.frames_alloc.saturating_mul(page_size))),
                cell(known.pages.lives, count(r.sums.pages.frames_live)),
            ];
            cells.extend(is_lossy.then(|| cell(known.slab.lives, count(r.sums.slab.uncertain))));
            cells
        })
        .collect();
    let mut out = table(&columns, &cells)
        + &more(shown, rows.len(), "tasks")
        + legend(known.slab.all() && known.pages.all());
    out.push_str(
        "\nObjects and pages are charged to the task that allocated them, whoever frees them. Slab objects lie in pages: the two are not to be added. Interrupts are charged to the task that they interrupt.\n",
    );
    out
}

/// The columns of trace-pagealloc-postprocess.
fn page_use_text(
    rows: &[Row],
    shown: usize,
    (pageblock_order, assumed): (u32, bool),
    known: &Recorded,
) -> String {
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
            let numbers =
                known.page_use(&r.page_use).map(|(_, number, is_known)| cell(is_known, count(number)));
            std::iter::once(r.name.clone()).chain(numbers).collect()
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
