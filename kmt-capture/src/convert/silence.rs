//! The longest time without a line of a text: where lines may be missing that its header counts.
//!
//! A console that drops lines drops those of all CPUs at once, and the times beside the hole show where it is: readers take
//! the missing entries to be there. A time counts only if it stands out from all others: idle systems have silences of
//! their own.

/// A time stands out if it is this many times as long as the next longest one.
const TIMES: u64 = 10;
/// The shortest time that is named, in nanoseconds.
const SHORTEST_NS: u64 = 1_000_000;

/// Times between lines.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silence {
    last: Option<u64>,
    longest: (u64, u64),
    /// Length of the next longest one.
    next: u64,
}

impl Silence {
    /// Sees the time of a line, in nanoseconds.
    #[inline]
    pub fn see(&mut self, time: u64) {
        if let Some(last) = self.last.replace(time) {
            let (length, longest) = (time.saturating_sub(last), self.longest.1 - self.longest.0);
            if length > longest {
                (self.longest, self.next) = ((last, time), longest);
            } else {
                self.next = self.next.max(length);
            }
        }
    }

    /// Begin and end of the longest time without a line, if it stands out.
    pub fn outstanding(&self) -> Option<(u64, u64)> {
        let length = self.longest.1 - self.longest.0;
        (length >= SHORTEST_NS && length >= self.next.saturating_mul(TIMES)).then_some(self.longest)
    }

    /// What the times tell of missing entries.
    pub fn note(&self) -> String {
        let next = ms(self.next);
        match self.outstanding() {
            Some((from, to)) => format!(
                "no line is between {}.{:09} and {}.{:09} s ({}; the next longest time without one has {next}): the missing entries are taken to be of that time",
                from / 1_000_000_000,
                from % 1_000_000_000,
                to / 1_000_000_000,
                to % 1_000_000_000,
                ms(to - from)
            ),
            None => format!(
                "no time without lines stands out (the longest has {}): the missing entries may be from before the first line, behind the last one, or single ones",
                ms(self.longest.1 - self.longest.0)
            ),
        }
    }
}

fn ms(ns: u64) -> String {
    format!("{:.1} ms", ns as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(times: &[u64]) -> Option<(u64, u64)> {
        let mut silence = Silence::default();
        times.iter().for_each(|time| silence.see(time * 1_000_000));
        silence.outstanding().map(|(from, to)| (from / 1_000_000, to / 1_000_000))
    }

    #[test]
    fn a_hole_stands_out_and_idle_times_do_not() {
        assert_eq!(of(&[1, 2, 3, 200, 201, 203]), Some((3, 200)));
        assert_eq!(of(&[1, 2, 30, 31, 60, 61]), None, "two alike");
        assert_eq!(of(&[5, 6, 5, 7, 90]), Some((7, 90)), "a clock that steps back");
        assert_eq!(of(&[7]), None);
    }
}
