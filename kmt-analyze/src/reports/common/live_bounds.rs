//! Bounds of live figures.

use super::context::Context;
use crate::ledger::totals::Totals;
use crate::pass::Analysis;
use crate::pass::coverage::bounds::Bounds;
use crate::pass::coverage::{Coverage, FreeEvents};
use crate::trace::snapshots::at_end;

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
