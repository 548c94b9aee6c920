//! `tasks`: slab and page memory by task.
//!
//! The collectors `Tasks` and `PageUse` have the sums. Options and screen are here, rows in `rows`.

mod rows;

pub use rows::TaskRows;
use rows::{TaskRow, TasksShown};

use crate::collect::{Collectors, Handle, PageUse, Tasks};
use crate::pass::selection::Selection;
use crate::render::screen::{Cell, Column, CommandLine, Screen, Table};
use crate::render::words::{counted, share};
use crate::reports::common::basis::Input;
use crate::reports::common::cells::{slab_cells, slab_columns};
use crate::reports::common::lead::{Nouns, lead};
use crate::reports::common::sorting::SortKey;
use crate::reports::common::stated::Keys;
use crate::reports::common::{Context, ReportContext, View};
use crate::reports::grouped::{Groupable, RowOptions};
use crate::reports::report::Report;

/// Sums by the task that allocated.
#[derive(Debug, clap::Args)]
pub struct TaskReport {
    /// Groups and order.
    #[command(flatten)]
    rows: RowOptions,
}

impl Report for TaskReport {
    type Handles = (Handle<Tasks>, Handle<PageUse>);
    type Rows = TaskRows;

    const NAME: &'static str = "tasks";
    const ABOUT: &'static str = "Slab and page memory by task";
    const RESTS_ON: Input = Input::Allocs;
    const KEYS: Keys = Keys::All;

    fn for_selection(self, selection: &Selection) -> Self {
        Self { rows: self.rows.for_selection(selection) }
    }

    fn collect(&self, context: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        let pageblock_order = context.session.pageblock_order().0.into();
        (collectors.add(Tasks), collectors.add(PageUse { pageblock_order }))
    }

    fn compute(&self, context: &ReportContext<'_, '_>, handles: &Self::Handles) -> TaskRows {
        let analysis = context.analysis;
        rows::compute(context, analysis.get(handles.0), &analysis.get(handles.1).tasks, &self.rows.sort)
    }

    /// The largest tasks, and their events of the page allocator.
    fn screen(&self, rows: &TaskRows, view: &View) -> Screen {
        let sort = self.rows.first();
        let mut screen = Screen::default();
        screen.answer.extend(slab(rows, sort, view));
        screen.answer.extend(pages(&rows.shown, view));
        if screen.answer.is_empty() {
            screen.answer("No task allocated memory, or the selection leaves none.");
        }
        screen.table(load(rows, sort, view));
        screen.table(rows::page_allocator(&rows.shown));
        if !rows.tasks.is_empty() {
            screen.note("Objects and pages count for the task that allocated them, in interrupts for the interrupted task. Slab objects lie in pages: do not add the two.");
        }
        if let Some(first) = rows.tasks.first() {
            screen.next(
                CommandLine::from("callers").option("--pid", first.pid),
                format!("call sites of {}", first.name()),
            );
            screen.next("crosscpu", "objects that another CPU freed");
        }
        screen
    }
}

impl Groupable for TaskReport {
    fn options(&self) -> &RowOptions {
        &self.rows
    }
}

const NOUNS: Nouns = Nouns { one: "task", several: "tasks" };

/// Slab objects of all tasks, and the share of the first.
fn slab(rows: &TaskRows, sort: Option<SortKey>, view: &View) -> Option<String> {
    let TasksShown { slab, slab_users_total, .. } = &rows.shown;
    slab.alloc_events.filter(|allocs| *allocs > 0)?;
    let name = rows.tasks.first().map(TaskRow::name);
    let first = name.as_deref().zip(rows.tasks.first().map(|row| &row.slab));
    let sentence = lead(sort, *slab_users_total, NOUNS, slab, first, view);
    Some(format!("Slab: {sentence}{}", others(rows).unwrap_or_default()))
}

/// Tasks of the table that allocated no slab objects.
fn others(rows: &TaskRows) -> Option<String> {
    let others = (rows.tasks_total as u64).saturating_sub(rows.shown.slab_users_total);
    let others = (others > 0).then(|| counted(others, "other task", "other tasks"))?;
    Some(format!(" {others} only freed slab objects or used pages."))
}

/// Pages of all tasks, and the share of the largest.
fn pages(rows: &TasksShown, view: &View) -> Option<String> {
    let all = rows.pages.bytes_alloc.filter(|all| *all > 0)?;
    let (name, bytes) = rows.largest_page_user.as_ref()?;
    Some(format!("Pages: {} allocated, {} of it by {name}.", view.bytes(all), share(*bytes, all)))
}

/// Columns of slab objects; waste matters less for tasks, unless it sorts them.
fn columns_of_slab(sort: Option<SortKey>, view: &View) -> impl Iterator<Item = Column> {
    let column = move |column: Column| match column.heading {
        "wasted" if sort != Some(SortKey::Waste) => column.leaves(6),
        "waste %" if sort != Some(SortKey::Frag) => column.leaves(6),
        _ => column,
    };
    slab_columns(sort, view.is_lossy).map(column)
}

/// Slab objects and pages by task.
fn load(rows: &TaskRows, sort: Option<SortKey>, view: &View) -> Table {
    Table::of_rows("", &rows.tasks)
        .of("task", "tasks", rows.tasks_total)
        .column(Column::name("task"), |row| Cell::text(row.name()))
        .columns(columns_of_slab(sort, view), |row| slab_cells(&row.slab, None, view.is_lossy))
        .column(Column::number("frees").leaves(5), |row| Cell::count(row.slab_frees))
        .column(Column::number("freed by others").leaves(6), |row| Cell::count(row.slab_freed_by_others))
        .column(Column::number("pages").leaves(if sort == Some(SortKey::Pages) { 0 } else { 7 }), |row| {
            Cell::count(row.pages.pages_alloc)
        })
        .column(Column::number("page bytes").leaves(1), |row| Cell::bytes(row.pages.bytes_alloc))
        .column(
            Column::number("live pages").leaves(if sort == Some(SortKey::LivePages) { 0 } else { 2 }),
            |row| Cell::count(row.pages.pages_live),
        )
        .explain("frees", "Frees: objects that the task freed, its own and those of other tasks.")
        .into()
}
