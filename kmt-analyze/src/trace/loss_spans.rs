//! Times in which events are missing, by their spans: whether a life crosses one.
//!
//! The ledger needs it for each life that ends. Ends ascend, except where a clock steps back: a cursor answers without a search.

use super::losses::Losses;

/// Position of [`Losses::overlaps_rising`]: the last span that begins at the time of the last call or before.
#[derive(Debug, Clone, Copy)]
pub struct LossCursor {
    /// Number of spans that begin at that time or before.
    begun: usize,
    /// Start of the last of them; 0 if there is none.
    start: u64,
    /// See [`Losses::find_spans`].
    until: u64,
    /// Start of the span after it; `u64::MAX` if there is none.
    next_start: u64,
}

impl Losses {
    /// True if events are missing between two times.
    pub fn overlaps(&self, from: u64, to: u64) -> bool {
        let starting_before = self.spans.partition_point(|s| s.0 <= to);
        starting_before.checked_sub(1).and_then(|i| self.spans.get(i)).is_some_and(|s| s.1 >= from)
    }

    /// First time between two times at which events may be missing.
    pub fn first_between(&self, from: u64, to: u64) -> Option<u64> {
        let ended_before = self.spans.partition_point(|s| s.1 < from);
        let start = self.spans.get(ended_before)?.0.max(from);
        (start <= to).then_some(start)
    }

    /// [`Losses::overlaps`], faster where `to` ascends from call to call.
    #[inline]
    pub fn overlaps_rising(&self, from: u64, to: u64, cursor: &mut LossCursor) -> bool {
        if to < cursor.start {
            // A clock steps back.
            return self.overlaps(from, to);
        }
        while to >= cursor.next_start {
            let Some(&(start, until)) = self.spans.get(cursor.begun) else { break };
            (cursor.start, cursor.until) = (start, until);
            cursor.begun += 1;
            cursor.next_start = self.spans.get(cursor.begun).map_or(u64::MAX, |s| s.0);
        }
        cursor.begun > 0 && cursor.until >= from
    }

    /// The start of [`Losses::overlaps_rising`].
    pub fn cursor(&self) -> LossCursor {
        let next_start = self.spans.first().map_or(u64::MAX, |s| s.0);
        LossCursor { begun: 0, start: 0, until: 0, next_start }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_found_by_overlap() {
        let mut losses = Losses { spans: vec![(10, 20), (15, 18), (50, 60)], ..Losses::default() };
        losses.spans[1].1 = 20;
        for ((from, to), expected) in [
            ((0, 9), false),
            ((0, 10), true),
            ((19, 30), true),
            ((21, 49), false),
            ((55, 56), true),
            ((61, 99), false),
        ] {
            assert_eq!(losses.overlaps(from, to), expected, "{from}..{to}");
        }
    }

    #[test]
    fn a_cursor_finds_the_same_also_where_times_step_back() {
        for spans in
            [vec![], vec![(0, 0)], vec![(0, u64::MAX)], vec![(0, 0), (10, 20), (15, 20), (50, u64::MAX)]]
        {
            let losses = Losses { spans, ..Losses::default() };
            let mut cursor = losses.cursor();
            for to in [0, 9, 10, 16, 40, 50, 99, u64::MAX, u64::MAX, 30, 12, 0, 70] {
                for from in [0, 9, 15, 20, 21, 55, u64::MAX] {
                    let seen = losses.overlaps_rising(from, to, &mut cursor);
                    assert_eq!(seen, losses.overlaps(from, to), "{from}..{to} of {:?}", losses.spans);
                }
            }
        }
    }
}
