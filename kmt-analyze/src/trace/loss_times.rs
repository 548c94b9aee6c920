//! Lost events between two times: how many, their share, and the longest time in which none are missing; and those before
//! the first event, which are in no recorded time.
//!
//! A report on a part of the recording is judged by the losses of that part. Places of losses are from the heads of
//! chunks; events that the kernel refused without a mark have none, and count in each part by its length.

use super::losses::{CpuLosses, LossPlace, Losses};

/// The whole recording.
const ALWAYS: (u64, u64) = (0, u64::MAX);

impl LossPlace {
    /// True if its missing events may be between two times: those before the first event are in no recorded time.
    pub fn reaches(&self, window: (u64, u64)) -> bool {
        !self.is_before_first
            && self.before.is_none_or(|before| before >= window.0)
            && self.after.is_none_or(|after| after <= window.1)
    }
}

impl CpuLosses {
    /// Of [`CpuLosses::lost_events`], those before the first event of all CPUs, as far as they are counted apart from
    /// others: the counters have one number for all uncounted places.
    pub fn lost_before_first(&self) -> u64 {
        let is_alone = self.uncounted_places() == 1;
        let before = self.sized_places().filter(|(place, _)| place.is_before_first);
        let lost =
            before.map(|(place, size)| if place.uncounted && !is_alone { place.counted } else { size });
        lost.fold(0, u64::saturating_add).min(self.lost_events())
    }

    /// Events lost since the first event of all CPUs.
    pub fn lost_since_first(&self) -> u64 {
        self.lost_events().saturating_sub(self.lost_before_first())
    }

    /// Events lost between two times, until an unexpected end; those without a position in proportion. `None`: not
    /// counted.
    pub fn lost_between(&self, window: (u64, u64)) -> Option<f64> {
        let reaches = |place: &&LossPlace| place.reaches(window);
        let is_uncounted = !self.has_counters() && self.places.iter().filter(reaches).any(|p| p.uncounted);
        if self.is_changed || is_uncounted {
            return None;
        }
        let missing: u64 = self.places.iter().map(|p| p.events_missing).fold(0, u64::saturating_add);
        let all = self.lost_since_first().saturating_add(missing) as f64;
        if window == ALWAYS || all == 0.0 {
            return Some(all);
        }
        let times = self.places.iter().flat_map(|p| [p.after, p.before]).flatten();
        let (first, last) = (times.clone().min().unwrap_or(0), times.max().unwrap_or(0));
        let inside = self.sized_places().filter(|(place, _)| place.reaches(window));
        let placed: f64 = inside.map(|(_, size)| size as f64).sum();
        let length = last.saturating_sub(first).max(1) as f64;
        let inside = window.1.min(last).saturating_sub(window.0.max(first)) as f64;
        Some(placed + self.unplaced() as f64 * (inside / length).clamp(0.0, 1.0))
    }
}

impl Losses {
    /// Marks what the kernel lost before the first event of all CPUs. What is missing from the file was recorded.
    pub(super) fn mark_before_first(&mut self) {
        let Some(first) = self.cpus.iter().flat_map(|cpu| &cpu.pieces).map(|piece| piece.span.0).min() else {
            return;
        };
        for place in self.cpus.iter_mut().flat_map(|cpu| &mut cpu.places) {
            let is_first = place.after.is_none() && place.before == Some(first);
            place.is_before_first = is_first && place.events_missing == 0 && !place.damaged_input;
        }
    }

    /// Of [`Losses::lost_events`], those before the first event: they are before the recorded time.
    pub fn lost_before_first(&self) -> u64 {
        self.cpus.iter().fold(0, |sum, cpu| sum.saturating_add(cpu.lost_before_first()))
    }

    /// Events lost since the first event, on all CPUs, and those that are missing in the input.
    pub fn lost_since_first(&self) -> u64 {
        self.lost_events().saturating_sub(self.lost_before_first())
    }

    /// True if events were lost before the first event.
    pub fn any_before_first(&self) -> bool {
        self.cpus.iter().flat_map(|cpu| &cpu.places).any(|place| place.is_before_first)
    }

    /// True if events between two times may be missing.
    pub fn any_between(&self, window: (u64, u64)) -> bool {
        self.any() && (window == ALWAYS || self.overlaps(window.0, window.1))
    }

    /// True if a gap lies partly between two times.
    pub fn reaches_over(&self, window: (u64, u64)) -> bool {
        let places = self.cpus.iter().flat_map(|cpu| &cpu.places).filter(|place| place.reaches(window));
        let is_outside = |place: &LossPlace| {
            place.after.is_none_or(|after| after < window.0)
                || place.before.is_none_or(|before| before > window.1)
        };
        window != ALWAYS && places.into_iter().any(is_outside)
    }

