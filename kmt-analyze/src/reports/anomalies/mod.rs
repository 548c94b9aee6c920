//! `anomalies`: lives and frees that should not be so, or look so, each with its meaning.

mod kinds;
mod rows;
mod text;

pub use rows::AnomalyRows;

use crate::collect::{Anomalies, Collectors, Handle};
use crate::pass::Analysis;
use crate::pass::selection::Selection;
use crate::reports::common::basis::Input;
use crate::reports::common::{Context, View};
use crate::reports::report::{NoOptions, Report};

/// Lives and frees that should not be so.
#[derive(Debug, Default)]
pub struct AnomalyReport;

impl Report for AnomalyReport {
    type Options = NoOptions;
    type Handles = Handle<Anomalies>;
    type Rows = AnomalyRows;

    const NAME: &'static str = "anomalies";
    const KEY: &'static str = "anomalies";
    const TITLE: &'static str = "anomalies";
    const ABOUT: &'static str = "What should not be, or looks so: mixed interfaces, frees of nothing, frees logged late, each explained";

    fn new(_: NoOptions, _: &Selection) -> Self {
        Self
    }

    fn usual() -> Option<Self> {
        Some(Self)
    }

    fn rests_on(&self) -> Input {
        Input::SlabLives
    }

    fn collect(&self, _: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        collectors.add(Anomalies)
    }

    fn compute(&self, context: &Context<'_, '_>, analysis: &Analysis, handle: &Self::Handles) -> AnomalyRows {
        kinds::of(context, analysis, analysis.get(*handle))
    }

    fn text(&self, rows: &AnomalyRows, _: &View) -> String {
        text::of(rows)
    }
}
