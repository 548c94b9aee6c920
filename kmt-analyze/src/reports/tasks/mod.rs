//! `tasks`: slab and page load by process.

mod rows;
mod text;

pub use rows::TaskRows;

use crate::collect::{Collectors, Handle, PageUse, Tasks};
use crate::pass::Analysis;
use crate::pass::selection::Selection;
use crate::reports::common::basis::Input;
use crate::reports::common::sorting::{SortKey, SortOptions};
use crate::reports::common::stated::Keys;
use crate::reports::common::{Context, View};
use crate::reports::report::Report;

/// Sums by the task that allocated.
#[derive(Debug)]
pub struct TaskReport {
    sort: Vec<SortKey>,
}

impl Report for TaskReport {
    type Options = SortOptions;
    type Handles = (Handle<Tasks>, Handle<PageUse>);
    type Rows = TaskRows;

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

    fn compute(&self, context: &Context<'_, '_>, analysis: &Analysis, handles: &Self::Handles) -> TaskRows {
        rows::of(context, analysis, (analysis.get(handles.0), analysis.get(handles.1)), &self.sort)
    }

    fn text(&self, rows: &TaskRows, view: &View) -> String {
        text::of(rows, view)
    }
}