    /// True if entries that a converted text lacks may be of the time between two times.
    pub fn lacks_input_between(&self, window: (u64, u64)) -> bool {
        let reaches = |(from, to): (u64, u64)| from <= window.1 && to >= window.0;
        self.missing_in_input > 0 && self.silence.is_none_or(reaches)
    }

    /// Events lost between two times, on all CPUs, until an unexpected end. `None`: not counted.
    pub fn lost_between(&self, window: (u64, u64)) -> Option<f64> {
        let placed: f64 = self.cpus.iter().map(|cpu| cpu.lost_between(window)).sum::<Option<f64>>()?;
        let of_input = match self.silence {
            _ if !self.lacks_input_between(window) => 0,
            // In a part of the hole, any number of them.
            Some((from, to)) if from < window.0 || to > window.1 => return None,
            // Without a hole they have no time.
            None if self.missing_in_input > 0 && window != ALWAYS => return None,
            _ => self.missing_in_input,
        };
        Some(placed + of_input as f64)
    }

    /// Lost share of the target's events between two times, until an unexpected end; `events` are those in the file then.
    /// `None`: not counted.
    pub fn lost_share(&self, events: u64, window: (u64, u64)) -> Option<f64> {
        let lost = self.lost_between(window)?;
        let mut places = self.cpus.iter().flat_map(|cpu| &cpu.places).filter(|place| !place.is_early_end);
        let is_counted = lost > 0.0 || !places.any(|place| place.reaches(window));
        is_counted.then(|| lost / (lost + events as f64).max(1.0))
    }

    /// Share of the time between two times, over all CPUs, in which events are missing. `None`: unknown, since dropped
    /// events have no position.
    pub fn missing_share(&self, from: u64, to: u64) -> Option<f64> {
        if self.missing_in_input > 0 && self.silence.is_none()
            || self.cpus.iter().any(|cpu| cpu.unplaced() > 0)
        {
            return None;
        }
        let length = to.saturating_sub(from).max(1) as f64;
        let missing: u64 = self
            .cpus
            .iter()
            .flat_map(|cpu| &cpu.places)
            .filter(|place| !place.is_before_first)
            .map(|p| p.before.unwrap_or(to).min(to).saturating_sub(p.after.unwrap_or(from).max(from)))
            .fold(0, u64::saturating_add);
        Some(missing as f64 / length / self.cpus.len().max(1) as f64)
    }

    /// The longest part of a time in which no events are missing on any CPU; `None`: there is none.
    pub fn longest_whole(&self, (first, last): (u64, u64)) -> Option<(u64, u64)> {
        let starts = self.spans.iter().map(|span| span.0).chain([u64::MAX]);
        let ends = [None].into_iter().chain(self.spans.iter().map(|span| Some(span.1)));
        let between = ends.zip(starts).map(|(end, start)| {
            // The times of a span itself are those of events beside the missing ones.
            let from = end.map_or(first, |end| end.saturating_add(1)).max(first);
            (from, start.saturating_sub(u64::from(start != u64::MAX)).min(last))
        });
        between.filter(|(from, to)| from < to).max_by_key(|(from, to)| to - from)
    }
}

#[cfg(test)]
mod tests {
    use kmt_format::kernel::CpuStats;

    use super::super::losses::Piece;
    use super::*;

    fn place(after: Option<u64>, before: Option<u64>) -> LossPlace {
        LossPlace {
            after,
            before,
            counted: 10,
            uncounted: false,
            damaged_input: false,
            events_missing: 0,
            events_before: 0,
            is_early_end: false,
            is_before_first: false,
        }
    }

    fn of_two(places: Vec<LossPlace>) -> Losses {
        let one = CpuLosses { places, ..CpuLosses::default() };
        let mut losses =
            Losses { cpus: vec![one, CpuLosses { cpu: 1, ..CpuLosses::default() }], ..Losses::default() };
        losses.find_spans();
        losses
    }

    #[test]
    fn time_that_is_missing() {
        let losses = of_two(vec![place(Some(100), Some(200)), place(Some(350), None)]);
        assert_eq!(losses.missing_share(100, 200), Some(0.5), "all of one of two CPUs");
        assert_eq!(losses.missing_share(150, 250), Some(0.25));
        assert_eq!(losses.missing_share(200, 300), Some(0.0));
        assert_eq!(losses.missing_share(300, 400), Some(0.25), "to the end");
        assert_eq!(losses.lost_share(80, ALWAYS), Some(0.2));
    }

    #[test]
    fn entries_that_a_text_lacks_are_of_its_hole() {
        let mut losses = of_two(vec![]);
        (losses.missing_in_input, losses.silence) = (20, Some((200, 300)));
        losses.cpus.iter_mut().for_each(|cpu| cpu.add_hole((200, 300)));
        losses.find_spans();
        let share = |window| losses.lost_share(80, window);
        assert_eq!(
            [ALWAYS, (100, 400), (0, 199), (301, 400)].map(share),
            [Some(0.2), Some(0.2), Some(0.0), Some(0.0)]
        );
        assert_eq!(share((250, 400)), None, "in a part of it, any number");
        assert_eq!(losses.missing_share(100, 400), Some(1.0 / 3.0));
        assert_eq!(losses.longest_whole((0, 250)), Some((0, 199)));
        losses.silence = None;
        losses.find_spans();
        assert_eq!((losses.lost_share(80, (0, 199)), losses.missing_share(100, 400)), (None, None));
    }

