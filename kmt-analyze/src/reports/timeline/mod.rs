//! `timeline`: live bytes, allocations and frees over time, by any key.

mod lines;
mod lines_text;
mod names;
mod rows;
mod text;

pub use names::TimelineKey;
pub use rows::{LineRow, TimelineRow, TimelineRows};

use crate::collect::{Collectors, Handle, Timeline};
use crate::pass::Needs;
use crate::pass::selection::Selection;
use crate::render::screen::Screen;
use crate::reports::common::ReportContext;
use crate::reports::common::basis::Input;
use crate::reports::common::stated::Keys;
use crate::reports::common::{Context, View};
use crate::reports::report::Report;

/// Options of the report.
#[derive(Debug, clap::Args)]
pub struct TimelineOptions {
    /// Key of the lines
    #[arg(long, value_enum, default_value = "kind")]
    by: TimelineKey,
    /// Number of steps
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    steps: u32,
    /// Show at most N lines, and the sum of the others
    #[arg(short, long = "lines", value_name = "N", default_value_t = 8)]
    lines: usize,
}

/// The report.
#[derive(Debug)]
pub struct TimelineReport {
    /// Key of the lines.
    pub by: TimelineKey,
    /// Number of steps.
    pub steps: usize,
    /// Largest number of lines besides the sum of the others and that of pages.
    pub lines: usize,
}

impl Report for TimelineReport {
    type Options = TimelineOptions;
    type Handles = Handle<Timeline>;
    type Rows = TimelineRows;

    const NAME: &'static str = "timeline";
    const KEY: &'static str = "timeline";
    const TITLE: &'static str = "timeline";
    const ABOUT: &'static str = "Live memory over time";
    const HAS_LINES: bool = false;

    fn new(options: TimelineOptions, _: &Selection) -> Self {
        Self { by: options.by, steps: options.steps as usize, lines: options.lines }
    }

    fn with_defaults() -> Option<Self> {
        Some(Self { by: TimelineKey::Kind, steps: 20, lines: 8 })
    }

    fn rests_on(&self) -> Input {
        Input::Lives
    }

    fn needs(&self) -> Needs {
        if self.by == TimelineKey::Cache { Needs::CACHE_NAMES } else { Needs::empty() }
    }

    fn keys(&self) -> Keys {
        Keys::All
    }

    fn collect(&self, context: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        let (first, last) = context.selection.span(context.session);
        collectors.add(Timeline::new(first, last, self.steps, self.by.is_of_origins()))
    }

    fn compute(&self, context: &ReportContext<'_, '_>, handle: &Self::Handles) -> TimelineRows {
        let analysis = context.analysis;
        rows::of(context, analysis.get(*handle), self)
    }

    fn screen(&self, rows: &TimelineRows, view: &View) -> Screen {
        text::of(rows, view)
    }
}
