//! Saved sub-buffers of all CPUs into the file.

use std::fmt::Display;

use kmt_common::kmt_file::{KmtFile, overwritten};
use kmt_common::tell;
use kmt_format::kernel::{ByteOrder, CpuStats, HeaderPage};
use kmt_format::write::{Keep, Loss};
use kmt_format::{Error, Result};

use super::boots::{Boots, Position, Side};
use super::event_names::EventNames;
use super::undecoded::Undecoded;
use crate::failure::Failure;
use crate::zero_times;

/// Damaged places that are reported one by one for each CPU.
const DAMAGES_REPORTED: u64 = 3;

/// Conversion of sub-buffers, CPU by CPU.
#[derive(Debug)]
pub struct SubBufferConversion {
    layout: HeaderPage,
    order: ByteOrder,
    keep: Keep,
    /// The CPU whose sub-buffers are converted.
    cpu: u32,
    names: EventNames,
    /// Counters of the CPU before its first sub-buffer, if it may be a ring that keeps the newest events.
    ring: Option<CpuStats>,
    boots: Boots,
    /// The part that is converted; `None`: all.
    side: Option<Side>,
    undecoded: Undecoded,
}

impl SubBufferConversion {
    /// Of sub-buffers with that layout, whose events `names` reads. `boots` is empty; `side`: the part that is converted.
    pub fn new(
        (layout, order): (HeaderPage, ByteOrder),
        verbatim: bool,
        names: EventNames,
        (boots, side): (Boots, Option<Side>),
    ) -> Self {
        let keep = if verbatim { Keep::Verbatim } else { Keep::Decoded };
        let undecoded = Undecoded::default();
        Self { layout, order, keep, cpu: 0, names, ring: None, boots, side, undecoded }
    }

    /// Size of a sub-buffer, in bytes.
    pub fn sub_buffer_len(&self) -> usize {
        self.layout.sub_buffer_len()
    }

    /// Begins the sub-buffers of the next CPU; `name` is that of its buffer, for messages.
    pub fn begin(&mut self, file: &mut KmtFile, cpu: u32, name: String) -> Result<()> {
        self.cpu = cpu;
        self.ring = None;
        file.stats(cpu);
        self.undecoded.begin(|id| file.writer.knows_id(id));
        self.boots.begin(cpu, name);
        let is_unclear = self.side.as_ref().is_some_and(|side| side.unclear.contains(&cpu));
        if is_unclear { file.lose(cpu, Loss::uncounted()) } else { Ok(()) }
    }

    /// The CPU has a ring buffer that overwrites: counters that were read before the buffer was. If events were read before
    /// that, or dropped, those that are missing are lost.
    pub fn expect_ring(&mut self, counters: Option<CpuStats>) {
        let counters = counters.filter(|stats| stats.read == Some(0) && stats.dropped == Some(0));
        // Counters of two boots are those of neither.
        self.ring = counters.filter(|_| self.side.is_none());
    }

    /// The buffer of the CPU kept the newest events, and it is not known how many it overwrote.
    pub fn mark_overwritten(&mut self, file: &mut KmtFile) -> Result<()> {
        // The events of several boots have other begins.
        if self.side.is_none() { file.mark_overwritten(self.cpu, 0) } else { Ok(()) }
    }

    /// Adds a sub-buffer of that CPU. Returns damage, before which its events are in the file.
    pub fn add(&mut self, file: &mut KmtFile, bytes: &[u8]) -> Result<Option<Error>> {
        if let Some(counters) = self.ring.take() {
            let events = overwritten(bytes, &self.layout, self.order, Some(counters));
            events.map_or(Ok(()), |events| file.mark_overwritten(self.cpu, events))?;
        }
        let number = self.boots.sub_buffer();
        let part = self.side.as_ref().map(|side| side.part(self.cpu));
        let is_outside = part.as_ref().is_some_and(|part| {
            let last = if part.end.1 == 0 { part.end.0.saturating_sub(1) } else { part.end.0 };
            !(part.start.0..=last).contains(&number)
        });
        if is_outside {
            return Ok(None);
        }
        let is_split = part.as_ref().is_some_and(|part| [part.start.0, part.end.0].contains(&number));
        let keep = if is_split { Keep::Decoded } else { self.keep };
        let Self { names, boots, undecoded, order, .. } = self;
        let mut at = 0;
        let see = |time, record: &[u8]| {
            let position = Position(number, at);
            at += 1;
            if part.as_ref().is_some_and(|part| !part.contains(&position)) {
                return false;
            }
            names.see(time, record);
            boots.event(time);
            undecoded.see(order.uint_at(record, 0, 2).unwrap_or(0));
            true
        };
        let found = file.sub_buffer(self.cpu, bytes, &self.layout, keep, see)?;
        self.names.write_if_many(file)?;
        Ok(found.damage)
    }

    /// Reports damage of a sub-buffer of that CPU, which is marked in the file.
    pub fn report(&self, file: &mut KmtFile, damage: impl Display) {
        if file.stats(self.cpu).sub_buffers_damaged <= DAMAGES_REPORTED {
            tell!("warning: {damage}");
        }
    }

    /// Reports damaged input of that CPU and marks it in the file.
    pub fn damaged(&self, file: &mut KmtFile, damage: impl Display) -> Result<()> {
        file.stats(self.cpu).sub_buffers_damaged += 1;
        file.lose(self.cpu, Loss::damaged_input())?;
        self.report(file, damage);
        Ok(())
    }

    /// Ends the sub-buffers of that CPU.
    pub fn end(&self, file: &mut KmtFile) -> crate::failure::Result<()> {
        file.writer.end_cpu(self.cpu)?;
        file.write()
    }

    /// Writes the names that are left; returns the number of events. Fails if the events are those of two boots, or none
    /// has a format.
    pub fn finish(&mut self, file: &mut KmtFile) -> crate::failure::Result<u64> {
        if let Some(refusal) = self.boots.refusal() {
            return Err(refusal);
        }
        let events = file.events();
        if let Some(ids) = self.undecoded.listed().filter(|_| self.undecoded.events() >= events) {
            let input = self.boots.first_name();
            return Err(Failure::new(format!("{input}: no event has a format: {ids}")).hint(
                "copy events/*/*/format of the same boot of the traced kernel: ids differ between kernels",
            ));
        }
        self.names.finish(file)?;
        zero_times::write(&mut file.writer, self.boots.at_zero())?;
        Ok(events)
    }

    /// Events that could not be decoded: their ids have no format.
    pub fn undecoded(&self) -> u64 {
        self.undecoded.events()
    }

    /// Notes on the events, a sentence each.
    pub fn notes(&self) -> Vec<String> {
        self.undecoded.note().into_iter().chain(self.boots.notes(self.side.is_none())).collect()
    }
}
