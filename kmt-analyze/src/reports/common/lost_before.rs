//! Events that the kernel lost before the first event of a file: a flight recorder overwrites what is older than its
//! buffers. They are before the recorded time, and make nothing in it uncertain.
//!
//! Numbers come from `trace/loss_times`. The trust of reports, `info` and the first screen name them apart from the events
//! that were lost since the first one.

use crate::render::words::count;
use crate::trace::losses::Losses;

/// `66,783 were lost before it`: events before the first one; `None`: none was lost there.
pub fn lost_before_first(losses: &Losses) -> Option<String> {
    losses.any_before_first().then(|| match losses.lost_before_first() {
        0 => "events before it were lost, not counted".to_owned(),
        1 => "1 event before it was lost".to_owned(),
        lost => format!("{} events before it were lost", count(lost)),
    })
}

/// The sentence behind the number of events lost since the first one; empty: none was lost before it.
pub fn more_before_first(losses: &Losses) -> String {
    match (losses.any_before_first(), losses.lost_before_first()) {
        (false, _) => String::new(),
        (true, 0) => " Events before the first one were lost too, not counted.".to_owned(),
        (true, lost) => {
            format!(" {} more were lost before the first event: not in the recorded time.", count(lost))
        }
    }
}
