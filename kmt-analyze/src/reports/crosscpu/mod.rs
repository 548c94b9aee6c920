//! `crosscpu`: objects freed on another CPU or node than they were allocated on.

mod rows;
mod text;

pub use rows::CrossCpuRows;

use crate::collect::{Collectors, CrossCpu, Handle};
use crate::render::screen::Screen;
use crate::reports::common::ReportContext;
use crate::reports::common::basis::Input;
use crate::reports::common::{Context, View};
use crate::reports::report::Report;

/// Frees on another CPU or node.
#[derive(Debug, Default, clap::Args)]
pub struct CrossCpuReport;

impl Report for CrossCpuReport {
    type Handles = Handle<CrossCpu>;
    type Rows = CrossCpuRows;

    const NAME: &'static str = "crosscpu";
    const TITLE: &'static str = "cross-CPU frees";
    const ABOUT: &'static str = "Objects freed on another CPU or node";
    const RESTS_ON: Input = Input::SlabLives;

    fn collect(&self, _: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        collectors.add(CrossCpu)
    }

    fn compute(&self, context: &ReportContext<'_, '_>, handle: &Self::Handles) -> CrossCpuRows {
        rows::compute(context, context.analysis.get(*handle))
    }

    fn screen(&self, _: &ReportContext<'_, '_>, rows: &CrossCpuRows, view: &View) -> Screen {
        text::screen(rows, view)
    }
}