    #[test]
    fn losses_count_where_they_are() {
        let losses = of_two(vec![place(None, Some(200)), place(Some(350), Some(400))]);
        for (window, share) in [
            ((0, 100), 0.2),
            ((201, 349), 0.0),
            ((201, 350), 0.2),
            ((100, 350), 1.0 / 3.0),
            ((401, 900), 0.0),
        ] {
            assert_eq!(losses.lost_share(40, window), Some(share), "{window:?}");
            assert_eq!(losses.any_between(window), share > 0.0, "{window:?}");
        }
    }

    #[test]
    fn uncounted_losses_make_only_their_time_unknown() {
        let uncounted = LossPlace { counted: 0, uncounted: true, ..place(None, Some(200)) };
        let mut losses = of_two(vec![uncounted, place(Some(350), Some(400))]);
        let shares =
            |losses: &Losses| [ALWAYS, (100, 300), (201, 400)].map(|window| losses.lost_share(30, window));
        assert_eq!(shares(&losses), [None, None, Some(0.25)]);
        // With the kernel's counters, the uncounted place has what the others have not.
        losses.cpus[0].stats = CpuStats::parse("overrun: 100\ndropped events: 0\ncommit overrun: 0\n");
        assert_eq!(shares(&losses), [Some(100.0 / 130.0), Some(0.75), Some(0.25)]);
    }

    /// As of a flight recorder: both CPUs overwrote events, CPU 1 until the first event of all.
    #[test]
    fn losses_before_the_first_event_are_in_no_time() {
        let mut losses = of_two(vec![place(None, Some(200))]);
        losses.cpus[1].places = vec![place(None, Some(50)), place(Some(300), Some(320))];
        for (cpu, span) in [(0, (200, 400)), (1, (50, 300))] {
            losses.cpus[cpu].pieces = vec![Piece { span, events_before: 0, events: 4 }];
        }
        losses.mark_before_first();
        losses.find_spans();
        assert_eq!(
            (losses.lost_events(), losses.lost_before_first(), losses.lost_since_first()),
            (30, 10, 20)
        );
        assert!(losses.any() && losses.any_before_first());
        assert_eq!(losses.lost_share(20, ALWAYS), Some(0.5));
        assert_eq!(losses.lost_between((0, 290)), Some(10.0));
        assert_eq!(losses.longest_whole((50, 400)), Some((201, 299)));
        // Without the other losses, the recorded time is whole, and an object that is born with it is certain.
        losses.cpus[0].places.clear();
        losses.cpus[1].places.truncate(1);
        losses.find_spans();
        assert!(!losses.any() && !losses.has_gaps() && losses.first_between(50, 400).is_none());
        assert_eq!((losses.lost_before_first(), losses.lost_share(20, ALWAYS)), (10, Some(0.0)));
        // The counters have one number for all uncounted places: how many of them were before is unknown.
        let uncounted = LossPlace { counted: 0, uncounted: true, ..place(Some(300), Some(320)) };
        let first = LossPlace { is_before_first: true, after: None, before: Some(50), ..uncounted };
        losses.cpus[1].places = vec![first, uncounted];
        losses.cpus[1].stats = CpuStats::parse("overrun: 40\ndropped events: 0\ncommit overrun: 0\n");
        assert_eq!((losses.lost_before_first(), losses.lost_since_first()), (0, 40));
        losses.cpus[1].places.truncate(1);
        assert_eq!((losses.lost_before_first(), losses.lost_since_first(), losses.any()), (40, 0, false));
        // A chunk that is missing from the file was recorded.
        losses.cpus[1].places = vec![LossPlace { events_missing: 7, ..place(None, Some(50)) }];
        losses.mark_before_first();
        assert!(losses.any() && !losses.any_before_first());
    }

    #[test]
    fn the_longest_time_without_losses() {
        let whole = |places, window| of_two(places).longest_whole(window);
        assert_eq!(whole(vec![], (5, 90)), Some((5, 90)));
        assert_eq!(whole(vec![place(None, Some(20))], (5, 90)), Some((21, 90)));
        assert_eq!(whole(vec![place(Some(60), None)], (5, 90)), Some((5, 59)));
        let places = vec![place(None, Some(20)), place(Some(50), Some(60)), place(Some(70), Some(75))];
        assert_eq!(whole(places.clone(), (5, 90)), Some((21, 49)));
        assert_eq!(whole(places, (55, 90)), Some((76, 90)));
        assert_eq!(whole(vec![place(None, None)], (5, 90)), None);
    }
}
