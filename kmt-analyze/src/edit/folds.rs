//! Sums of objects that died young, into another file: whole intervals of a recording, in the order of their numbers.
//!
//! An interval is written in front of the first event behind it, as a recorder writes it. In the new file the first interval has
//! number 0, and those that are missing or cannot be read stay missing.

use kmt_common::kmt_file::KmtFile;
use kmt_format::fold::{FoldedInterval, FoldedRow};
use kmt_format::read::{ChunkRef, Damage, Event, FoldInfo, FoldedLives};

use super::copy::failed;
use crate::export::output::Export;
use crate::failure::Result;
use crate::trace::session::Session;

/// Makes the values of the new file.
pub trait Change {
    /// Writes the record of an event that lives are like; `record` is cleared first.
    fn record(&mut self, event: &Event<'_>, record: &mut Vec<u8>);

    /// New time of the trace's clock.
    fn time(&self, time: u64) -> u64;
}

/// All values stay.
pub struct Same;

impl Change for Same {
    fn record(&mut self, event: &Event<'_>, record: &mut Vec<u8>) {
        event.to_record(record);
    }

    fn time(&self, time: u64) -> u64 {
        time
    }
}

/// The intervals of a window that are not written yet.
pub struct Folds<'s, 'd> {
    session: &'s Session<'d>,
    rest: &'s [(ChunkRef, FoldInfo)],
    /// Number of the first interval of the window in the old file.
    base: u64,
    /// Number after the last interval of the window in the old file.
    end: u64,
    /// Number of the next interval in the new file, unless some are missing.
    next: u64,
    /// End of the window, or of its last interval.
    t_end: u64,
    /// Events that are in the sums.
    pub events: u64,
    /// Intervals that cannot be read.
    pub damages: Vec<Damage>,
}

impl<'s, 'd> Folds<'s, 'd> {
    /// The intervals of a window, which begins and ends with one; `None`: all of them.
    pub fn of(session: &'s Session<'d>, window: Option<(u64, u64)>) -> Self {
        let all = session.trace.folds();
        let (first, last) = window.unwrap_or((0, u64::MAX));
        let begin = if window.is_none() { 0 } else { all.partition_point(|(_, info)| info.t_end <= first) };
        let behind = all.partition_point(|(_, info)| info.t_begin <= last).max(begin);
        let rest = all.get(begin..behind).unwrap_or_default();
        let before = begin.checked_sub(1).and_then(|index| all.get(index));
        let base = before.map_or(0, |(_, info)| info.number.saturating_add(1));
        let end = match all.get(behind) {
            Some((_, info)) => info.number,
            None => all.last().map_or(0, |(_, info)| info.number.saturating_add(1)),
        };
        let t_end = rest.last().map_or(first, |(_, info)| info.t_end);
        Self { session, rest, base, end, next: 0, t_end, events: 0, damages: Vec::new() }
    }

    /// Writes the intervals that end at that time or before.
    pub fn until(&mut self, time: u64, file: &mut KmtFile<Export>, change: &mut impl Change) -> Result<()> {
        while let Some(((chunk, info), rest)) = self.rest.split_first() {
            if info.t_end > time {
                break;
            }
            self.rest = rest;
            let interval = match self.session.trace.read_fold(chunk) {
                Ok(fold) => self.interval(info, fold.lives(), fold.cpus(), change),
                Err(error) => {
                    self.damages.push(Damage::new(chunk.offset, chunk.total_len, error));
                    continue;
                }
            };
            file.writer.add_fold(&interval).map_err(|e| failed(&e))?;
            file.write_if_large()?;
            self.next = interval.number.saturating_add(1);
            self.events = self.events.saturating_add(info.events);
        }
        Ok(())
    }

    /// Writes the rest. If the last intervals are missing, an empty one behind them shows it by its number.
    pub fn finish(&mut self, file: &mut KmtFile<Export>, change: &mut impl Change) -> Result<()> {
        self.until(u64::MAX, file, change)?;
        let number = self.end.saturating_sub(self.base);
        if number <= self.next {
            return Ok(());
        }
        let mut interval = FoldedInterval::default();
        let time = change.time(self.t_end);
        (interval.number, interval.t_begin, interval.t_end) = (number, time, time);
        file.writer.add_fold(&interval).map_err(|e| failed(&e))
    }

    fn interval<'c>(
        &self,
        info: &FoldInfo,
        lives: impl Iterator<Item = FoldedLives<'c>>,
        cpus: &[(u32, u64)],
        change: &mut impl Change,
    ) -> FoldedInterval
    where
        's: 'c,
    {
        let schema = self.session.trace.schema();
        let mut sample = |event: Option<Event<'_>>| {
            let mut record = Vec::new();
            event.iter().for_each(|event| change.record(event, &mut record));
            record
        };
        let rows = lives.map(|lives| FoldedRow {
            alloc: lives.indices().0.map(|_| sample(lives.alloc(schema))),
            free: sample(lives.free(schema)),
            sums: *lives.sums(),
            bins: lives.bins().collect(),
        });
        let rows = rows.collect();
        let mut interval = FoldedInterval::default();
        interval.number = info.number.saturating_sub(self.base);
        interval.t_begin = change.time(info.t_begin);
        interval.t_end = change.time(info.t_end);
        interval.threshold = info.threshold;
        interval.written_through = info.written_through;
        interval.rows = rows;
        interval.cpus = cpus.to_vec();
        interval
    }
}
