//! The sentence on counts of the kernel in a file that is a part of a recording: they are of the whole.
//!
//! `trace/sliced` has the selection of the slice and the times of the recording, from the metadata. Screens that show texts of
//! /proc beside events have the sentence: `info`, `slabinfo`, `balance`.

use crate::render::words::duration;
use crate::trace::session::Session;
use crate::trace::sliced::Sliced;

/// `The kernel's counts are of the recording before it was sliced: of its 30.01 s, this file has 13.00 s to 29.90 s.`; `None`: the
/// file has all of the time.
pub fn sentence(session: &Session<'_>) -> Option<String> {
    let span = (session.first_time()?, session.last_time()?);
    let sliced = Sliced::of(session.trace.metadata()).filter(|sliced| sliced.lacks_time(span))?;
    let start = "The kernel's counts are of the whole recording before it was sliced";
    let Some((first, last)) = sliced.whole else { return Some(format!("{start}.")) };
    let shown = |time: u64| duration(time.saturating_sub(first), session.unit());
    let [all, from, to] = [last, span.0, span.1].map(shown);
    Some(format!("{start}: of its {all}, this file has {from} to {to}."))
}
