//! `peak`: when most slab bytes were live, and the call sites that allocated them.

mod rows;
mod text;

pub use rows::PeakRows;

use crate::collect::{Collectors, Handle, Peak};
use crate::failure::{Failure, Result};
use crate::pass::Analysis;
use crate::pass::selection::Selection;
use crate::reports::common::basis::{Basis, Input, too_lossy};
use crate::reports::common::{Context, View};
use crate::reports::report::{NoOptions, Report};

/// Share of lost events above which the report does not answer.
const LOST_PERCENT_MAX: f64 = 1.0;

/// The report.
#[derive(Debug)]
pub struct PeakReport;

impl Report for PeakReport {
    type Options = NoOptions;
    type Handles = Handle<Peak>;
    type Rows = PeakRows;

    const NAME: &'static str = "peak";
    const KEY: &'static str = "peak";
    const TITLE: &'static str = "peak";
    const ABOUT: &'static str = "When most slab bytes were live, and whose they were";

    fn new(_: NoOptions, _: &Selection) -> Self {
        Self
    }

    fn usual() -> Option<Self> {
        Some(Self)
    }

    fn rests_on(&self) -> Input {
        Input::SlabLives
    }

    fn check(&self, context: &Context<'_, '_>) -> Result<()> {
        if context.selection.filter(context.session).is_about_lifetimes() {
            return Err(Failure::new(
                "peak cannot select by lifetime: what is live at an instant has none yet",
            )
            .hint("timeline can: it adds lives up when they are over"));
        }
        Ok(())
    }

    fn collect(&self, context: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        let window = context.selection.filter(context.session).window.unwrap_or((0, u64::MAX));
        collectors.add(Peak { window })
    }

    fn refuses(&self, context: &Context<'_, '_>, analysis: &Analysis) -> Option<String> {
        let why = "the peak may lie where they were, or be made of frees that were; summary tells ranges";
        let lacks = Basis::of(context.session, analysis).lacks(self.rests_on());
        lacks.or_else(|| too_lossy(context.session, LOST_PERCENT_MAX, why))
    }

    fn compute(&self, context: &Context<'_, '_>, analysis: &Analysis, handle: &Self::Handles) -> PeakRows {
        rows::of(context, analysis, analysis.get(*handle))
    }

    fn text(&self, rows: &PeakRows, view: &View) -> String {
        text::of(rows, view)
    }
}
