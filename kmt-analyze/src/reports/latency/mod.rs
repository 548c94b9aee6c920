//! `latency`: how long tasks waited for memory, and which allocations waited.

mod delayed;
mod intervals;
mod kinds;
mod recorded;
mod rows;
mod stall_names;
mod tasks;
mod text;

pub use rows::LatencyRows;

use crate::collect::{Collectors, Handle, Stalls};
use crate::pass::Analysis;
use crate::pass::selection::Selection;
use crate::pass::term::duration_of;
use crate::reports::common::basis::Input;
use crate::reports::common::stated::Keys;
use crate::reports::common::{Context, View};
use crate::reports::report::Report;

/// Times that tasks waited for memory.
#[derive(Debug, Default)]
pub struct Latency {
    /// Only intervals at least this long, in the clock's unit.
    threshold: Option<u64>,
}

/// Options of the report.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Print only intervals at least this long, with the events of the task in them
    #[arg(long, value_name = "TIME", value_parser = duration_of)]
    threshold: Option<u64>,
}

impl Report for Latency {
    type Options = Options;
    type Handles = Handle<Stalls>;
    type Rows = LatencyRows;

    const NAME: &'static str = "latency";
    const KEY: &'static str = "latency";
    const TITLE: &'static str = "latency";
    const ABOUT: &'static str =
        "How long tasks waited for memory: reclaim, compaction, kswapd, shrinkers, traced functions";

    fn new(options: Options, _: &Selection) -> Self {
        Self { threshold: options.threshold }
    }

    fn usual() -> Option<Self> {
        Some(Self::default())
    }

    fn rests_on(&self) -> Input {
        Input::Stalls
    }

    fn keys(&self) -> Keys {
        Keys::Tasks
    }

    fn collect(&self, _: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        collectors.add(Stalls { threshold: self.threshold })
    }

    fn compute(&self, context: &Context<'_, '_>, analysis: &Analysis, stalls: &Self::Handles) -> LatencyRows {
        rows::of(context, analysis, analysis.get(*stalls), self.threshold)
    }

    fn text(&self, rows: &LatencyRows, view: &View) -> String {
        text::of(rows, view)
    }
}
