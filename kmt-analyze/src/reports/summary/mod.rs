//! `summary`: totals of slab objects and pages.

mod page_text;
mod ranges;
mod rows;
mod shown;
mod slab;
mod slab_text;
mod text;

pub use rows::SummaryRows;

use crate::collect::Collectors;
use crate::pass::Needs;
use crate::render::screen::Screen;
use crate::reports::common::ReportContext;
use crate::reports::common::basis::Input;
use crate::reports::common::stated::Keys;
use crate::reports::common::{Context, View};
use crate::reports::report::Report;

/// Totals of slab objects and pages.
#[derive(Debug, clap::Args)]
pub struct Summary;

impl Report for Summary {
    type Handles = ();
    type Rows = SummaryRows;

    const NAME: &'static str = "summary";
    const ABOUT: &'static str = "Slab and page memory: allocated, freed, live";
    const RESTS_ON: Input = Input::Nothing;
    const KEYS: Keys = Keys::All;
    const NEEDS: Needs = Needs::RANGES.union(Needs::CACHE_NAMES);
    const HAS_LINES: bool = false;

    fn collect(&self, _: &Context<'_, '_>, _: &mut Collectors) -> Self::Handles {}

    fn compute(&self, context: &ReportContext<'_, '_>, (): &()) -> SummaryRows {
        rows::compute(context)
    }

    fn screen(&self, context: &ReportContext<'_, '_>, rows: &SummaryRows, view: &View) -> Screen {
        text::screen(context, rows, view)
    }
}
