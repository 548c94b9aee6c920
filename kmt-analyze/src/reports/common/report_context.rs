//! An analysed trace, as reports get it.

use std::cell::OnceCell;
use std::ops::Deref;

use kmt_format::print::PrintEnv;

use super::basis::Basis;
use super::context::Context;
use super::labels::Labels;
use super::live_bounds::LiveBounds;
use crate::pass::Analysis;

/// An analysed trace. What several reports need of it is computed once, when it is first used.
pub struct ReportContext<'s, 'd> {
    context: Context<'s, 'd>,
    /// Results of the pass.
    pub analysis: &'s Analysis,
    basis: OnceCell<Basis>,
    labels: OnceCell<Labels<'s, 'd>>,
    live_bounds: OnceCell<LiveBounds>,
}

impl<'s, 'd> ReportContext<'s, 'd> {
    /// A trace and the results of its pass.
    pub fn new(context: &Context<'s, 'd>, analysis: &'s Analysis) -> Self {
        let (basis, labels, live_bounds) = Default::default();
        Self { context: *context, analysis, basis, labels, live_bounds }
    }

    /// Recorded events.
    pub fn basis(&self) -> &Basis {
        self.basis.get_or_init(|| Basis::of(self))
    }

    /// Names of addresses, and of tasks at the end of the selected time.
    pub fn labels(&self) -> &Labels<'s, 'd> {
        self.labels.get_or_init(|| Labels::of(self))
    }

    /// Symbols, strings and constants of the target.
    pub fn env(&self) -> &PrintEnv<'d> {
        self.labels().env()
    }

    /// Bounds of live figures.
    pub fn live_bounds(&self) -> &LiveBounds {
        self.live_bounds.get_or_init(|| LiveBounds::of(self))
    }
}

impl<'s, 'd> Deref for ReportContext<'s, 'd> {
    type Target = Context<'s, 'd>;

    fn deref(&self) -> &Context<'s, 'd> {
        &self.context
    }
}
