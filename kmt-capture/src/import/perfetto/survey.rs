//! Facts that a trace has in any of its packets, and that are needed before the first event.

use std::collections::{BTreeMap, BTreeSet};

use super::super::bounds::Bounds;
use super::super::cursor::Result;
use super::CPUS_MAX;
use super::bundle::{Bundle, Parts};
use super::events::GENERIC;
use super::fields::slab_address;
use super::packets::packets;
use super::sequence::{Packet, for_symbols, text};
use super::tree::{Process, Tree};
use super::wire::{Message, Value};

/// Counters of the kernel's ring buffer of a CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Events that were overwritten.
    pub overrun: u64,
    /// Events lost in nested storms.
    pub commit_overrun: u64,
    /// Events refused because the buffer was full.
    pub dropped: u64,
}

impl Counters {
    /// Events lost.
    pub fn lost(&self) -> u64 {
        self.overrun.saturating_add(self.commit_overrun).saturating_add(self.dropped)
    }

    fn since(&self, start: &Self) -> Self {
        Self {
            overrun: self.overrun.saturating_sub(start.overrun),
            commit_overrun: self.commit_overrun.saturating_sub(start.commit_overrun),
            dropped: self.dropped.saturating_sub(start.dropped),
        }
    }
}

/// Facts of a trace.
#[derive(Debug, Default)]
pub struct Survey {
    /// Release of the kernel.
    pub release: Option<String>,
    /// Version of the kernel.
    pub version: Option<String>,
    /// Machine.
    pub machine: Option<String>,
    /// Version of the recorder.
    pub recorder: Option<String>,
    /// Page size in bytes.
    pub page_size: Option<u64>,
    /// Clocks of events, as numbered in `Bundle::clock`.
    pub clocks: BTreeSet<u64>,
    /// Bundles with events, by CPU and sequence.
    pub bundles: BTreeMap<u32, BTreeMap<u32, u64>>,
    /// Names of symbols.
    pub symbols: BTreeSet<Vec<u8>>,
    /// Symbols that are left out: there are too many.
    pub symbols_left_out: u64,
    /// Events that the recorder could not enable.
    pub failed_events: BTreeSet<String>,
    /// Processes and threads by id.
    pub tasks: BTreeMap<i32, Process>,
    /// Tasks that are left out: there are too many.
    pub tasks_left_out: u64,
    /// Sequences of packets.
    sequences: BTreeSet<u32>,
    /// Counters at the start and at the end, by CPU and sequence.
    counters: BTreeMap<(u32, u32), (Option<Counters>, Option<Counters>)>,
    /// Slab events that were looked at, and those with an address that needs 64 bits.
    slab_events: u64,
    wide: u64,
}

/// Slab events that are looked at for the size of the kernel's words.
const SLAB_EVENTS: u64 = 20_000;
/// Fields of a packet.
const PROCESS_TREE: u32 = 2;
const FTRACE_STATS: u32 = 34;
const SYSTEM_INFO: u32 = 45;

impl Survey {
    /// Reads all packets once. Errors are found again where events are read.
    pub fn of(bytes: &[u8], inflated_max: u64, bounds: &Bounds) -> Self {
        let mut survey = Self::default();
        let read: std::result::Result<(), ()> = packets(bytes, inflated_max, bounds, &mut |packet| {
            if let Ok(message) = packet {
                let _ = survey.packet(message, bounds);
            }
            Ok(())
        });
        debug_assert!(read.is_ok());
        survey
    }

    /// Size of the kernel's words, in bytes: addresses show it, or the machine.
    pub fn long_size(&self) -> usize {
        let machine = self.machine.as_deref().unwrap_or_default();
        let is_i386 = machine.len() == 4 && machine.starts_with('i') && machine.ends_with("86");
        // A 64-bit kernel can call itself armv8l.
        let is_32 = is_i386 || machine.starts_with("armv") && machine != "armv8l" || machine == "mips";
        match (self.slab_events, self.wide) {
            (_, 1..) => 8,
            (0, _) => {
                if is_32 {
                    4
                } else {
                    8
                }
            }
            _ => {
                if is_32 || machine.is_empty() {
                    4
                } else {
                    8
                }
            }
        }
    }

    /// The kernel's counters of each CPU: those at the end, less those at the start.
    pub fn counters(&self) -> BTreeMap<u32, Counters> {
        let mut cpus: BTreeMap<u32, Counters> = BTreeMap::new();
        for (&(cpu, _), (start, end)) in &self.counters {
            let Some(end) = end else { continue };
            let counters = end.since(&start.unwrap_or_default());
            let cpu = cpus.entry(cpu).or_default();
            // Sources share the kernel's counters; the one that was first saw the most.
            if counters.lost() >= cpu.lost() {
                *cpu = counters;
            }
        }
        cpus
    }

    /// True if a sequence is one of those that are read.
    pub fn has_sequence(&self, sequence: u32) -> bool {
        self.sequences.contains(&sequence)
    }

