//! `latency`: time that tasks waited for memory, and the allocations that waited.

mod delayed;
mod delayed_text;
mod held;
mod intervals;
mod kinds;
mod lead;
pub mod live;
mod long_text;
mod recorded;
mod rows;
mod stall_names;
mod tasks;
mod tasks_text;
mod text;
mod tracepoints;

pub use lead::WaitSums;
pub use rows::LatencyRows;

use kmt_common::quantity::Span;

use crate::collect::{Collectors, Handle, Stalls};
use crate::failure::Result;
use crate::pass::Needs;
use crate::render::screen::Screen;
use crate::reports::common::ReportContext;
use crate::reports::common::basis::Input;
use crate::reports::common::stated::Keys;
use crate::reports::common::{Context, View};
use crate::reports::report::Report;

/// Times that tasks waited for memory.
#[derive(Debug, Default, clap::Args)]
pub struct Latency {
    #[command(flatten)]
    options: LatencyOptions,
}

/// Options of the report.
#[derive(Debug, Default, clap::Args)]
pub struct LatencyOptions {
    /// Show only stalls of at least this length, nested, with the events of their tasks
    #[arg(long, value_name = "TIME", value_parser = Span::parse)]
    pub threshold: Option<Span>,
    /// Print stalls as they end, of a file that is being written or of a stream, and sums at the end
    #[arg(short, long, conflicts_with_all = ["time", "at", "comms", "children", "cpus", "terms", "start_branch", "without_recorder", "threads", "lines"])]
    pub follow: bool,
}

impl Latency {
    /// With all stalls, however short.
    pub fn with_all_stalls() -> Self {
        Self { options: LatencyOptions { threshold: Span::parse("0").ok(), follow: false } }
    }
}

impl Report for Latency {
    /// With the threshold in the clock's unit.
    type Handles = (Handle<Stalls>, Option<u64>);
    type Rows = LatencyRows;

    const NAME: &'static str = "latency";
    const ABOUT: &'static str = "Time that tasks waited for memory";
    const NEEDS: Needs = Needs::FLAG_NAMES;
    const RESTS_ON: Input = Input::Stalls;
    const KEYS: Keys = Keys::Tasks;

    fn with_defaults() -> Option<Self> {
        Some(Self::default())
    }

    fn check(&self, context: &Context<'_, '_>) -> Result<()> {
        self.options.threshold.map_or(Ok(()), |threshold| context.session.clock().units(threshold).map(drop))
    }

    fn collect(&self, context: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        // Checked before.
        let threshold =
            self.options.threshold.and_then(|threshold| context.session.clock().units(threshold).ok());
        (collectors.add(Stalls { threshold }), threshold)
    }

    fn compute(&self, context: &ReportContext<'_, '_>, (stalls, threshold): &Self::Handles) -> LatencyRows {
        rows::compute(context, context.analysis.get(*stalls), *threshold)
    }

    fn screen(&self, _: &ReportContext<'_, '_>, rows: &LatencyRows, view: &View) -> Screen {
        text::screen(rows, view)
    }
}
