//! `peak`: the time of most live slab memory, and the call sites that allocated it.

mod rows;
mod text;

pub use rows::PeakRows;

use crate::collect::{Collectors, Handle, Peak};
use crate::failure::{Failure, Result};
use crate::pass::Needs;
use crate::pass::condition::Key;
use crate::render::screen::Screen;
use crate::reports::common::ReportContext;
use crate::reports::common::basis::{Input, too_lossy};
use crate::reports::common::{Context, View};
use crate::reports::report::Report;

/// Share of lost events above which the report does not answer.
const LOST_PERCENT_MAX: f64 = 1.0;

/// The report.
#[derive(Debug, clap::Args)]
pub struct PeakReport;

impl Report for PeakReport {
    type Handles = Handle<Peak>;
    type Rows = PeakRows;

    const NAME: &'static str = "peak";
    const ABOUT: &'static str = "Time of most live slab memory, and its call sites";
    const NEEDS: Needs = Needs::CACHE_NAMES;
    const RESTS_ON: Input = Input::SlabLives;

    fn check(&self, context: &Context<'_, '_>) -> Result<()> {
        if context.selection.has_term_on(Key::Lifetime) {
            return Err(Failure::new(
                "peak cannot select by lifetime: objects that are live at that time have not ended",
            )
            .hint("timeline selects by lifetime: it counts objects when they have ended"));
        }
        Ok(())
    }

    fn collect(&self, context: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        let window = context.selection.bounds(context.session);
        collectors.add(Peak { window })
    }

    fn refuses(&self, context: &ReportContext<'_, '_>) -> Option<String> {
        let why = "the peak may be in a gap, or an effect of lost frees; summary gives ranges";
        let lacks = context.basis().lacks(self.rests_on());
        lacks.or_else(|| too_lossy(context, LOST_PERCENT_MAX, why))
    }

    fn compute(&self, context: &ReportContext<'_, '_>, handle: &Self::Handles) -> PeakRows {
        rows::compute(context, context.analysis.get(*handle))
    }

    fn screen(&self, _: &ReportContext<'_, '_>, rows: &PeakRows, view: &View) -> Screen {
        text::screen(rows, view)
    }
}
