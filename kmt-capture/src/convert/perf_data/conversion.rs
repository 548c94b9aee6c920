//! Samples to events, chains to stacks, lost records to losses.

use std::collections::HashMap;
use std::path::Path;

use kmt_format::ErrorKind;
use kmt_format::kernel::ByteOrder;
use kmt_format::write::{Loss, Task, Writer, WriterStats};

use super::sampled::Sampling;
use crate::convert::stacks::{StackFormat, is_corrupt_to_perf, kernel_part};
use crate::failure::Failure;
use crate::import::Fault;
use crate::import::perf_data::{Item, Rounds};
use crate::output::Output;

/// Bytes that are handed to the output at once, about.
const WRITE_LEN: usize = 1 << 20;
/// Names of tasks that are written at once.
const TASKS_AT_ONCE: usize = 4096;

/// Why an item could not be taken in.
pub enum Trouble {
    /// The writer refuses it.
    Format(kmt_format::Error),
    /// The output does.
    Output(Failure),
}

impl From<kmt_format::Error> for Trouble {
    fn from(error: kmt_format::Error) -> Self {
        Self::Format(error)
    }
}

impl Trouble {
    /// As a failure of the conversion.
    pub fn on(self, path: &Path) -> Failure {
        match self {
            Self::Format(error) => Failure::new(format!("{}: {error}", path.display())),
            Self::Output(failure) => failure,
        }
    }
}

/// A conversion under way.
pub struct Conversion {
    /// What is written.
    pub writer: Writer,
    order: ByteOrder,
    stack: StackFormat,
    record: Vec<u8>,
    comms: HashMap<i32, Vec<u8>>,
    tasks: Vec<Task>,
    /// What was written of each CPU.
    pub stats: HashMap<u32, WriterStats>,
    /// What was lost.
    pub flagged: Loss,
    /// Events that were written.
    pub events: u64,
    corrupt_chains: u64,
    sampling: Sampling,
    /// Events that perf lost without a record of it.
    lost_samples: u64,
    /// Whether perf marked no rounds.
    is_forced: bool,
    lost: u64,
    throttled: u64,
    not_traced: u64,
    unknown: HashMap<u16, u64>,
    short: u64,
}

