//! What was lost, on which CPU, and where.

use kmt_format::kernel::CpuStats;
use kmt_format::read::Trace;

/// A place in a CPU's stream where events are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LossPlace {
    /// Time of the last event before it; `None` at the start of the stream.
    pub after: Option<u64>,
    /// Time of the first event behind it; `None` at the end of the stream.
    pub before: Option<u64>,
    /// Events lost as the kernel counted them.
    pub counted: u64,
    /// The kernel did not count all of them.
    pub uncounted: bool,
    /// Part of the input was damaged here.
    pub damaged_input: bool,
    /// Events of chunks that are missing from the file.
    pub events_missing: u64,
    /// Events of this CPU that the file has before it.
    pub events_before: u64,
}

/// What is known of one CPU's losses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuLosses {
    /// CPU.
    pub cpu: u32,
    /// Events in the file.
    pub events: u64,
    /// The kernel's own counters, if the file has them.
    pub stats: Option<CpuStats>,
    /// Where events are missing.
    pub places: Vec<LossPlace>,
    /// What the file has between, chunk by chunk; empty where nothing at all was lost.
    pub pieces: Vec<Piece>,
}

/// Events of a CPU that lie together in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Times of the first and the last.
    pub span: (u64, u64),
    /// Events of this CPU that the file has before them.
    pub events_before: u64,
    /// How many they are.
    pub events: u64,
}

impl CpuLosses {
    /// Events that sub-buffers counted as lost.
    pub fn counted(&self) -> u64 {
        self.places.iter().fold(0, |sum, p| sum.saturating_add(p.counted))
    }

    /// Places where the kernel did not count.
    pub fn uncounted_places(&self) -> usize {
        self.places.iter().filter(|p| p.uncounted).count()
    }

    /// Events lost while recording: by the kernel's counters, and those counted in place beyond its overrun, as where a
    /// recorder ended at `--max-size`; without the counters by the sub-buffers.
    pub fn lost_events(&self) -> u64 {
        let counted = self.counted();
        let Some((stats, lost)) = self.stats.and_then(|s| Some((s, s.lost_events()?))) else {
            return counted;
        };
        lost.saturating_add(counted.saturating_sub(stats.overrun.unwrap_or(0)))
    }

    /// Whether there may be more: no counters, and a place where the kernel did not count.
    pub fn is_minimum(&self) -> bool {
        self.stats.and_then(|s| s.lost_events()).is_none() && self.uncounted_places() > 0
    }

    /// Overwritten events that the counters tell beyond those counted in place: they were lost at the uncounted
    /// places, together. `None` without the counters or without such a place.
    pub fn lost_at_uncounted_places(&self) -> Option<u64> {
        let overrun = self.stats?.overrun?;
        (self.uncounted_places() > 0).then(|| overrun.saturating_sub(self.counted()))
    }

    /// Gaps that are counted, and those that chunks missing from the file left: events of the file before each, and
    /// its size.
    pub fn gaps(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let uncounted = self.uncounted_places() as u64;
        let share = self.lost_at_uncounted_places().unwrap_or(0).checked_div(uncounted).unwrap_or(0);
        let size =
            move |p: &LossPlace| p.counted.max(p.events_missing).max(if p.uncounted { share } else { 0 });
        self.places.iter().map(move |p| (p.events_before, size(p))).filter(|gap| gap.1 > 0)
    }

    /// Events lost between two times; those of unknown place in proportion. `None` if they were not counted.
    pub fn lost_between(&self, window: (u64, u64)) -> Option<f64> {
        if self.is_minimum() {
            return None;
        }
        let missing: u64 = self.places.iter().map(|p| p.events_missing).fold(0, u64::saturating_add);
        let all = self.lost_events().saturating_add(missing) as f64;
        if window == (0, u64::MAX) || all == 0.0 {
            return Some(all);
        }
        let times = self.places.iter().flat_map(|p| [p.after, p.before]).flatten();
        let (first, last) = (times.clone().min().unwrap_or(0), times.max().unwrap_or(0));
        let placed: f64 = self
            .places
            .iter()
            .filter(|p| p.before.is_none_or(|b| b >= window.0) && p.after.is_none_or(|a| a <= window.1))
            .map(|p| p.counted.max(p.events_missing) as f64)
            .sum();
        let length = last.saturating_sub(first).max(1) as f64;
        let inside = window.1.min(last).saturating_sub(window.0.max(first)) as f64;
        Some(placed + self.unplaced() as f64 * (inside / length).clamp(0.0, 1.0))
    }

