//! Between which numbers live objects lie, where frees have no event or events were lost.

use std::collections::BTreeMap;

use super::parts::Subject;
use crate::analysis::caches::CacheRow;
use crate::analysis::coverage::{Coverage, Seen, active};
use crate::analysis::losses::Losses;
use crate::analysis::slabinfo::{self, SlabInfo};

/// Least and most of what is live at the end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Live {
    /// Objects.
    pub objects: [u64; 2],
    /// Bytes handed out for them.
    pub bytes: [u64; 2],
}

impl Live {
    fn plus(self, other: Self) -> Self {
        let sum = |a: [u64; 2], b: [u64; 2]| [a[0].saturating_add(b[0]), a[1].saturating_add(b[1])];
        Self { objects: sum(self.objects, other.objects), bytes: sum(self.bytes, other.bytes) }
    }
}

/// What bounds live figures.
pub struct LiveBounds<'s> {
    /// What was lost.
    pub losses: &'s Losses,
    /// The snapshot behind the trace, if what is counted reaches to its end.
    slabinfo: Option<BTreeMap<String, SlabInfo>>,
}

impl<'s> LiveBounds<'s> {
    /// Of what a report looks at.
    pub fn of(subject: &Subject<'s, '_>) -> Self {
        let Subject { session, selection, .. } = subject;
        let to_the_end = selection.time.is_none() && selection.at.is_none();
        let snapshot = session.trace.metadata().attachment("slabinfo.after").filter(|_| to_the_end);
        Self { losses: &session.losses, slabinfo: snapshot.map(slabinfo::parse) }
    }

    /// Of one row; `None` where events were lost and no snapshot tells.
    pub fn of_row(&self, row: &CacheRow) -> Option<Live> {
        let (live, bytes) = (row.totals.live, row.totals.bytes_live);
        let active = self.slabinfo.as_ref().and_then(|slabinfo| active(&row.key, slabinfo));
        if self.losses.any() {
            let most = active?;
            return Some(Live { objects: [0, most], bytes: [0, most.saturating_mul(row.object_size.1)] });
        }
        if Coverage::of(&row.totals).seen() == Seen::All {
            return Some(Live { objects: [live; 2], bytes: [bytes; 2] });
        }
        let most = active.map_or(live, |active| live.min(active));
        let bytes = bytes.min(most.saturating_mul(row.object_size.1));
        Some(Live { objects: [0, most], bytes: [0, bytes] })
    }

    /// Of several rows together; `None` if nothing bounds one of them.
    pub fn of_rows<'r>(&self, rows: impl IntoIterator<Item = &'r CacheRow>) -> Option<Live> {
        rows.into_iter().try_fold(Live::default(), |sum, row| Some(sum.plus(self.of_row(row)?)))
    }

    /// The line under a table that has bounds.
    pub fn legend(&self) -> &'static str {
        match self.slabinfo {
            Some(_) => {
                "\nfrees seen: share of the lives that ended with an event. Where it is below 99.9 %, objects may be free that seem live: there are at most as many as slabinfo called active behind the trace.\n"
            }
            None => {
                "\nfrees seen: share of the lives that ended with an event. Where it is below 99.9 %, objects may be free that seem live.\n"
            }
        }
    }
}