    fn packet(&mut self, message: Message<'_>, bounds: &Bounds) -> Result<()> {
        let packet = Packet::of(message)?;
        if packet.is_of_other_machine {
            return Ok(());
        }
        for field in message.fields() {
            let field = field?;
            let Some(part) = field.message() else { continue };
            match field.number {
                Packet::BUNDLE if self.admits(packet.sequence, bounds) => {
                    self.bundle(packet.sequence, part)?
                }
                Packet::INTERNED => for_symbols(part, &mut |_, name| self.symbol(name, bounds))?,
                FTRACE_STATS => self.ftrace_stats(packet.sequence, part)?,
                SYSTEM_INFO => self.system_info(part)?,
                PROCESS_TREE => {
                    let tree = Tree { tasks: &mut self.tasks, left_out: &mut self.tasks_left_out };
                    tree.read(part, bounds.tasks)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn admits(&mut self, sequence: u32, bounds: &Bounds) -> bool {
        let has_room = (self.sequences.len() as u64) < bounds.sequences;
        self.sequences.contains(&sequence) || has_room && self.sequences.insert(sequence)
    }

    fn symbol(&mut self, name: &[u8], bounds: &Bounds) {
        if self.symbols.contains(name) {
            return;
        }
        if (self.symbols.len() as u64) < bounds.functions {
            self.symbols.insert(name.to_vec());
        } else {
            self.symbols_left_out += 1;
        }
    }

    fn bundle(&mut self, sequence: u32, message: Message<'_>) -> Result<()> {
        let bundle = Bundle::of(message);
        let cpu = bundle.cpu.and_then(|cpu| u32::try_from(cpu).ok()).filter(|&cpu| cpu < CPUS_MAX);
        let Some(cpu) = cpu else { return Ok(()) };
        let bundles = self.bundles.entry(cpu).or_default();
        if bundle.has_events() {
            *bundles.entry(sequence).or_default() += 1;
            self.clocks.insert(bundle.clock);
        }
        if self.slab_events >= SLAB_EVENTS {
            return Ok(());
        }
        for field in message.fields() {
            let field = field?;
            if let (Bundle::EVENT, Value::Message(event)) = (field.number, field.value) {
                self.words(event)?;
            }
        }
        Ok(())
    }

    /// Looks at the addresses of a slab event.
    fn words(&mut self, event: Message<'_>) -> Result<()> {
        // Only `node` is negative.
        let is_wide = |number: u64| number > u64::from(u32::MAX) && number as i64 != -1;
        match Parts::of(event)?.message {
            Some((298..=303, message)) => {
                self.slab_events += 1;
                for field in message.fields() {
                    self.wide += u64::from(field?.uint().is_some_and(is_wide));
                }
            }
            Some((GENERIC, message)) => {
                for field in message.fields() {
                    let Some(address) = field?.message().and_then(slab_address) else { continue };
                    self.slab_events += 1;
                    self.wide += u64::from(is_wide(address));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn system_info(&mut self, message: Message<'_>) -> Result<()> {
        for field in message.fields() {
            let field = field?;
            match (field.number, field.value) {
                (1, Value::Message(uname)) => {
                    for field in uname.fields() {
                        let field = field?;
                        let Some(value) = field.message().map(text).filter(|text| !text.is_empty()) else {
                            continue;
                        };
                        match field.number {
                            2 => self.version = Some(value),
                            3 => self.release = Some(value),
                            4 => self.machine = Some(value),
                            _ => {}
                        }
                    }
                }
                (4, Value::Message(version)) => self.recorder = Some(text(version)),
                (6, Value::Number(size)) if size.is_power_of_two() => self.page_size = Some(size),
                _ => {}
            }
        }
        Ok(())
    }

    fn ftrace_stats(&mut self, sequence: u32, message: Message<'_>) -> Result<()> {
        const START: u64 = 1;
        const END: u64 = 2;
        /// Far more than there are events to enable.
        const FAILED_MAX: usize = 1000;
        let phase = message.last(1)?;
        for field in message.fields() {
            let field = field?;
            match (field.number, field.value) {
                (2, Value::Message(row)) => {
                    let (mut cpu, mut counters) = (0, Counters::default());
                    for field in row.fields() {
                        let field = field?;
                        let Value::Number(number) = field.value else { continue };
                        match field.number {
                            1 => cpu = number,
                            3 => counters.overrun = number,
                            4 => counters.commit_overrun = number,
                            8 => counters.dropped = number,
                            _ => {}
                        }
                    }
                    let Some(cpu) = u32::try_from(cpu).ok().filter(|&cpu| cpu < CPUS_MAX) else { continue };
                    let entry = self.counters.entry((cpu, sequence)).or_default();
                    match phase {
                        Some(START) => entry.0 = entry.0.or(Some(counters)),
                        Some(END) => entry.1 = Some(counters),
                        _ => {}
                    }
                }
                (6 | 7, Value::Message(name)) if self.failed_events.len() < FAILED_MAX => {
                    self.failed_events.insert(text(name));
                }
                _ => {}
            }
        }
        Ok(())
    }
}
