//! `temporary`: objects freed soon after their allocation.

mod rows;
mod text;

pub use rows::TemporaryRows;

use kmt_common::quantity::Span;

use super::sorting::LIFETIMES;
use super::survival::bounds;
use crate::collect::{self, Collectors, Handle};
use crate::failure::{Failure, Result};
use crate::render::screen::Screen;
use crate::reports::common::ReportContext;
use crate::reports::common::basis::Input;
use crate::reports::common::sorting::{SortKey, sort_keys};
use crate::reports::common::{Context, View};
use crate::reports::report::Report;

/// Objects freed soon after their allocation, by call site.
#[derive(Debug, clap::Args)]
pub struct Temporary {
    /// Longest lifetime of a temporary object
    #[arg(long, value_name = "TIME", value_parser = Span::parse, default_value = "100us")]
    within: Span,
    /// Sort by these keys, the most important first
    #[arg(short, long, value_parser = sort_keys(LIFETIMES), value_name = "KEY", value_delimiter = ',', default_value = "temporary")]
    sort: Vec<SortKey>,
}

impl Report for Temporary {
    /// With the longest lifetime in the clock's unit, and true if the length of a tick is known.
    type Handles = (Handle<collect::Lifetimes>, (u64, bool));
    type Rows = TemporaryRows;

    const NAME: &'static str = "temporary";
    const TITLE: &'static str = "temporary objects";
    const ABOUT: &'static str = "Objects that are freed soon after their allocation";
    const RESTS_ON: Input = Input::SlabLives;

    fn with_defaults() -> Option<Self> {
        None
    }

    fn check(&self, context: &Context<'_, '_>) -> Result<()> {
        let refused = |failure: Failure| failure.hint("--within N gives the longest lifetime in ticks");
        context.session.clock().units(self.within).map(drop).map_err(refused)
    }

    fn collect(&self, context: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        // Checked before.
        let bound = context.session.clock().units(self.within).unwrap_or(0);
        let outlive = bounds(context);
        (
            collectors.add(collect::Lifetimes { temporary_bound: Some(bound), outlive }),
            (bound, outlive.is_some()),
        )
    }

    fn compute(&self, context: &ReportContext<'_, '_>, (handle, bound): &Self::Handles) -> TemporaryRows {
        rows::compute(context, context.analysis.get(*handle), &self.sort, *bound)
    }

    fn screen(&self, _: &ReportContext<'_, '_>, rows: &TemporaryRows, view: &View) -> Screen {
        text::screen(rows, view)
    }
}
