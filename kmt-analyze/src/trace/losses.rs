//! Lost events: their numbers, CPUs and positions.
//!
//! Input are the headers of event chunks, the kernel's counters of each CPU, and the metadata of a converted text; no
//! event is read. A session has one `Losses`. `loss_times` and `loss_spans` answer questions about a time or a life,
//! `pass/ranges` estimates totals, and heads of screens and documents report the numbers.

use kmt_format::Loss;
use kmt_format::kernel::CpuStats;
use kmt_format::read::Trace;

use super::faults::Change;

/// Key of the number of entries that the converted text lacks.
const MISSING_IN_INPUT: &str = "input.missing";
/// Key of the longest time without an entry of such a text, where it stands out.
const SILENCE: &str = "input.silence";

/// Key of the number of entries that the ring buffer of a converted text overwrote before its first one.
const OVERWRITTEN_IN_INPUT: &str = "input.overwritten";

/// Keys of what a converted text lacks.
pub const LACKS_OF_INPUT: [&str; 2] = [MISSING_IN_INPUT, SILENCE];

/// A place in a CPU's stream where events are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LossPlace {
    /// Time of the last event before it; `None` at the start of the stream.
    pub after: Option<u64>,
    /// Time of the first event after it; `None` at the end of the stream.
    pub before: Option<u64>,
    /// Events lost as the kernel counted them.
    pub counted: u64,
    /// True if the kernel did not count all of them.
    pub uncounted: bool,
    /// True if part of the input was damaged here.
    pub damaged_input: bool,
    /// Events of chunks that are missing from the file.
    pub events_missing: u64,
    /// Events of this CPU in the file before it.
    pub events_before: u64,
    /// True if the recording ended unexpectedly here: events that were still in the ring buffer are unknown.
    pub is_early_end: bool,
    /// True if the kernel lost these events before the first event of all CPUs: they are before the recorded time, as
    /// those that a flight recorder overwrote.
    pub is_before_first: bool,
}

/// Losses of one CPU.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuLosses {
    pub cpu: u32,
    /// Events in the file.
    pub events: u64,
    /// The kernel's own counters, if the file has them.
    pub stats: Option<CpuStats>,
    /// Places where events are missing.
    pub places: Vec<LossPlace>,
    /// Events between these places, by chunk; empty if nothing was lost.
    pub pieces: Vec<Piece>,
    /// True if another process changed settings, by which more events may be missing.
    pub is_changed: bool,
    /// True if entries are missing in the input, which may be of this CPU.
    pub lacks_entries: bool,
    /// Events that were overwritten by design before the first one: the ring buffer kept the newest.
    pub overwritten: u64,
    /// Time of the first event behind them; `None`: no event was overwritten by design.
    pub window_begin: Option<u64>,
}

/// Events of a CPU that are contiguous in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Times of the first and the last event.
    pub span: (u64, u64),
    /// Events of this CPU in the file before them.
    pub events_before: u64,
    /// Number of events.
    pub events: u64,
}

impl LossPlace {
    fn early_end(after: Option<u64>, events_before: u64) -> Self {
        let (counted, uncounted, damaged_input, events_missing) = (0, false, false, 0);
        let (is_early_end, is_before_first) = (true, false);
        Self {
            after,
            before: None,
            counted,
            uncounted,
            damaged_input,
            events_missing,
            events_before,
            is_early_end,
            is_before_first,
        }
    }
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

    /// Events lost while recording: by the kernel's counters, plus those counted in place beyond its overrun, as when a
    /// recorder ended at `--max-size`; without the counters by the sub-buffers.
    pub fn lost_events(&self) -> u64 {
        let counted = self.counted();
        let Some((stats, lost)) = self.stats.and_then(|s| Some((s, s.lost_events()?))) else {
            return counted;
        };
        let lost = lost.saturating_sub(self.overwritten);
        lost.saturating_add(counted.saturating_sub(self.overrun(&stats).unwrap_or(0)))
    }

    /// Events that were overwritten, without those by design.
    fn overrun(&self, stats: &CpuStats) -> Option<u64> {
        Some(stats.overrun?.saturating_sub(self.overwritten))
    }

    /// Adds the hole of a text that lacks entries: no event of any CPU is between these two times.
    pub(super) fn add_hole(&mut self, (after, before): (u64, u64)) {
        let pieces = self.pieces.iter().take_while(|piece| piece.span.1 <= after);
        let place = LossPlace {
            after: Some(after),
            before: Some(before),
            counted: 0,
            uncounted: false,
            damaged_input: true,
            events_missing: 0,
            events_before: pieces.map(|piece| piece.events).sum(),
            is_early_end: false,
            is_before_first: false,
        };
        let at = self.places.partition_point(|place| place.before.is_some_and(|time| time <= after));
        self.places.insert(at, place);
    }

