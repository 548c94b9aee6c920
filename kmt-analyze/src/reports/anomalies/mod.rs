//! `anomalies`: objects and frees that contradict each other, each kind with its meaning.

mod finder;
mod kinds;
mod meanings;
mod rows;
mod text;

pub use rows::AnomalyRows;

use crate::collect::{Anomalies, Collectors, Handle};
use crate::render::screen::Screen;
use crate::reports::common::ReportContext;
use crate::reports::common::basis::Input;
use crate::reports::common::{Context, View};
use crate::reports::report::Report;

/// Objects and frees that contradict each other.
#[derive(Debug, Default, clap::Args)]
pub struct AnomalyReport;

impl Report for AnomalyReport {
    type Handles = Handle<Anomalies>;
    type Rows = AnomalyRows;

    const NAME: &'static str = "anomalies";
    const ABOUT: &'static str = "Events that contradict each other, with their causes";
    const RESTS_ON: Input = Input::SlabLives;

    fn collect(&self, _: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        collectors.add(Anomalies)
    }

    fn compute(&self, context: &ReportContext<'_, '_>, handle: &Self::Handles) -> AnomalyRows {
        kinds::compute(context, context.analysis.get(*handle))
    }

    fn screen(&self, _: &ReportContext<'_, '_>, rows: &AnomalyRows, view: &View) -> Screen {
        text::screen(rows, view)
    }
}
