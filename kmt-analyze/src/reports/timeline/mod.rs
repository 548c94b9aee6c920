//! `timeline`: live bytes, allocations and frees over time, by any key.

mod lines;
mod lines_text;
mod names;
mod rows;
mod text;

pub use lines::LineRow;
pub use names::TimelineKey;
pub use rows::{TimelineRow, TimelineRows};

use clap::builder::TypedValueParser;

use crate::collect::{Collectors, Handle, Timeline};
use crate::limits;
use crate::pass::Needs;
use crate::render::screen::Screen;
use crate::render::words::{count, counted};
use crate::reports::common::basis::Input;
use crate::reports::common::stated::Keys;
use crate::reports::common::{Context, ReportContext, View};
use crate::reports::report::Report;

/// Numbers of each kind in all lines: lines × steps. The lines beyond it are part of the others.
const NUMBERS_MAX: usize = 1_000_000;

/// The report.
#[derive(Debug, clap::Args)]
pub struct TimelineReport {
    /// Key of the lines
    #[arg(long, value_enum, default_value = "kind")]
    pub by: TimelineKey,
    /// Number of steps
    #[arg(long, value_name = "N", default_value = "20", value_parser = clap::value_parser!(u32).range(1..=1_000).map(|n| n as usize))]
    pub steps: usize,
    /// Show at most N lines, and the sum of the others; 0: all lines
    #[arg(short, long = "lines", value_name = "N", default_value = "8", value_parser = limits::lines)]
    pub lines: usize,
}

impl TimelineReport {
    /// Most lines that are computed, whatever `lines` is.
    fn lines_max(&self) -> usize {
        self.lines.min(NUMBERS_MAX / self.steps.max(1))
    }

    /// A note where the trace has more lines than are computed, and `lines` asks for them.
    pub fn note(&self, timeline: &TimelineRow) -> Option<String> {
        let most = self.lines_max();
        (most < self.lines && timeline.lines.len() > most).then(|| {
            format!(
                "At most {} lines of {} are computed; the last line is the sum of the others.",
                count(most as u64),
                counted(self.steps as u64, "step", "steps")
            )
        })
    }
}

impl Report for TimelineReport {
    type Handles = Handle<Timeline>;
    type Rows = TimelineRows;

    const NAME: &'static str = "timeline";
    const ABOUT: &'static str = "Live memory over time";
    const NEEDS: Needs = Needs::CACHE_NAMES;
    const RESTS_ON: Input = Input::Lives;
    const KEYS: Keys = Keys::All;
    const HAS_LINES: bool = false;

    fn collect(&self, context: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        let (first, last) = context.selection.span(context.session);
        collectors.add(Timeline::new(first, last, self.steps, self.by.is_of_origins()))
    }

    fn compute(&self, context: &ReportContext<'_, '_>, handle: &Self::Handles) -> TimelineRows {
        rows::compute(context, context.analysis.get(*handle), self)
    }

    fn screen(&self, context: &ReportContext<'_, '_>, rows: &TimelineRows, view: &View) -> Screen {
        let mut screen = text::screen(context, rows, self.by, view);
        screen.note(self.note(&rows.timeline).unwrap_or_default());
        screen
    }
}