    /// True if more events may be lost: an unexpected end, changes by others, or no counters and a place where the kernel did not count.
    pub fn is_minimum(&self) -> bool {
        self.early_end().is_some() || self.lacks_entries || self.is_minimum_before_end()
    }

    pub(super) fn is_minimum_before_end(&self) -> bool {
        let is_uncounted = |place: &LossPlace| place.uncounted && !place.is_before_first;
        self.is_changed || !self.has_counters() && self.places.iter().any(is_uncounted)
    }

    /// True if the kernel's counters of lost events are known.
    pub(super) fn has_counters(&self) -> bool {
        self.stats.and_then(|s| s.lost_events()).is_some()
    }

    /// Where the recording ended unexpectedly on this CPU; `None`: it did not.
    pub fn early_end(&self) -> Option<&LossPlace> {
        self.places.last().filter(|place| place.is_early_end)
    }

    /// Overwritten events by the counters beyond those counted in place: lost at the uncounted places together. `None`:
    /// no counters, or no such place.
    pub fn lost_at_uncounted_places(&self) -> Option<u64> {
        let overrun = self.overrun(&self.stats?)?;
        (self.uncounted_places() > 0).then(|| overrun.saturating_sub(self.counted()))
    }

    /// Counted gaps in the recorded time, and those of chunks missing from the file: number of events in the file before
    /// each, and its size.
    pub fn gaps(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let inside = self.sized_places().filter(|(place, _)| !place.is_before_first);
        inside.map(|(place, size)| (place.events_before, size))
    }

    /// Places with a number of lost events, which is a mean where the kernel counted them together.
    pub fn sized_places(&self) -> impl Iterator<Item = (&LossPlace, u64)> + '_ {
        let uncounted = self.uncounted_places() as u64;
        let share = self.lost_at_uncounted_places().unwrap_or(0).checked_div(uncounted).unwrap_or(0);
        let size =
            move |p: &LossPlace| p.counted.max(p.events_missing).max(if p.uncounted { share } else { 0 });
        self.places.iter().map(move |p| (p, size(p))).filter(|gap| gap.1 > 0)
    }

    /// Lost events without a position: dropped events and those of nested interrupts mark no sub-buffer.
    pub fn unplaced(&self) -> u64 {
        let Some(stats) = self.stats else { return 0 };
        let refused = stats.dropped.unwrap_or(0).saturating_add(stats.commit_overrun.unwrap_or(0));
        let overrun_rest = self.overrun(&stats).unwrap_or(0).saturating_sub(self.counted());
        refused.saturating_add(if self.uncounted_places() == 0 { overrun_rest } else { 0 })
    }
}

/// Losses of a trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Losses {
    /// By CPU.
    pub cpus: Vec<CpuLosses>,
    /// True if the recording ended unexpectedly.
    pub ended_early: bool,
    /// Changes of the recording by other processes.
    pub changes: Vec<Change>,
    /// True if the file lacks sums of an interval of folded lives.
    pub lacks_sums: bool,
    /// Entries that the converted text lacks by its own header: their CPUs are unknown.
    pub missing_in_input: u64,
    /// Entries that the ring buffer of a converted text overwrote by design on its CPUs, by its own header: how many of them
    /// on which CPU is unknown.
    pub overwritten_in_input: u64,
    /// Times of the events beside the hole in which they are taken to be; `None`: their times are unknown, too.
    pub silence: Option<(u64, u64)>,
    /// Converted from perf.data: perf marks what a CPU lost with its next event (kernel/events/ring_buffer.c, 4.4 to 7.2).
    pub by_perf: bool,
    /// Time spans with missing events, sorted by start; the second time is the latest end so far.
    pub(super) spans: Vec<(u64, u64)>,
}

