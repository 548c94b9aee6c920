//! An analysed trace, as reports get it, with facts that reports share.
//!
//! Bounds of live figures are computed once for all reports of a pass: an object whose free may be lost is uncertain.

use std::cell::OnceCell;
use std::ops::Deref;

use kmt_format::schema::{EventClass, Meaning};

use super::basis::Basis;
use super::context::Context;
use super::labels::Labels;
use crate::ledger::totals::Totals;
use crate::pass::Analysis;
use crate::pass::coverage::bounds::Bounds;
use crate::pass::coverage::{Coverage, FreeEvents};
use crate::trace::names::Symbolizer;
use crate::trace::slabinfo::at_end;

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
        self.basis.get_or_init(|| Basis::of(self.session, |is_it| self.recorded_class(is_it)))
    }

    /// True if events of that meaning were recorded; `None`: none occurred, and the file does not declare them.
    pub fn recorded(&self, meaning: Meaning) -> Option<bool> {
        self.recorded_class(|class| class.meaning == meaning)
    }

    /// True if events of the classes that a function selects were recorded; `None`: as for [`Self::recorded`].
    pub fn recorded_class(&self, is_it: impl Fn(&EventClass) -> bool) -> Option<bool> {
        let trace = self.session.trace;
        let classes = || trace.schema().classes().filter(|(_, c)| is_it(c));
        if classes().any(|(i, _)| self.analysis.classes_seen.get(i).copied().unwrap_or(false)) {
            return Some(true);
        }
        let conditions = std::str::from_utf8(trace.metadata().attachment("event_conditions")?).ok()?;
        let is_enabled = |name: String| {
            conditions
                .lines()
                .find_map(|l| l.strip_prefix(&format!("{name} enable=")))
                .map(|v| v.trim() != "0")
        };
        let enabled: Vec<bool> =
            classes().filter_map(|(_, c)| is_enabled(format!("{}:{}", c.system, c.name))).collect();
        // A live recording describes exactly the events that it records.
        let is_live = trace.metadata().text("source") == Some("live");
        (!enabled.is_empty() || is_live).then(|| enabled.contains(&true))
    }

    /// Names of addresses, and of tasks at the end of the selected time.
    pub fn labels(&self) -> &Labels<'s, 'd> {
        self.labels.get_or_init(|| Labels::of(self))
    }

    /// Symbols of addresses.
    pub fn symbols(&self) -> &Symbolizer<'d> {
        self.labels().symbols()
    }

    /// Bounds of live figures, of a pass for `Needs::CACHE_NAMES`.
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

/// Bounds, and their source.
pub struct LiveBounds {
    pub bounds: Bounds,
    has_snapshot: bool,
}

impl LiveBounds {
    /// Bounds for the selection of a report.
    pub fn of(context: &Context<'_, '_>, analysis: &Analysis) -> Self {
        let (session, selection) = (context.session, context.selection);
        let to_the_end = selection.time.is_none() && selection.at.is_none();
        let last = session.last_time().filter(|_| to_the_end);
        let snapshot = last.and_then(|last| at_end(session.trace.metadata(), last));
        let slabinfo = snapshot.as_ref().map(|snapshot| &snapshot.caches);
        let bounds = Bounds::of(analysis, slabinfo, session.losses.any());
        Self { bounds, has_snapshot: snapshot.is_some() }
    }

    /// The note of a table that has bounds.
    pub fn legend(&self) -> &'static str {
        if self.bounds.has_losses() && !self.has_snapshot {
            "Frees with event: share of the objects that ended with a free event. No bound: events were lost, and the file has no /proc/slabinfo of the end, so any number may be live."
        } else if self.has_snapshot {
            "Frees with event: share of the objects that ended with a free event. Where it is below 99.9 %, objects that seem live may be free; live at most is what slabinfo counted after the trace."
        } else {
            "Frees with event: share of the objects that ended with a free event. Where it is below 99.9 %, objects that seem live may be free."
        }
    }
}

/// True if frees of the row lack events, so its live figures need bounds.
pub fn is_doubtful(totals: &Totals) -> bool {
    Coverage::of(totals).free_events() != FreeEvents::All
}
