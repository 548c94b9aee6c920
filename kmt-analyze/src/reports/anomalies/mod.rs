//! `anomalies`: objects and frees that contradict each other, each kind with its meaning.

mod finder;
mod kinds;
mod meanings;
mod rows;
mod text;

pub use rows::AnomalyRows;

use crate::collect::{Anomalies, Collectors, Handle};
use crate::pass::selection::Selection;
use crate::render::screen::Screen;
use crate::reports::common::ReportContext;
use crate::reports::common::basis::Input;
use crate::reports::common::{Context, View};
use crate::reports::report::{NoOptions, Report};

/// Objects and frees that contradict each other.
#[derive(Debug, Default)]
pub struct AnomalyReport;

impl Report for AnomalyReport {
    type Options = NoOptions;
    type Handles = Handle<Anomalies>;
    type Rows = AnomalyRows;

    const NAME: &'static str = "anomalies";
    const KEY: &'static str = "anomalies";
    const TITLE: &'static str = "anomalies";
    const ABOUT: &'static str = "Events that contradict each other, with their causes";

    fn new(_: NoOptions, _: &Selection) -> Self {
        Self
    }

    fn with_defaults() -> Option<Self> {
        Some(Self)
    }

    fn rests_on(&self) -> Input {
        Input::SlabLives
    }

    fn collect(&self, _: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        collectors.add(Anomalies)
    }

    fn compute(&self, context: &ReportContext<'_, '_>, handle: &Self::Handles) -> AnomalyRows {
        let analysis = context.analysis;
        kinds::of(context, analysis.get(*handle))
    }

    fn screen(&self, rows: &AnomalyRows, view: &View) -> Screen {
        text::of(rows, view)
    }
}