impl Losses {
    /// Losses from the headers of event chunks and the kernel's counters; no event is read.
    pub fn of(trace: &Trace<'_>) -> Self {
        let counters = &trace.metadata().counters;
        let early_end = trace.early_end();
        let ends = early_end.as_ref().map(|end| &end.complete_until);
        let cpus =
            trace.streams().keys().chain(counters.keys()).chain(ends.into_iter().flatten().map(|e| e.0));
        let mut numbers: Vec<u32> = cpus.copied().collect();
        numbers.sort_unstable();
        numbers.dedup();
        let changes = Change::all(trace.metadata());
        let lacks_sums = trace.folds_missing() > 0;
        // Of what is missing then the CPUs are unknown, too.
        let is_changed = lacks_sums || changes.iter().any(Change::loses_events);
        let missing = trace.metadata().text(MISSING_IN_INPUT).and_then(|number| number.parse().ok());
        let missing_in_input = missing.unwrap_or(0);
        let lacks_entries = missing_in_input > 0;
        let silence = silence(trace).filter(|_| lacks_entries);
        let by_perf = trace.metadata().text("source") == Some("perf.data");
        let ended_early = early_end.is_some();
        let mut losses =
            Self { ended_early, changes, missing_in_input, silence, by_perf, lacks_sums, ..Self::default() };
        for cpu in numbers {
            let counters = counters.get(&cpu);
            let stats = counters.and_then(|c| c.before.filter(|s| s.lost_events().is_some()).or(c.after));
            let stream = trace.streams().get(&cpu);
            let events = stream.map_or(0, |s| s.event_count());
            let mut one = CpuLosses { cpu, events, stats, is_changed, lacks_entries, ..CpuLosses::default() };
            let mut after = None;
            let (mut events_seen, mut events_kept) = (0, 0);
            let mut by_design = None;
            for (index, (_, info)) in stream.iter().flat_map(|s| &s.chunks).enumerate() {
                let events_missing = info.first_event.saturating_sub(events_seen);
                let has_events = info.event_count > 0;
                let mut loss = info.loss;
                if index == 0 && loss.overwritten {
                    // A ring buffer that is to keep the newest events: the recording begins here.
                    by_design = Some(loss.counted);
                    loss = if loss.damaged_input { Loss::damaged_input() } else { Loss::default() };
                }
                if lacks_entries && !has_events && loss.uncounted && loss.damaged_input {
                    // The mark of entries that are missing somewhere in the input has neither a place nor a time.
                    (loss.uncounted, loss.damaged_input) = (false, false);
                }
                if !loss.is_none() || events_missing > 0 {
                    one.places.push(LossPlace {
                        after,
                        before: has_events.then_some(info.t_first),
                        counted: loss.counted,
                        uncounted: loss.uncounted,
                        damaged_input: loss.damaged_input,
                        events_missing,
                        events_before: events_kept,
                        is_early_end: false,
                        is_before_first: false,
                    });
                }
                if has_events {
                    if by_design.is_some() {
                        one.window_begin.get_or_insert(info.t_first);
                    }
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
            if let Some(hole) = silence {
                one.add_hole(hole);
            }
            if let Some(counted) = by_design {
                // The kernel may have had no room for the count.
                let overrun = one.stats.and_then(|stats| stats.overrun).unwrap_or(0);
                one.overwritten = counted.max(overrun.saturating_sub(one.counted()));
            }
            if let Some(ends) = ends {
                let until = ends.get(&cpu).copied().flatten().max(after);
                one.places.push(LossPlace::early_end(until, events_kept));
            }
            losses.cpus.push(one);
        }
        losses.add_overwritten(trace.metadata().text(OVERWRITTEN_IN_INPUT));
        losses.mark_before_first();
        if !losses.any() {
            losses.cpus.iter_mut().for_each(|cpu| cpu.pieces = Vec::new());
        }
        losses.find_spans();
        losses
    }

    /// Adds the number of a text's header. Where only one CPU has events, and no entry is missing, they were of that CPU: a
    /// buffer that overwrote is full.
    fn add_overwritten(&mut self, number: Option<&str>) {
        let number = number.and_then(|number| number.parse().ok()).unwrap_or(0);
        let mut marked = self.cpus.iter_mut().filter(|cpu| cpu.window_begin.is_some());
        match (marked.next(), marked.next()) {
            (None, _) => {}
            (Some(cpu), None) if self.missing_in_input == 0 => cpu.overwritten = cpu.overwritten.max(number),
            (Some(_), _) => self.overwritten_in_input = number,
        }
    }

    pub(super) fn find_spans(&mut self) {
        let mut spans = Change::spans(&self.changes);
        // Behind the end of all CPUs nothing is known, and nothing is reported.
        let end = self.cpus.iter().filter_map(|cpu| cpu.early_end()?.after).max();
        for cpu in &self.cpus {
            let places = cpu.places.iter().filter(|p| !p.is_before_first);
            let places = places.filter(|p| !p.is_early_end || p.after < end);
            spans.extend(places.map(|p| (p.after.unwrap_or(0), p.before.unwrap_or(u64::MAX))));
            if cpu.unplaced() > 0 {
                spans.push((0, u64::MAX));
            }
        }
        if self.missing_in_input > 0 && self.silence.is_none() {
            spans.push((0, u64::MAX));
        }
        // Before it, events of some CPUs were overwritten: only a selection of those times reaches it.
        spans.extend(self.window_begin().and_then(|begin| Some((0, begin.checked_sub(1)?))));
        self.set_spans(spans);
    }

    fn set_spans(&mut self, mut spans: Vec<(u64, u64)>) {
        spans.sort_unstable();
        let mut latest = 0;
        for span in &mut spans {
            latest = latest.max(span.1);
            span.1 = latest;
        }
        self.spans = spans;
    }

    /// Losses between these times, without the events.
    #[cfg(test)]
    pub fn between(spans: Vec<(u64, u64)>) -> Self {
        let mut losses = Self::default();
        losses.set_spans(spans);
        losses
    }

    /// Events that were overwritten by design, on all CPUs.
    pub fn overwritten_events(&self) -> u64 {
        self.cpus.iter().fold(self.overwritten_in_input, |sum, cpu| sum.saturating_add(cpu.overwritten))
    }

    /// Time from which on no event of any CPU was overwritten by design; `None`: none was.
    pub fn window_begin(&self) -> Option<u64> {
        self.cpus.iter().filter_map(|cpu| cpu.window_begin).max()
    }

    /// True if events are missing in a known time span.
    pub fn has_spans(&self) -> bool {
        !self.spans.is_empty()
    }

    /// Events lost while recording, on all CPUs, and those that are missing in the input.
    pub fn lost_events(&self) -> u64 {
        self.cpus.iter().fold(self.missing_in_input, |sum, c| sum.saturating_add(c.lost_events()))
    }

    /// True if more events may be lost since the first event.
    pub fn is_minimum(&self) -> bool {
        self.ended_early || self.cpus.iter().any(CpuLosses::is_minimum_before_end)
    }

    /// True if any event since the first one is missing.
    pub fn any(&self) -> bool {
        let mut places = self.cpus.iter().flat_map(|cpu| &cpu.places);
        self.is_minimum() || self.lost_since_first() > 0 || places.any(|place| !place.is_before_first)
    }

    /// True if events are missing before the end.
    pub fn has_gaps(&self) -> bool {
        let mut places = self.cpus.iter().flat_map(|cpu| &cpu.places);
        self.missing_in_input > 0 || places.any(|place| !place.is_early_end && !place.is_before_first)
    }

    /// True if the file has the kernel's counters of every CPU.
    pub fn has_all_stats(&self) -> bool {
        self.cpus.iter().all(|c| c.stats.is_some())
    }
}

/// The hole that the converter found.
fn silence(trace: &Trace<'_>) -> Option<(u64, u64)> {
    let (from, to) = trace.metadata().text(SILENCE)?.split_once(' ')?;
    Some((from.parse().ok()?, to.parse().ok()?)).filter(|(from, to)| from < to)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ring buffer of two CPUs whose oldest events were overwritten, one of them without a count in its sub-buffer; the second
    /// lost events later too.
    #[test]
    fn overwritten_by_design_is_not_lost() {
        let stats = |overrun: u64| {
            CpuStats::parse(&format!("overrun: {overrun}\ndropped events: 0\ncommit overrun: 0\n"))
        };
        let mut one =
            CpuLosses { stats: stats(700), overwritten: 700, window_begin: Some(50), ..CpuLosses::default() };
        assert_eq!((one.lost_events(), one.unplaced(), one.is_minimum()), (0, 0, false));
        one.stats = CpuStats::parse("overrun: 700\ndropped events: 2\ncommit overrun: 1\n");
        assert_eq!((one.lost_events(), one.unplaced()), (3, 3), "refused, not overwritten");
        let place = LossPlace { is_early_end: false, counted: 30, ..LossPlace::early_end(Some(60), 9) };
        let two = CpuLosses {
            cpu: 1,
            stats: stats(40),
            overwritten: 10,
            window_begin: Some(80),
            places: vec![place],
            ..CpuLosses::default()
        };
        assert_eq!((two.lost_events(), two.unplaced()), (30, 0));
        let losses = Losses { cpus: vec![one, two], ..Losses::default() };
        assert_eq!(
            (losses.overwritten_events(), losses.window_begin(), losses.lost_events()),
            (710, Some(80), 33)
        );
        let mut ring = Losses {
            cpus: vec![CpuLosses {
                stats: stats(5),
                overwritten: 5,
                window_begin: Some(80),
                ..CpuLosses::default()
            }],
            ..Losses::default()
        };
        ring.find_spans();
        assert!(!ring.any() && !ring.overlaps(80, 90) && ring.overlaps(79, 90));
    }
}
