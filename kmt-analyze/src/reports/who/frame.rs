//! Allocations that held a page frame: rows and screen.
//!
//! The collector `WhoFrame` keeps them, each with its end. Names of tasks and functions are those of their time.

use serde::Serialize;

use super::{LifeEnd, ended, lifetime_cell};
use crate::collect::who::{FrameHistory, FrameLife};
use crate::render::screen::{Cell, Column, CommandLine, Screen, Table};
use crate::render::words::{counted, escaped};
use crate::reports::common::labels::Symbol;
use crate::reports::common::page_sums::caller;
use crate::reports::common::rows::Address;
use crate::reports::common::{ReportContext, View};
use crate::trace::ages::Ages;
use crate::trace::names::function_of;

/// A page frame and its allocations.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FrameRows {
    /// Number of the page frame.
    pub pfn: u64,
    /// Number of allocations, including those beyond the limit of rows.
    pub allocations_total: usize,
    /// Allocations that held the frame in the selected time, by time.
    pub allocations: Vec<FrameLifeRow>,
    /// Frees of the frame in the selected time that no traced allocation precedes.
    pub frees_unmatched: u64,
}

/// An allocation that held the frame.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FrameLifeRow {
    /// First frame of the allocation.
    pub first_pfn: u64,
    /// log2 of its pages.
    pub order: u8,
    /// The kernel's number of the migrate type.
    pub migratetype: i32,
    /// Name of the migrate type.
    pub migratetype_text: String,
    /// Names of the allocation flags.
    pub gfp_flags_text: String,
    /// Time of the allocation, in the clock's unit.
    pub born: u64,
    /// Address of the first function in its stack outside the allocator; `null`: no stack.
    pub call_site: Option<Address>,
    /// Function and offset of the call site; `(no stack)`: none was recorded.
    #[serde(flatten)]
    pub symbol: Symbol,
    /// Thread id of the allocating task.
    pub pid: i32,
    /// CPU of the allocation.
    pub cpu: u32,
    /// Name and thread id of the allocating task.
    pub task: String,
    /// Kind of its end.
    pub end: LifeEnd,
    /// Time at which the frame was freed, or allocated again; `null`: still allocated.
    pub ended: Option<u64>,
    /// Time from its allocation to that; `null`: still allocated, or allocated before the clock ran.
    pub lifetime: Option<u64>,
    /// Thread id of the freeing task; `null`: no free event.
    pub freed_by_pid: Option<i32>,
    /// CPU of the free; `null`: no free event.
    pub freed_on_cpu: Option<u32>,
    /// Name and thread id of the freeing task; `null`: no free event.
    pub freed_by: Option<String>,
    /// True if it crosses a loss.
    pub uncertain: bool,
}

/// Allocations of a frame in the selected time.
pub fn compute(context: &ReportContext<'_, '_>, history: &FrameHistory, pfn: u64) -> FrameRows {
    let window = context.selection.bounds(context.session);
    let ages = context.session.ages();
    let lives: Vec<&FrameLife> = history.lives.iter().filter(|life| is_in(life, window)).collect();
    FrameRows {
        pfn,
        allocations_total: lives.len(),
        allocations: lives.iter().take(context.limit).map(|life| row(context, life, ages)).collect(),
        frees_unmatched: history.frees_unmatched,
    }
}

/// True if the allocation held the frame in the window; at an instant, if it held the frame after the events of that
/// time.
fn is_in(life: &FrameLife, (first, last): (u64, u64)) -> bool {
    let is_at_end = first < last;
    let ends_later = life.end.is_none_or(|end| end.time > first || (end.time == first && is_at_end));
    life.born <= last && ends_later
}

fn row(context: &ReportContext<'_, '_>, life: &FrameLife, ages: Ages) -> FrameLifeRow {
    let (analysis, labels) = (context.analysis, context.labels());
    let site = analysis.interner.pages.get(life.site).copied().unwrap_or_default();
    let call_site = call_site(context, life.stack);
    let freed = life.end.and_then(|end| Some((end.freed_by?, end.time)));
    FrameLifeRow {
        first_pfn: life.pfn,
        order: site.order,
        migratetype: site.migratetype,
        migratetype_text: analysis.migratetypes.name(site.migratetype),
        gfp_flags_text: escaped(&analysis.interner.gfp_text(site.gfp_flags)),
        born: life.born,
        call_site: call_site.map(Address),
        symbol: labels.of_pages(call_site),
        pid: life.origin.pid,
        cpu: life.origin.cpu,
        task: labels.task_at(life.origin.pid, life.born),
        end: match life.end.map(|end| end.freed_by.is_some()) {
            None => LifeEnd::Live,
            Some(true) => LifeEnd::Freed,
            Some(false) => LifeEnd::FreedUnseen,
        },
        ended: life.end.map(|end| end.time),
        lifetime: life.end.and_then(|end| ages.length(life.born, end.time)),
        freed_by_pid: freed.map(|(origin, _)| origin.pid),
        freed_on_cpu: freed.map(|(origin, _)| origin.cpu),
        freed_by: freed.map(|(origin, time)| labels.task_at(origin.pid, time)),
        uncertain: context.session.losses.overlaps(life.born, life.end.map_or(u64::MAX, |end| end.time)),
    }
}

