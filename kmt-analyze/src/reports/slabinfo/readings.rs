//! Readings of /proc/slabinfo in the file.

use crate::reports::common::Context;
use crate::trace::snapshots::{Snapshot, snapshots, untimed};

/// Snapshots in the file, and true if their times are known; else there is one at most.
pub fn read(context: &Context<'_, '_>) -> (Vec<Snapshot>, bool) {
    let (metadata, last) = (context.session.trace.metadata(), context.session.last_time().unwrap_or(0));
    let timed = snapshots(metadata, last);
    if timed.is_empty() { (untimed(metadata, last).into_iter().collect(), false) } else { (timed, true) }
}