    /// Events of which nobody says where they are missing: dropped ones never mark a sub-buffer, nor do those of
    /// nested storms.
    pub fn unplaced(&self) -> u64 {
        let Some(stats) = self.stats else { return 0 };
        let refused = stats.dropped.unwrap_or(0).saturating_add(stats.commit_overrun.unwrap_or(0));
        let overrun_rest = stats.overrun.unwrap_or(0).saturating_sub(self.counted());
        refused.saturating_add(if self.uncounted_places() == 0 { overrun_rest } else { 0 })
    }
}

/// How far [`Losses::missing_until`] has come.
#[derive(Debug, Clone, Copy)]
pub struct LossCursor {
    next: usize,
    next_start: u64,
    until: u64,
}

/// What is known of all losses of a trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Losses {
    /// By CPU.
    pub cpus: Vec<CpuLosses>,
    /// Spans of time in which something is missing, sorted by start; the second number is the latest end so far.
    spans: Vec<(u64, u64)>,
}

impl Losses {
    /// Collects what the heads of the event chunks and the kernel's counters say; no event is read.
    pub fn of(trace: &Trace<'_>) -> Self {
        let counters = &trace.metadata().counters;
        let mut numbers: Vec<u32> = trace.streams().keys().chain(counters.keys()).copied().collect();
        numbers.sort_unstable();
        numbers.dedup();
        let mut losses = Self::default();
        for cpu in numbers {
            let counters = counters.get(&cpu);
            let stats = counters.and_then(|c| c.before.filter(|s| s.lost_events().is_some()).or(c.after));
            let stream = trace.streams().get(&cpu);
            let events = stream.map_or(0, |s| s.event_count());
            let mut one = CpuLosses { cpu, events, stats, ..CpuLosses::default() };
            let mut after = None;
            let (mut events_seen, mut events_kept) = (0, 0);
            for (_, info) in stream.iter().flat_map(|s| &s.chunks) {
                let events_missing = info.first_event.saturating_sub(events_seen);
                let has_events = info.event_count > 0;
                if info.loss != Default::default() || events_missing > 0 {
                    one.places.push(LossPlace {
                        after,
                        before: has_events.then_some(info.t_first),
                        counted: info.loss.counted,
                        uncounted: info.loss.uncounted,
                        damaged_input: info.loss.damaged_input,
                        events_missing,
                        events_before: events_kept,
                    });
                }
                if has_events {
                    let events = info.event_count.into();
                    one.pieces.push(Piece {
                        span: (info.t_first, info.t_last),
                        events_before: events_kept,
                        events,
                    });
                    events_kept += events;
                }
                events_seen = info.first_event.max(events_seen).saturating_add(info.event_count.into());
                if has_events {
                    after = Some(info.t_last);
                }
            }
            losses.cpus.push(one);
        }
        if !losses.any() {
            losses.cpus.iter_mut().for_each(|cpu| cpu.pieces = Vec::new());
        }
        losses.find_spans();
        losses
    }

    fn find_spans(&mut self) {
        let mut spans = Vec::new();
        for cpu in &self.cpus {
            spans.extend(cpu.places.iter().map(|p| (p.after.unwrap_or(0), p.before.unwrap_or(u64::MAX))));
            if cpu.unplaced() > 0 {
                spans.push((0, u64::MAX));
            }
        }
        spans.sort_unstable();
        let mut latest = 0;
        for span in &mut spans {
            latest = latest.max(span.1);
            span.1 = latest;
        }
        self.spans = spans;
    }

    /// Whether something is missing at some time, as far as is known.
    pub fn has_spans(&self) -> bool {
        !self.spans.is_empty()
    }

    /// Whether something is missing between the two times.
    pub fn overlaps(&self, from: u64, to: u64) -> bool {
        let starting_before = self.spans.partition_point(|s| s.0 <= to);
        starting_before.checked_sub(1).and_then(|i| self.spans.get(i)).is_some_and(|s| s.1 >= from)
    }

