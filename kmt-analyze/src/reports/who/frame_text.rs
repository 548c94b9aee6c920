//! The screen of the allocations of a page frame.

use super::frame_rows::{FrameLifeRow, FrameRows};
use super::life_end::LifeEnd;
use crate::render::screen::{Cell, Column, CommandLine, Screen, Table};
use crate::render::words::counted;
use crate::reports::common::View;
use crate::trace::names::function_of;

/// The allocations that held a frame.
pub fn screen(rows: &FrameRows, view: &View) -> Screen {
    let mut screen = Screen::new(answer(rows, view));
    screen.table(lives(rows, view));
    if rows.allocations.iter().any(|life| life.call_site.is_none()) {
        screen.note("Call sites of pages need stacks: record with --stack kmem:mm_page_alloc.");
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
    match (&life.freed_by, lifetime(life).map(|lifetime| view.duration(lifetime))) {
        (Some(task), Some(lifetime)) => format!(", and freed after {lifetime} by {task}"),
        (None, Some(lifetime)) => format!(", and freed without an event after at most {lifetime}"),
        (_, None) => ", and is still allocated".to_owned(),
    }
}

fn lifetime(life: &FrameLifeRow) -> Option<u64> {
    life.ended.map(|ended| ended.saturating_sub(life.born))
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
        .column(Column::number("lifetime"), |life| {
            lifetime(life).map_or(Cell::Empty, |lifetime| Cell::Duration(lifetime, view.unit))
        })
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
