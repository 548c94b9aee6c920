//! Trace and selection of a report.
//!
//! `Context` has the session, the selection and the limit of rows, before a pass. `View` has the facts that a screen
//! needs to print times, sizes and numbers of rows, and nothing of the pass. `ReportContext` has both with the results
//! of the pass.

use kmt_format::kernel::ClockUnit;

use super::sliced::TimePart;
use crate::pass::selection::Selection;
use crate::render::look::Look;
use crate::render::screen::Cell;
use crate::render::words::{counted, duration, size};
use crate::trace::session::Session;

/// Trace and selection of a report.
#[derive(Clone, Copy)]
pub struct Context<'s, 'd> {
    /// The trace.
    pub session: &'s Session<'d>,
    /// Selected events.
    pub selection: &'s Selection,
    /// Largest number of rows of a table.
    pub limit: usize,
}

impl Context<'_, '_> {
    /// How its rows are shown to people.
    pub fn view(&self, look: Look) -> View {
        let start = self.session.first_time().unwrap_or(0);
        View {
            unit: self.session.unit(),
            start,
            start_of_day: self.session.time_of_day(start).filter(|_| look.wall_clock),
            is_lossy: self.session.losses.any(),
            is_window: self.selection.has_window(),
            is_window_lossy: self.session.losses.any_between(self.selection.bounds(self.session)),
            is_folded: self.session.trace.header().folded,
            part: TimePart::of(self.session),
            limit: self.limit,
            look,
        }
    }
}

/// How rows are printed as text.
#[derive(Debug, Clone, Copy)]
pub struct View {
    /// Unit of times.
    pub unit: ClockUnit,
    /// Time of the first event.
    pub start: u64,
    /// Time of the first event as nanoseconds since 1970, where times of day are shown.
    pub start_of_day: Option<i64>,
    /// Events were lost, anywhere in the file: lives may have lost their end, or their begin.
    pub is_lossy: bool,
    /// A part of the recording is selected.
    pub is_window: bool,
    /// Events of the selected time were lost: its sums of events are minimums.
    pub is_window_lossy: bool,
    /// Objects and pages that were freed soon are in the file as sums.
    pub is_folded: bool,
    /// The part of the recording's time that a slice has; `None`: it has all of the time.
    pub part: Option<TimePart>,
    /// At most this many rows of each table.
    pub limit: usize,
    /// Display options.
    pub look: Look,
}

impl View {
    /// A whole recording without losses from time 0, as tables of 20 rows: what differs is set.
    pub fn plain() -> Self {
        Self {
            unit: ClockUnit::Nanoseconds,
            start: 0,
            start_of_day: None,
            is_lossy: false,
            is_window: false,
            is_window_lossy: false,
            is_folded: false,
            part: None,
            limit: 20,
            look: Look::default(),
        }
    }

    /// A time of the trace: seconds from the start as `--time` accepts them (`+2.937`), or the time of day
    /// (`05:53:57.123Z`).
    pub fn time(&self, time: u64) -> String {
        let since = time.wrapping_sub(self.start) as i64;
        if self.unit == ClockUnit::Ticks {
            return format!("{since:+}");
        }
        match self.start_of_day.and_then(|start| start.checked_add(since)) {
            Some(day) => {
                let millis = day.div_euclid(1_000_000);
                let seconds = millis.div_euclid(1_000).rem_euclid(86_400);
                let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
                format!("{hours:02}:{minutes:02}:{seconds:02}.{:03}Z", millis.rem_euclid(1_000))
            }
            None => format!("{:+.3}", since as f64 / 1e9),
        }
    }

    /// A time of the trace as `--time` and `--at` accept it, to the last digit; `None`: before the start.
    pub fn time_option(&self, time: u64) -> Option<String> {
        let since = time.checked_sub(self.start)?;
        if self.unit == ClockUnit::Ticks {
            return Some(format!("+{since}"));
        }
        let text = format!("+{}.{:09}", since / 1_000_000_000, since % 1_000_000_000);
        Some(text.trim_end_matches('0').trim_end_matches('.').to_owned())
    }

    /// A length of time.
    pub fn duration(&self, length: u64) -> String {
        duration(length, self.unit)
    }

    /// Cell of a length of time, if it is known.
    pub fn duration_cell(&self, length: Option<u64>) -> Cell {
        length.map_or(Cell::Unknown, |length| Cell::Duration(length, self.unit))
    }

    /// A size in bytes, for a sentence.
    pub fn bytes(&self, bytes: u64) -> String {
        if self.look.exact_bytes { counted(bytes, "byte", "bytes") } else { size(bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_from_the_start_or_of_the_day() {
        let view = View { start: 5_000_000_000, ..View::plain() };
        assert_eq!((view.time(7_937_415_000), view.time(4_000_000_000)), ("+2.937".into(), "-1.000".into()));
        let day = View { start_of_day: Some(86_400_000_000_000 * 3 + 3_723_000_000_000), ..view };
        assert_eq!(day.time(5_500_000_000), "01:02:03.500Z");
        let ticks = View { unit: ClockUnit::Ticks, start: 100, ..view };
        assert_eq!((ticks.time(107), ticks.time_option(107)), ("+7".into(), Some("+7".into())));
        assert_eq!(view.time_option(7_937_415_000), Some("+2.937415".into()));
        assert_eq!((view.time_option(5_000_000_000), view.time_option(0)), (Some("+0".into()), None));
    }
}
