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
use crate::reports::common::sorting::SortKey;
use crate::reports::common::{Context, View};
use crate::reports::grouped::{GroupKey, Groupable, Grouping, Only, RowOptions};
use crate::reports::report::Report;

/// Options of the report.
#[derive(Debug, clap::Args)]
pub struct CachesOptions {
    /// Only caches whose name contains TEXT
    #[arg(long, value_name = "TEXT")]
    cache: Option<String>,
    #[command(flatten)]
    rows: RowOptions,
}

/// Sums by cache and size class.
#[derive(Debug)]
pub struct Caches {
    by: Vec<&'static GroupKey>,
    sort: Vec<SortKey>,
    /// Text that the names of shown caches contain.
    filter: Option<String>,
}

impl Report for Caches {
    type Options = CachesOptions;
    type Handles = ();
    type Rows = CacheRows;

    const NAME: &'static str = "caches";
    const KEY: &'static str = "caches";
    const TITLE: &'static str = "caches";
    const ABOUT: &'static str = "Sums by cache and size class";

    fn new(options: CachesOptions, selection: &Selection) -> Self {
        Self { by: options.rows.by.keys(), sort: options.rows.sort.keys(selection), filter: options.cache }
    }

    fn with_defaults() -> Option<Self> {
        Some(Self { by: Vec::new(), sort: vec![SortKey::Alloc], filter: None })
    }

    fn needs(&self) -> Needs {
        Needs::CACHE_NAMES
    }

    fn rests_on(&self) -> Input {
        Input::SlabAllocs
    }

    fn collect(&self, _: &Context<'_, '_>, _: &mut Collectors) -> Self::Handles {}

    fn compute(&self, context: &ReportContext<'_, '_>, (): &()) -> CacheRows {
        rows::of(context, &self.sort, self.filter.as_deref())
    }

    fn screen(&self, rows: &CacheRows, view: &View) -> Screen {
        text::of(rows, view)
    }
}

impl Groupable for Caches {
    fn grouping(&self) -> Grouping<'_> {
        let only = self.filter.as_deref().map_or(Only::All, Only::Cache);
        Grouping { by: &self.by, sort: &self.sort, only }
    }
}