    /// For times that rise: up to when something is missing, of what began to be missing by `time`.
    #[inline]
    pub fn missing_until(&self, time: u64, cursor: &mut LossCursor) -> u64 {
        while time >= cursor.next_start {
            cursor.until = self.spans.get(cursor.next).map_or(cursor.until, |s| s.1);
            cursor.next += 1;
            cursor.next_start = self.spans.get(cursor.next).map_or(u64::MAX, |s| s.0);
            if cursor.next > self.spans.len() {
                break;
            }
        }
        cursor.until
    }

    /// The start of [`Losses::missing_until`].
    pub fn cursor(&self) -> LossCursor {
        LossCursor { next: 0, next_start: self.spans.first().map_or(u64::MAX, |s| s.0), until: 0 }
    }

    /// The share of the time between two times, over all CPUs, in which events are missing. `None` where it is not known
    /// in which: dropped events mark no place.
    pub fn missing_share(&self, from: u64, to: u64) -> Option<f64> {
        if self.cpus.iter().any(|cpu| cpu.unplaced() > 0) {
            return None;
        }
        let length = to.saturating_sub(from).max(1) as f64;
        let missing: u64 = self
            .cpus
            .iter()
            .flat_map(|cpu| &cpu.places)
            .map(|p| p.before.unwrap_or(to).min(to).saturating_sub(p.after.unwrap_or(from).max(from)))
            .fold(0, u64::saturating_add);
        Some(missing as f64 / length / self.cpus.len().max(1) as f64)
    }

    /// The share of the events of the target that was lost; `None` where they were not counted.
    pub fn lost_share(&self, events: u64) -> Option<f64> {
        let missing = self.cpus.iter().flat_map(|c| &c.places).map(|p| p.events_missing);
        let lost = missing.fold(self.lost_events(), u64::saturating_add);
        let is_counted = !self.is_minimum() && (lost > 0 || !self.any());
        is_counted.then(|| lost as f64 / lost.saturating_add(events).max(1) as f64)
    }

    /// Events lost while recording, on all CPUs.
    pub fn lost_events(&self) -> u64 {
        self.cpus.iter().fold(0, |sum, c| sum.saturating_add(c.lost_events()))
    }

    /// Whether there may be more.
    pub fn is_minimum(&self) -> bool {
        self.cpus.iter().any(CpuLosses::is_minimum)
    }

    /// Whether anything is missing at all.
    pub fn any(&self) -> bool {
        self.lost_events() > 0 || self.cpus.iter().any(|c| !c.places.is_empty())
    }

    /// Whether the file tells the kernel's own counters of every CPU.
    pub fn has_all_stats(&self) -> bool {
        self.cpus.iter().all(|c| c.stats.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_is_missing() {
        let place = |after, before| LossPlace {
            after,
            before,
            counted: 10,
            uncounted: false,
            damaged_input: false,
            events_missing: 0,
            events_before: 0,
        };
        let one = CpuLosses {
            places: vec![place(Some(100), Some(200)), place(Some(350), None)],
            ..CpuLosses::default()
        };
        let losses =
            Losses { cpus: vec![one, CpuLosses { cpu: 1, ..CpuLosses::default() }], ..Losses::default() };
        assert_eq!(losses.missing_share(100, 200), Some(0.5), "all of one of two CPUs");
        assert_eq!(losses.missing_share(150, 250), Some(0.25));
        assert_eq!(losses.missing_share(200, 300), Some(0.0));
        assert_eq!(losses.missing_share(300, 400), Some(0.25), "to the end");
        assert_eq!(losses.lost_share(80), Some(0.2));
    }

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
            let missing_until = losses.missing_until(to, &mut losses.cursor());
            assert_eq!(missing_until > 0 && missing_until >= from, expected, "{from}..{to}");
        }
        let mut cursor = losses.cursor();
        let seen = [9, 10, 16, 40, 50, 99].map(|time| losses.missing_until(time, &mut cursor));
        assert_eq!(seen, [0, 20, 20, 20, 60, 60]);
    }
}
