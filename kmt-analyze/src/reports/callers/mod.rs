//! `callers`: sums by call site.

mod rows;
mod text;

pub use rows::CallerRows;

use crate::collect::Collectors;
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
pub struct CallersOptions {
    /// Only call sites whose name contains TEXT
    #[arg(long, value_name = "TEXT")]
    call_site: Option<String>,
    #[command(flatten)]
    rows: RowOptions,
}

/// Sums by call site and interface.
#[derive(Debug)]
pub struct Callers {
    by: Vec<&'static GroupKey>,
    sort: Vec<SortKey>,
    /// Text that the names of shown call sites contain.
    filter: Option<String>,
}

impl Report for Callers {
    type Options = CallersOptions;
    type Handles = ();
    type Rows = CallerRows;

    const NAME: &'static str = "callers";
    const KEY: &'static str = "call_sites";
    const TITLE: &'static str = "call sites";
    const ABOUT: &'static str = "Sums by call site";

    fn new(options: CallersOptions, selection: &Selection) -> Self {
        Self {
            by: options.rows.by.keys(),
            sort: options.rows.sort.keys(selection),
            filter: options.call_site,
        }
    }

    fn with_defaults() -> Option<Self> {
        Some(Self { by: Vec::new(), sort: vec![SortKey::Alloc], filter: None })
    }

    fn rests_on(&self) -> Input {
        Input::SlabAllocs
    }

    fn collect(&self, _: &Context<'_, '_>, _: &mut Collectors) -> Self::Handles {}

    fn compute(&self, context: &ReportContext<'_, '_>, (): &()) -> CallerRows {
        rows::of(context, &self.sort, self.filter.as_deref())
    }

    fn screen(&self, rows: &CallerRows, view: &View) -> Screen {
        text::of(rows, view)
    }
}

impl Groupable for Callers {
    fn grouping(&self) -> Grouping<'_> {
        let only = self.filter.as_deref().map_or(Only::All, Only::CallSite);
        Grouping { by: &self.by, sort: &self.sort, only }
    }
}
