//! Samples to events, chains to stacks, lost records to losses.

use std::collections::HashMap;

use kmt_common::kmt_file::KmtFile;
use kmt_format::kernel::ByteOrder;
use kmt_format::write::{Loss, Task};
use kmt_format::{Error, ErrorKind, Result};

use super::sampled::Sampling;
use crate::convert::event_names::EventNames;
use crate::convert::records::RecordConversion;
use crate::convert::stacks::{StackFormat, is_corrupt_to_perf, kernel_frames};
use crate::import::ImportError;
use crate::import::perf_data::{Item, Rounds};

/// Conversion of the items of a perf.data.
pub struct SampleConversion {
    records: RecordConversion,
    names: EventNames,
    order: ByteOrder,
    comms: HashMap<i32, Vec<u8>>,
    corrupt_chains: u64,
    sampling: Sampling,
    /// Events that perf lost without a record of it.
    lost_samples: u64,
    /// True if perf marked no rounds.
    is_forced: bool,
    lost: u64,
    throttled: u64,
    not_traced: u64,
    unknown: HashMap<u16, u64>,
    short: u64,
}

impl SampleConversion {
    /// Of files in that byte order.
    pub fn new(stack: StackFormat, sampling: Sampling, names: EventNames, order: ByteOrder) -> Self {
        Self {
            records: RecordConversion::new(stack, order),
            names,
            order,
            comms: HashMap::new(),
            corrupt_chains: 0,
            sampling,
            lost_samples: 0,
            is_forced: false,
            lost: 0,
            throttled: 0,
            not_traced: 0,
            unknown: HashMap::new(),
            short: 0,
        }
    }

    /// Writes the next item of a file.
    pub fn item(&mut self, item: Item<'_>, file: &mut KmtFile) -> Result<()> {
        match item {
            Item::Event { time, cpu, raw, chain, period } => {
                self.sampling.add(raw, period, self.order);
                self.event(file, time, cpu, raw, chain)?;
            }
            Item::Lost { cpu, count } => {
                self.lost = self.lost.saturating_add(count.unwrap_or(0));
                self.throttled += u64::from(count.is_none());
                let loss = count.map_or_else(Loss::uncounted, Loss::counted);
                file.lose(cpu.unwrap_or(0), loss)?;
            }
            Item::Comm { time, pid, tid, comm } => {
                self.comms.insert(tid, comm.to_vec());
                self.records.task(file, Task::new(tid, comm.to_vec()).tgid(pid).since(time))?;
            }
            Item::Fork { time, pid, tid, parent } => {
                let Some(comm) = self.comms.get(&parent).cloned() else { return Ok(()) };
                self.comms.insert(tid, comm.clone());
                self.records.task(file, Task::new(tid, comm).tgid(pid).since(time))?;
            }
            Item::NotTraced => self.not_traced += 1,
        }
        Ok(())
    }

    fn event(&mut self, file: &mut KmtFile, time: u64, cpu: u32, raw: &[u8], chain: &[u8]) -> Result<()> {
        if let Err(error) = self.records.event(file, cpu, time, raw) {
            return self.unusable(file, cpu, raw, &error);
        }
        self.names.see(time, raw);
        self.names.write_if_many(file)?;
        self.corrupt_chains += u64::from(is_corrupt_to_perf(chain, self.order));
        let chain = kernel_frames(chain, self.order);
        if chain.is_empty() { Ok(()) } else { self.records.stack(file, cpu, time, raw, chain) }
    }

    /// An event that has no format, or is shorter than it: lost, but counted.
    fn unusable(&mut self, file: &mut KmtFile, cpu: u32, raw: &[u8], error: &Error) -> Result<()> {
        match error.kind() {
            ErrorKind::UnknownEventId { id } => *self.unknown.entry(*id).or_default() += 1,
            _ if raw.len() < 8 => self.short += 1,
            _ => return Err(error.clone()),
        }
        file.lose_unreadable(cpu)
    }

    /// Adds the facts that are complete when all records of a file were read.
    pub fn end_of_file(
        &mut self,
        rounds: &Rounds<'_>,
        fault: Option<&ImportError>,
        file: &mut KmtFile,
    ) -> Result<()> {
        self.lost_samples = self.lost_samples.saturating_add(rounds.lost_samples);
        self.is_forced |= rounds.is_forced;
        if fault.is_some() {
            file.lose(0, Loss::damaged_input())?;
        }
        Ok(())
    }

    /// Writes the facts that are complete when all files were read; returns the number of events.
    pub fn finish(&mut self, file: &mut KmtFile) -> Result<u64> {
        // Counted at the end for each event, they are the same losses once more, unless no record could report them.
        let unreported = self.lost_samples.saturating_sub(self.lost);
        if unreported > 0 {
            file.lose(0, Loss::counted(unreported))?;
        }
        self.records.flush_tasks(file)?;
        self.names.finish(file)?;
        file.end_cpus()?;
        let sampled = self.sampling.pairs();
        let pairs: Vec<(&str, &[u8])> = sampled.iter().map(|(key, text)| (*key, text.as_bytes())).collect();
        if !pairs.is_empty() {
            file.writer.add_metadata(&pairs)?;
        }
        if self.corrupt_chains > 0 {
            let count = self.corrupt_chains.to_string();
            file.writer.add_metadata(&[("perf/corrupt_chains", count.as_bytes())])?;
        }
        Ok(self.records.events)
    }

    /// Notes on the input, a sentence each.
    pub fn notes(&self, notes: &mut Vec<String>) {
        notes.extend(self.sampling.notes());
        let mut count_note = |count: u64, what: &str| {
            if count > 0 {
                notes.push(format!("{count} {what}"));
            }
        };
        count_note(self.not_traced, "samples of events other than tracepoints are left out");
        count_note(self.throttled, "times perf throttled an event: its events in between are missing");
        count_note(
            self.unknown.values().sum(),
            "samples have an event id without a format in the file: they are counted as lost",
        );
        count_note(self.short, "samples are too short for an event: they are counted as lost");
        if self.is_forced {
            notes.push("the file has no FINISHED_ROUND records: events of a CPU may be out of order; a larger --limit waiting=SIZE sorts more of them".to_owned());
        }
    }
}
