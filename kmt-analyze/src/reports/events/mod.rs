//! `events`: counts and rates of all events, by event, task and CPU.

mod counts;
mod rows;
mod text;

pub use rows::EventRows;

use crate::collect::Collectors;
use crate::pass::Needs;
use crate::render::screen::Screen;
use crate::reports::common::ReportContext;
use crate::reports::common::basis::Input;
use crate::reports::common::stated::Keys;
use crate::reports::common::{Context, View};
use crate::reports::report::Report;

/// The report.
#[derive(Debug, clap::Args)]
pub struct Events;

impl Report for Events {
    type Handles = ();
    type Rows = EventRows;

    const NAME: &'static str = "events";
    const ABOUT: &'static str = "Counts and rates of events, by event, task and CPU";
    const RESTS_ON: Input = Input::Nothing;
    const KEYS: Keys = Keys::Tasks;
    const NEEDS: Needs = Needs::EVENT_COUNTS;
    const ACCOUNTS: bool = false;

    fn collect(&self, _: &Context<'_, '_>, _: &mut Collectors) -> Self::Handles {}

    fn compute(&self, context: &ReportContext<'_, '_>, (): &()) -> EventRows {
        rows::compute(context)
    }

    fn screen(&self, context: &ReportContext<'_, '_>, rows: &EventRows, view: &View) -> Screen {
        text::screen(context, rows, view)
    }
}
