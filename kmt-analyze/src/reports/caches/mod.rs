//! `caches`: sums by cache and size class.

mod rows;
mod text;

pub use rows::CacheRows;

use crate::collect::Collectors;
use crate::pass::Analysis;
use crate::pass::selection::Selection;
use crate::reports::common::basis::Input;
use crate::reports::common::sorting::{SortKey, SortOptions};
use crate::reports::common::{Context, View};
use crate::reports::report::Report;

/// Options of the report.
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    sort: SortOptions,
    /// Only caches whose name holds TEXT
    #[arg(long, value_name = "TEXT")]
    cache: Option<String>,
}

/// Sums by cache and size class.
#[derive(Debug)]
pub struct Caches {
    sort: Vec<SortKey>,
    /// Only caches whose name holds this.
    filter: Option<String>,
}

impl Report for Caches {
    type Options = Options;
    type Handles = ();
    type Rows = CacheRows;

    const NAME: &'static str = "caches";
    const KEY: &'static str = "caches";
    const TITLE: &'static str = "caches";
    const ABOUT: &'static str = "Sums by cache and size class";

    fn new(options: Options, selection: &Selection) -> Self {
        Self { sort: options.sort.keys(selection), filter: options.cache }
    }

    fn usual() -> Option<Self> {
        Some(Self { sort: vec![SortKey::Alloc], filter: None })
    }

    fn rests_on(&self) -> Input {
        Input::SlabAllocs
    }

    fn collect(&self, _: &Context<'_, '_>, _: &mut Collectors) -> Self::Handles {}

    fn compute(&self, context: &Context<'_, '_>, analysis: &Analysis, (): &()) -> CacheRows {
        rows::of(context, analysis, &self.sort, self.filter.as_deref())
    }

    fn text(&self, rows: &CacheRows, view: &View) -> String {
        text::of(rows, view)
    }
}