/// The first function of a stack outside the allocator.
fn call_site(context: &ReportContext<'_, '_>, stack: u32) -> Option<u64> {
    caller(context.analysis.interner.stacks.get(stack)?, context.symbols())
}

/// The allocations that held a frame.
pub fn screen(rows: &FrameRows, view: &View) -> Screen {
    let mut screen = Screen::new(answer(rows, view));
    screen.table(lives(rows, view));
    if rows.allocations.iter().any(|life| life.call_site.is_none()) {
        screen.note("Call sites of pages need stacks, which were not recorded.");
        screen.next(
            CommandLine::recording("--stack kmem:mm_page_alloc"),
            "a recording with call sites of pages",
        );
    }
    if rows.allocations.iter().any(|life| life.end == LifeEnd::FreedUnseen) {
        screen.note("Implied free: the page was allocated again, and no free event was recorded; the lifetime is the longest possible.");
    }
    if rows.allocations.iter().any(|life| life.uncertain) {
        screen.note("Uncertain: the allocation crosses a loss.");
    }
    if rows.frees_unmatched > 0 {
        let frees = counted(rows.frees_unmatched, "free", "frees");
        screen.note(format!(
            "{frees} of the page without a traced allocation: it is older than the trace, or has no event."
        ));
    }
    screen.next(
        CommandLine::from("dump").option("--where", format!("pfn={:#x}", rows.pfn)),
        "the events of this page",
    );
    if rows.allocations.last().is_some_and(|life| life.call_site.is_some()) {
        screen.next("pages --by call_site", "all pages of each call site");
    }
    screen
}

/// One sentence: the number of allocations, and the last of them.
fn answer(rows: &FrameRows, view: &View) -> String {
    let pfn = rows.pfn;
    let Some(last) = rows.allocations.last() else {
        return format!(
            "No allocation in the trace held page frame {pfn:#x}. Pages allocated before the trace are unknown."
        );
    };
    let held = counted(rows.allocations_total as u64, "allocation", "allocations");
    let which = match (rows.allocations_total, rows.allocations.len()) {
        (1, _) => "it",
        (total, shown) if shown < total => "the last one shown",
        _ => "the last one",
    };
    let at = last.call_site.map_or(String::new(), |_| format!(" in {}", function_of(&last.symbol)));
    format!(
        "{held} held page frame {pfn:#x}; {which}, of order {}, was allocated at {} by {}{at}{}.",
        last.order,
        view.time(last.born),
        last.task,
        end(last, view)
    )
}

/// The end of an allocation, in words.
fn end(life: &FrameLifeRow, view: &View) -> String {
    let end = ended(&life.end, life.lifetime, view);
    match &life.freed_by {
        Some(task) => format!("{end} by {task}"),
        None => end,
    }
}

/// A row for each allocation.
fn lives(rows: &FrameRows, view: &View) -> Table {
    Table::of_rows("", &rows.allocations)
        .of("allocation", "allocations", rows.allocations_total)
        .column(Column::number("allocated"), |life| Cell::text(view.time(life.born)))
        .column(Column::number("order"), |life| Cell::Count(life.order.into()))
        .column(Column::text("first frame").leaves(6), |life| Cell::text(format!("{:#x}", life.first_pfn)))
        .column(Column::whole("migrate type").leaves(5), |life| Cell::text(&life.migratetype_text))
        .column(Column::name("call site"), |life| Cell::from(&life.symbol))
        .column(Column::name("task").leaves(2), |life| Cell::text(&life.task))
        .column(Column::number("cpu").leaves(7), |life| Cell::Count(life.cpu.into()))
        .column(Column::number("lifetime"), |life| lifetime_cell(&life.end, life.lifetime, view))
        .column(Column::whole("end").leaves(1), |life| {
            Cell::text(match life.end {
                LifeEnd::Freed => "freed",
                LifeEnd::FreedUnseen => "implied free",
                LifeEnd::Live => "still allocated",
            })
        })
        .column(Column::name("freed by").leaves(3), |life| {
            life.freed_by.as_ref().map_or(Cell::Empty, Cell::text)
        })
        .column(Column::number("freed on cpu").leaves(8), |life| {
            life.freed_on_cpu.map_or(Cell::Empty, |cpu| Cell::Count(cpu.into()))
        })
        .column(Column::text("trust").leaves(4), |life| {
            Cell::text(if life.uncertain { "uncertain" } else { "" })
        })
        .into()
}
