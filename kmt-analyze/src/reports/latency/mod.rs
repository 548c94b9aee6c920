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

use crate::collect::stalls::Compactors;
use crate::collect::{Collectors, Handle, Stalls};
use crate::failure::Result;
use crate::pass::Needs;
use crate::render::screen::Screen;
use crate::reports::common::ReportContext;
use crate::reports::common::basis::Input;
use crate::reports::common::stated::Keys;
use crate::reports::common::{Context, View};
use crate::reports::report::Report;
use crate::trace::session::Session;

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
        (collectors.add(Stalls { threshold, compactors: compactors(context.session) }), threshold)
    }

    fn compute(&self, context: &ReportContext<'_, '_>, (stalls, threshold): &Self::Handles) -> LatencyRows {
        rows::compute(context, context.analysis.get(*stalls), *threshold)
    }

    fn screen(&self, context: &ReportContext<'_, '_>, rows: &LatencyRows, view: &View) -> Screen {
        let mut screen = text::screen(rows, view);
        let has_direct = rows.latency.kinds.iter().any(|kind| kind.kind == "direct_compaction");
        if has_direct && compactors(context.session) != Compactors::Announced {
            screen.note("mm_compaction_try_to_compact_pages was not recorded: compactions by tasks other than kcompactd and kswapd count as waits of these tasks.");
        }
        screen
    }
}

/// Tasks that compact for their own allocations. Without the event that says so, only names tell kernel threads apart.
pub fn compactors(session: &Session<'_>) -> Compactors {
    let is_announced = |name: &str| name == "mm_compaction_try_to_compact_pages";
    if session.trace.schema().classes().any(|(_, class)| is_announced(&class.name)) {
        return Compactors::Announced;
    }
    let names = session.names().all_at(session.last_time().unwrap_or(0));
    let is_thread = |name: &[u8]| name.starts_with(b"kcompactd") || name.starts_with(b"kswapd");
    let mut pids: Vec<i32> =
        names.into_iter().filter(|(_, name)| is_thread(name)).map(|(pid, _)| pid).collect();
    pids.sort_unstable();
    Compactors::AllBut(pids)
}
