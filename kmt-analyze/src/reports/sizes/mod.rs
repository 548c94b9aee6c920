//! `sizes`: sizes requested of kmalloc, and the size classes that serve them.

mod rows;
mod text;

pub use rows::{SizeRow, SizeRows};

use crate::collect::Collectors;
use crate::pass::selection::Selection;
use crate::render::screen::Screen;
use crate::reports::common::ReportContext;
use crate::reports::common::basis::Input;
use crate::reports::common::{Context, View};
use crate::reports::grouped::{Groupable, Only, RowOptions};
use crate::reports::report::Report;

/// Sums by size class, and by requested size in it.
#[derive(Debug, clap::Args)]
pub struct Sizes {
    #[command(flatten)]
    rows: RowOptions,
}

impl Report for Sizes {
    type Handles = ();
    type Rows = SizeRows;

    const NAME: &'static str = "sizes";
    const ABOUT: &'static str = "Sizes asked of kmalloc against its size classes";
    const RESTS_ON: Input = Input::Kmallocs;

    fn for_selection(self, selection: &Selection) -> Self {
        Self { rows: self.rows.for_selection(selection) }
    }

    fn collect(&self, _: &Context<'_, '_>, _: &mut Collectors) -> Self::Handles {}

    fn compute(&self, context: &ReportContext<'_, '_>, (): &()) -> SizeRows {
        rows::compute(context, &self.rows.sort)
    }

    fn screen(&self, context: &ReportContext<'_, '_>, rows: &SizeRows, view: &View) -> Screen {
        text::screen(context, rows, self.rows.sort.first().copied(), view)
    }
}

impl Groupable for Sizes {
    fn row_options(&self) -> &RowOptions {
        &self.rows
    }

    fn only(&self) -> Only<'_> {
        Only::Kmalloc
    }
}
