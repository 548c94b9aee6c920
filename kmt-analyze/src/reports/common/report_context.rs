//! An analysed trace, as reports get it.

use std::cell::OnceCell;
use std::ops::Deref;

use kmt_format::print::PrintEnv;
use kmt_format::schema::{EventClass, Meaning};

use super::basis::Basis;
use super::context::Context;
use super::labels::Labels;
use super::live_bounds::LiveBounds;
use super::recorded::{recorded, recorded_class};
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
        self.basis.get_or_init(|| Basis::of(self.session, self.analysis))
    }

    /// True if events of that meaning were recorded; `None`: none occurred, and the file does not declare them.
    pub fn recorded(&self, meaning: Meaning) -> Option<bool> {
        recorded(self.session, self.analysis, meaning)
    }

    /// The same for event classes selected by a function.
    pub fn recorded_class(&self, is_it: impl Fn(&EventClass) -> bool) -> Option<bool> {
        recorded_class(self.session, self.analysis, is_it)
    }

    /// Names of addresses, and of tasks at the end of the selected time.
    pub fn labels(&self) -> &Labels<'s, 'd> {
        self.labels.get_or_init(|| Labels::of(self))
    }

    /// Symbols, strings and constants of the target.
    pub fn print_env(&self) -> &PrintEnv<'d> {
        self.labels().print_env()
    }

    /// Bounds of live figures.
    pub fn live_bounds(&self) -> &LiveBounds {
        self.live_bounds.get_or_init(|| LiveBounds::of(self, self.analysis))
    }
}

impl<'s, 'd> Deref for ReportContext<'s, 'd> {
    type Target = Context<'s, 'd>;

    fn deref(&self) -> &Context<'s, 'd> {
        &self.context
    }
}
