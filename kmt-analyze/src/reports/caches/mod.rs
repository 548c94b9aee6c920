//! `caches`: sums by cache and size class.

mod rows;
mod text;

pub use rows::CacheRows;

use crate::collect::Collectors;
use crate::pass::Needs;
use crate::pass::selection::Selection;
use crate::render::screen::Screen;
use crate::reports::common::ReportContext;
use crate::reports::common::basis::Input;
use crate::reports::common::{Context, View};
use crate::reports::grouped::{Groupable, Only, RowOptions};
use crate::reports::report::Report;

/// Sums by cache and size class.
#[derive(Debug, clap::Args)]
pub struct Caches {
    /// Only caches whose name contains TEXT
    #[arg(long, value_name = "TEXT")]
    cache: Option<String>,
    #[command(flatten)]
    rows: RowOptions,
}

impl Report for Caches {
    type Handles = ();
    type Rows = CacheRows;

    const NAME: &'static str = "caches";
    const ABOUT: &'static str = "Sums by cache and size class";
    const NEEDS: Needs = Needs::CACHE_NAMES;
    const RESTS_ON: Input = Input::SlabAllocs;

    fn for_selection(self, selection: &Selection) -> Self {
        Self { rows: self.rows.for_selection(selection), ..self }
    }

    fn collect(&self, _: &Context<'_, '_>, _: &mut Collectors) -> Self::Handles {}

    fn compute(&self, context: &ReportContext<'_, '_>, (): &()) -> CacheRows {
        rows::compute(context, &self.rows.sort, self.cache.as_deref())
    }

    fn screen(&self, context: &ReportContext<'_, '_>, rows: &CacheRows, view: &View) -> Screen {
        text::screen(self, context, rows, view)
    }
}

impl Groupable for Caches {
    fn row_options(&self) -> &RowOptions {
        &self.rows
    }

    fn only(&self) -> Only<'_> {
        self.cache.as_deref().map_or(Only::All, Only::Cache)
    }
}
