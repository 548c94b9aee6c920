//! `tasks`: slab and page memory by task.

mod page_allocator;
mod rows;
mod text;

pub use rows::TaskRows;

use crate::collect::{Collectors, Handle, PageUse, Tasks};
use crate::pass::selection::Selection;
use crate::render::screen::Screen;
use crate::reports::common::ReportContext;
use crate::reports::common::basis::Input;
use crate::reports::common::stated::Keys;
use crate::reports::common::{Context, View};
use crate::reports::grouped::{Groupable, RowOptions};
use crate::reports::report::Report;

/// Sums by the task that allocated.
#[derive(Debug, clap::Args)]
pub struct TaskReport {
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

    fn screen(&self, context: &ReportContext<'_, '_>, rows: &TaskRows, view: &View) -> Screen {
        text::screen(context, rows, self.rows.sort.first().copied(), view)
    }
}

impl Groupable for TaskReport {
    fn row_options(&self) -> &RowOptions {
        &self.rows
    }
}
