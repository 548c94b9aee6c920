//! The longest part of a recording in which no events are missing: what can still be judged where events were lost.

use super::context::Context;
use crate::render::look::Look;

/// Parts of the selected time, as 1/N, that are too short to be proposed.
const SHORT: u64 = 10;
/// Times are rounded to a millisecond, into the part, where it is longer than this many.
const MILLISECONDS_MIN: u64 = 10;
const MILLISECOND: u64 = 1_000_000;

/// A part of a recording without losses, as the command line takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WholeTime {
    from: String,
    to: String,
}

impl WholeTime {
    /// The option that selects it.
    pub fn option(&self) -> String {
        format!("--time {}", self.range())
    }

    /// Value of `--time` that selects it.
    pub fn range(&self) -> String {
        format!("{}..{}", self.from, self.to)
    }
}

/// The longest part of the selected time in which no events are missing. `None`: it is short, or there are no losses.
pub fn whole_time(context: &Context<'_, '_>) -> Option<WholeTime> {
    let Context { session, selection, .. } = context;
    let (first, last) = selection.span(session);
    if !session.losses.any_between((first, last)) {
        return None;
    }
    let (from, to) = session.losses.longest_whole((first, last))?;
    if (to - from).saturating_mul(SHORT) < last.saturating_sub(first) {
        return None;
    }
    let view = context.view(Look::default());
    let (from, to) = rounded((from.saturating_sub(view.start), to.saturating_sub(view.start)));
    let option = |since: u64| view.time_option(view.start.saturating_add(since));
    Some(WholeTime { from: option(from)?, to: option(to)? })
}

/// Times from the start, without digits that say nothing.
fn rounded((from, to): (u64, u64)) -> (u64, u64) {
    if to.saturating_sub(from) < MILLISECONDS_MIN * MILLISECOND {
        return (from, to);
    }
    (from.next_multiple_of(MILLISECOND), to - to % MILLISECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_into_the_part() {
        assert_eq!(rounded((1_561_900_001, 2_943_000_999)), (1_562_000_000, 2_943_000_000));
        assert_eq!(rounded((1_000, 9_000_000)), (1_000, 9_000_000), "too short to be rounded");
    }
}
