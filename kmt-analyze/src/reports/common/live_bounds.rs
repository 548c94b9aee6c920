//! What bounds live figures, for reports.

use super::context::Context;
use crate::ledger::totals::Totals;
use crate::pass;
use crate::pass::coverage::bounds::Bounds;
use crate::pass::coverage::{Coverage, Seen};
use crate::render::table::Align;
use crate::trace::snapshots::at_end;

/// Bounds, and what they come from.
pub struct LiveBounds {
    /// The bounds.
    pub bounds: Bounds,
    has_snapshot: bool,
}

impl LiveBounds {
    /// Of what a report looks at.
    pub fn of(context: &Context<'_, '_>, result: &pass::Analysis) -> Self {
        let Context { session, selection, .. } = context;
        let to_the_end = selection.time.is_none() && selection.at.is_none();
        let last = session.last_time().filter(|_| to_the_end);
        let snapshot = last.and_then(|last| at_end(session.trace.metadata(), last));
        let slabinfo = snapshot.as_ref().map(|snapshot| &snapshot.caches);
        let bounds = Bounds::of(result, slabinfo, session.losses.any());
        Self { bounds, has_snapshot: snapshot.is_some() }
    }

    /// The line under a table that has bounds.
    pub fn legend(&self) -> &'static str {
        if self.has_snapshot {
            "\nfrees seen: share of the lives that ended with an event. Where it is below 99.9 %, objects may be free that seem live: there are at most as many as slabinfo called active behind the trace.\n"
        } else {
            "\nfrees seen: share of the lives that ended with an event. Where it is below 99.9 %, objects may be free that seem live.\n"
        }
    }
}

/// Whether a row's live figures need their bounds beside them: where all frees have events, live is what is live.
pub fn is_doubtful(totals: &Totals) -> bool {
    Coverage::of(totals).seen() != Seen::All
}

/// The columns of bounds.
pub const COLUMNS: [(&str, Align); 2] = [("frees seen", Align::Right), ("live at most", Align::Right)];
