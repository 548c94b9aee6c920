//! The sentence on counts of the kernel in a file that is a part of a recording: they are of the whole.
//!
//! `trace/sliced` has the selection of the slice and the times of the recording, from the metadata. Screens that show texts of
//! /proc beside events have the sentence: `info`, `slabinfo`, `balance`.

use kmt_format::kernel::ClockUnit;

use crate::render::words::duration;
use crate::trace::session::Session;
use crate::trace::sliced::Sliced;

/// The part of the recording's time that a file has.
#[derive(Debug, Clone, Copy)]
pub struct TimePart {
    /// Times of the first and the last event of the recording; `None`: unknown.
    whole: Option<(u64, u64)>,
    /// Times of the first and the last event of the file.
    span: (u64, u64),
}

impl TimePart {
    /// That of a file; `None`: the file has all of the time.
    pub fn of(session: &Session<'_>) -> Option<Self> {
        let span = (session.first_time()?, session.last_time()?);
        let sliced = Sliced::of(session.trace.metadata()).filter(|sliced| sliced.lacks_time(span))?;
        Some(Self { whole: sliced.whole, span })
    }

    /// `The kernel's counts are of the whole recording before it was sliced: of its 30.01 s, this file has 13.00 s to 29.90 s.`
    pub fn sentence(&self, unit: ClockUnit) -> String {
        let start = "The kernel's counts are of the whole recording before it was sliced";
        let Some((first, last)) = self.whole else { return format!("{start}.") };
        let shown = |time: u64| duration(time.saturating_sub(first), unit);
        let [all, from, to] = [last, self.span.0, self.span.1].map(shown);
        format!("{start}: of its {all}, this file has {from} to {to}.")
    }
}

/// The sentence for a file; `None`: the file has all of the time.
pub fn sentence(session: &Session<'_>) -> Option<String> {
    TimePart::of(session).map(|part| part.sentence(session.unit()))
}
