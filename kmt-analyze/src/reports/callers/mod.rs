//! `callers`: sums by call site.

mod rows;
mod text;

pub use rows::CallerRows;

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
    /// Only call sites whose name holds TEXT
    #[arg(long, value_name = "TEXT")]
    call_site: Option<String>,
}

/// Sums by call site and interface.
#[derive(Debug)]
pub struct Callers {
    sort: Vec<SortKey>,
    /// Only call sites whose name holds this.
    part: Option<String>,
}

impl Report for Callers {
    type Options = Options;
    type Handles = ();
    type Rows = CallerRows;

    const NAME: &'static str = "callers";
    const KEY: &'static str = "call_sites";
    const TITLE: &'static str = "call sites";
    const ABOUT: &'static str = "Sums by call site";

    fn new(options: Options, selection: &Selection) -> Self {
        Self { sort: options.sort.keys(selection), part: options.call_site }
    }

    fn usual() -> Option<Self> {
        Some(Self { sort: vec![SortKey::Alloc], part: None })
    }

    fn rests_on(&self) -> Input {
        Input::SlabAllocs
    }

    fn collect(&self, _: &Context<'_, '_>, _: &mut Collectors) -> Self::Handles {}

    fn compute(&self, context: &Context<'_, '_>, analysis: &Analysis, (): &()) -> CallerRows {
        rows::of(context, analysis, &self.sort, self.part.as_deref())
    }

    fn text(&self, rows: &CallerRows, view: &View) -> String {
        text::of(rows, view)
    }
}
