//! `callers`: sums by call site.

mod rows;
mod text;

pub use rows::CallerRows;

use crate::collect::Collectors;
use crate::pass::Needs;
use crate::pass::selection::Selection;
use crate::render::screen::Screen;
use crate::reports::common::ReportContext;
use crate::reports::common::basis::Input;
use crate::reports::common::sorting::SortKey;
use crate::reports::common::{Context, View};
use crate::reports::grouped::{GroupKey, GroupOptions, Groupable, Only, RowOptions, WHOLE_DIR};
use crate::reports::report::Report;

/// Sums by call site and interface.
#[derive(Debug, clap::Args)]
pub struct Callers {
    /// Only call sites whose name contains TEXT
    #[arg(long, value_name = "TEXT")]
    call_site: Option<String>,
    #[command(flatten)]
    rows: RowOptions,
}

impl Callers {
    /// Grouped by directory, source file and function.
    pub fn by_source() -> Self {
        let others = ["file", "function"].into_iter().filter_map(|name| GroupKey::parse_slab(name).ok());
        let by = std::iter::once(&WHOLE_DIR).chain(others).collect();
        Self { call_site: None, rows: RowOptions { groups: GroupOptions { by }, sort: vec![SortKey::Alloc] } }
    }
}

impl Report for Callers {
    type Handles = ();
    type Rows = CallerRows;

    const NAME: &'static str = "callers";
    const KEY: &'static str = "call_sites";
    const TITLE: &'static str = "call sites";
    const ABOUT: &'static str = "Sums by call site";
    const NEEDS: Needs = Needs::CACHE_NAMES;
    const RESTS_ON: Input = Input::SlabAllocs;

    fn for_selection(self, selection: &Selection) -> Self {
        Self { rows: self.rows.for_selection(selection), ..self }
    }

    fn collect(&self, _: &Context<'_, '_>, _: &mut Collectors) -> Self::Handles {}

    fn compute(&self, context: &ReportContext<'_, '_>, (): &()) -> CallerRows {
        rows::compute(context, &self.rows.sort, self.call_site.as_deref())
    }

    fn screen(&self, context: &ReportContext<'_, '_>, rows: &CallerRows, view: &View) -> Screen {
        text::screen(self, context, rows, view)
    }
}

impl Groupable for Callers {
    fn row_options(&self) -> &RowOptions {
        &self.rows
    }

    fn only(&self) -> Only<'_> {
        self.call_site.as_deref().map_or(Only::All, Only::CallSite)
    }
}
