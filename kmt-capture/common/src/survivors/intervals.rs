//! Intervals of the recording, one after the other, with the sums of the lives that are folded in them.

use kmt_format::Result;
use kmt_format::fold::FoldedInterval;
use kmt_format::write::Writer;

use super::SurvivorOptions;
use super::sums::IntervalSums;

/// The interval that is open, and its sums.
#[derive(Debug)]
pub struct Intervals {
    /// Of the interval that is open.
    pub sums: IntervalSums,
    open: Option<FoldedInterval>,
    count: u64,
    /// Greatest time so far.
    last_time: u64,
    /// Length, in the clock's unit.
    length: u64,
    threshold: u64,
    /// Memory of the sums from which an interval ends early, in bytes.
    memory: usize,
}

impl Intervals {
    /// Without events.
    pub fn new(options: &SurvivorOptions) -> Self {
        Self {
            sums: IntervalSums::new(options.order),
            open: None,
            count: 0,
            last_time: 0,
            length: options.interval,
            threshold: options.threshold,
            memory: options.memory / 4,
        }
    }

    /// True if a time is in the interval that is open.
    #[inline]
    pub fn contain(&self, time: u64) -> bool {
        time >= self.open.as_ref().map_or(0, |interval| interval.t_begin)
    }

    /// Enters the time of an event: true if its interval is still to be begun, and the one before ends.
    #[inline]
    pub fn are_over(&mut self, time: u64) -> bool {
        let is_full = self.sums.memory() > self.memory && time > self.last_time;
        self.last_time = self.last_time.max(time);
        match &mut self.open {
            Some(open) if time < open.t_end && is_full && time > open.t_begin => {
                open.t_end = time;
                true
            }
            Some(open) => time >= open.t_end,
            None => true,
        }
    }

    /// Begins the interval of a time, behind the one before.
    pub fn begin(&mut self, time: u64, before: Option<u64>) {
        let start = time - time % self.length;
        let mut interval = FoldedInterval::default();
        interval.number = self.count;
        interval.t_begin = before.unwrap_or(start);
        interval.t_end = start.saturating_add(self.length);
        interval.threshold = self.threshold;
        self.count += 1;
        self.open = Some(interval);
    }

    /// Writes the interval that is open, with the events that were folded in it by CPU; returns its end.
    pub fn end(
        &mut self,
        writer: &mut Writer,
        folded: impl Iterator<Item = (u32, u64)>,
    ) -> Result<Option<u64>> {
        let Some(mut interval) = self.open.take() else { return Ok(None) };
        let end = interval.t_end;
        interval.cpus = folded.filter(|(_, events)| *events > 0).collect();
        writer.add_fold(&self.sums.take(interval))?;
        Ok(Some(end))
    }

    /// The oldest events of the interval are written before it is known how their lives end.
    pub fn write_through(&mut self) {
        if let Some(interval) = &mut self.open {
            interval.written_through = true;
        }
    }
}
