//! `sizes`: sizes requested of kmalloc, and the size classes that serve them.

mod rows;
mod text;

pub use rows::{SizeRow, SizeRows};

use crate::collect::Collectors;
use crate::pass::selection::Selection;
use crate::render::screen::Screen;
use crate::reports::common::ReportContext;
use crate::reports::common::basis::Input;
use crate::reports::common::sorting::SortKey;
use crate::reports::common::{Context, View};
use crate::reports::grouped::{GroupKey, Groupable, Grouping, Only, RowOptions};
use crate::reports::report::Report;

/// Sums by size class, and by requested size in it.
#[derive(Debug)]
pub struct Sizes {
    by: Vec<&'static GroupKey>,
    sort: Vec<SortKey>,
}

impl Report for Sizes {
    type Options = RowOptions;
    type Handles = ();
    type Rows = SizeRows;

    const NAME: &'static str = "sizes";
    const KEY: &'static str = "sizes";
    const TITLE: &'static str = "sizes";
    const ABOUT: &'static str = "Sizes asked of kmalloc against its size classes";

    fn new(options: RowOptions, selection: &Selection) -> Self {
        Self { by: options.by.keys(), sort: options.sort.keys(selection) }
    }

    fn with_defaults() -> Option<Self> {
        Some(Self { by: Vec::new(), sort: vec![SortKey::Alloc] })
    }

    fn rests_on(&self) -> Input {
        Input::Kmallocs
    }

    fn collect(&self, _: &Context<'_, '_>, _: &mut Collectors) -> Self::Handles {}

    fn compute(&self, context: &ReportContext<'_, '_>, (): &()) -> SizeRows {
        rows::of(context, &self.sort)
    }

    fn screen(&self, rows: &SizeRows, view: &View) -> Screen {
        text::of(rows, view)
    }
}

impl Groupable for Sizes {
    fn grouping(&self) -> Grouping<'_> {
        Grouping { by: &self.by, sort: &self.sort, only: Only::Kmalloc }
    }
}