impl Conversion {
    /// The start of one.
    pub fn new(writer: Writer, stack: StackFormat, sampling: Sampling, order: ByteOrder) -> Self {
        Self {
            writer,
            order,
            stack,
            record: Vec::new(),
            comms: HashMap::new(),
            tasks: Vec::new(),
            stats: HashMap::new(),
            flagged: Loss::default(),
            events: 0,
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

    /// Takes in what stands next in the file.
    pub fn item(&mut self, item: Item<'_>, output: &mut Output) -> std::result::Result<(), Trouble> {
        match item {
            Item::Event { time, cpu, raw, chain, period } => {
                self.sampling.add(raw, period, self.order);
                self.event(time, cpu, raw, chain)?;
            }
            Item::Lost { cpu, count } => {
                self.lost = self.lost.saturating_add(count.unwrap_or(0));
                self.throttled += u64::from(count.is_none());
                let loss = count.map_or_else(Loss::uncounted, Loss::counted);
                self.lose(cpu.unwrap_or(0), loss)?;
            }
            Item::Comm { time, pid, tid, comm } => {
                self.comms.insert(tid, comm.to_vec());
                self.task(Task::new(tid, comm.to_vec()).tgid(pid).since(time))?;
            }
            Item::Fork { time, pid, tid, parent } => {
                let Some(comm) = self.comms.get(&parent).cloned() else { return Ok(()) };
                self.comms.insert(tid, comm.clone());
                self.task(Task::new(tid, comm).tgid(pid).since(time))?;
            }
            Item::NotTraced => self.not_traced += 1,
        }
        if self.writer.pending_len() >= WRITE_LEN {
            output.write(self.writer.pending()).map_err(Trouble::Output)?;
            self.writer.clear_pending();
        }
        Ok(())
    }

    fn event(&mut self, time: u64, cpu: u32, raw: &[u8], chain: &[u8]) -> kmt_format::Result<()> {
        match self.writer.event(cpu, time, raw) {
            Ok(()) => {}
            Err(error) => return self.unusable(cpu, raw, &error),
        }
        let stats = self.stats.entry(cpu).or_default();
        stats.events += 1;
        stats.bytes += raw.len() as u64;
        self.events += 1;
        self.corrupt_chains += u64::from(is_corrupt_to_perf(chain, self.order));
        let chain = kernel_part(chain, self.order);
        if !chain.is_empty() {
            self.stack.record(&mut self.record, raw, chain, self.order);
            self.writer.event(cpu, time, &self.record)?;
            if let Some(stats) = self.stats.get_mut(&cpu) {
                stats.events += 1;
            }
        }
        Ok(())
    }

    /// An event that has no format, or is shorter than it: lost, but counted.
    fn unusable(&mut self, cpu: u32, raw: &[u8], error: &kmt_format::Error) -> kmt_format::Result<()> {
        match error.kind() {
            ErrorKind::UnknownEventId { id } => *self.unknown.entry(*id).or_default() += 1,
            _ if raw.len() < 8 => self.short += 1,
            _ => return Err(error.clone()),
        }
        self.lose(cpu, Loss::counted(1))
    }

    fn lose(&mut self, cpu: u32, loss: Loss) -> kmt_format::Result<()> {
        self.flagged = self.flagged.and(loss);
        self.writer.lost(cpu, loss)
    }

    fn task(&mut self, task: Task) -> kmt_format::Result<()> {
        self.tasks.push(task);
        if self.tasks.len() >= TASKS_AT_ONCE {
            self.writer.tasks(&std::mem::take(&mut self.tasks))?;
        }
        Ok(())
    }

    /// What is known when all records of a file were read.
    pub fn end_of_file(&mut self, rounds: &Rounds<'_>, fault: Option<&Fault>) -> kmt_format::Result<()> {
        self.lost_samples = self.lost_samples.saturating_add(rounds.lost_samples);
        self.is_forced |= rounds.is_forced;
        if fault.is_some() {
            self.lose(0, Loss::damaged_input())?;
        }
        Ok(())
    }

    /// What is known when all files were read.
    pub fn finish(&mut self) -> kmt_format::Result<()> {
        // Counted at the end for each event, they are the same losses once more, unless no record could tell of them.
        let untold = self.lost_samples.saturating_sub(self.lost);
        if untold > 0 {
            self.lose(0, Loss::counted(untold))?;
        }
        if !self.tasks.is_empty() {
            self.writer.tasks(&std::mem::take(&mut self.tasks))?;
        }
        let mut stats: Vec<(u32, WriterStats)> = self.stats.iter().map(|(&cpu, &s)| (cpu, s)).collect();
        stats.sort_by_key(|(cpu, _)| *cpu);
        for (cpu, _) in &stats {
            self.writer.end_of(*cpu)?;
        }
        let sampled = self.sampling.pairs();
        let pairs: Vec<(&str, &[u8])> = sampled.iter().map(|(key, text)| (*key, text.as_bytes())).collect();
        if !pairs.is_empty() {
            self.writer.meta(&pairs)?;
        }
        if self.corrupt_chains > 0 {
            let count = self.corrupt_chains.to_string();
            self.writer.meta(&[("perf/corrupt_chains", count.as_bytes())])?;
        }
        self.writer.writer_stats(&stats)
    }

    /// Notes on what was met, a sentence each.
    pub fn notes(&self, notes: &mut Vec<String>) {
        notes.extend(self.sampling.notes());
        let mut note = |count: u64, what: &str| {
            if count > 0 {
                notes.push(format!("{count} {what}"));
            }
        };
        note(self.not_traced, "samples of other events than tracepoints are left out");
        note(
            self.throttled,
            "times events were switched off for coming too often: what happened meanwhile is missing",
        );
        note(
            self.unknown.values().sum(),
            "samples have ids without a format in the file: they are counted as lost",
        );
        note(self.short, "samples are too short to be records of the kernel: they are counted as lost");
        if self.is_forced {
            notes.push("perf marked no rounds, so events of one CPU may stand out of order; --limit waiting=SIZE lets more wait to be sorted".to_owned());
        }
    }
}
