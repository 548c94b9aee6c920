//! Lengths of lives: unknown where the trace clock did not run yet at their begin.
//!
//! The first events of a boot have the time 0, because the trace clock starts later. They have an order on each CPU, and no
//! durations. `kmt-capture` writes their number into the file where there are several (`events_at_zero`); of a buffer that was
//! filled since boot (`record.adopted`), one is enough. In other files time 0 is a time like any other.

use kmt_format::read::Metadata;

/// Number of events of time 0, where there are several.
pub const EVENTS_AT_ZERO: &str = "events_at_zero";

/// Ages and lifetimes of a trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ages {
    /// First time at which the clock runs: 0, or 1 in a trace of a boot.
    runs_from: u64,
}

impl Ages {
    /// Ages of a trace in which time 0 means that the clock did not run.
    pub const OF_BOOT: Self = Self { runs_from: 1 };

    /// Ages of a file with this metadata, and this time of its first event.
    pub fn of(metadata: &Metadata<'_>, first: Option<u64>) -> Self {
        let is_found_buffer = first == Some(0) && metadata.value("record.adopted").is_some();
        if is_found_buffer || events_at_zero(metadata) > 1 { Self::OF_BOOT } else { Self::default() }
    }

    /// True if the age of what began at that time is known.
    #[inline(always)]
    pub fn is_known(self, born: u64) -> bool {
        born >= self.runs_from
    }

    /// Time from a birth to a later time; `None`: the clock did not run at the birth. An end before the birth counts as 0.
    #[inline(always)]
    pub fn length(self, born: u64, end: u64) -> Option<u64> {
        if self.is_known(born) { Some(end.saturating_sub(born)) } else { None }
    }
}

/// Number of events of time 0 in the recording; 0 where there are not several.
pub fn events_at_zero(metadata: &Metadata<'_>) -> u64 {
    let text = metadata.text(EVENTS_AT_ZERO);
    text.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_birth_before_the_clock_ran_has_no_age() {
        let (usual, boot) = (Ages::default(), Ages::OF_BOOT);
        assert_eq!([usual.length(0, 9), usual.length(5, 9), usual.length(9, 5)], [Some(9), Some(4), Some(0)]);
        assert_eq!([boot.length(0, 9), boot.length(1, 9), boot.length(0, 0)], [None, Some(8), None]);
    }
}
