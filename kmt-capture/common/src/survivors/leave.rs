//! How events leave for the file: those of a CPU in their order, once it is decided that they are written.

use kmt_format::Result;
use kmt_format::write::Writer;

use super::Survivors;
use super::map::LEARNED_KEY;
use super::nodes::Node;
use super::plan::Kind;
use super::written::Open;

impl Survivors {
    /// Writes what has waited long enough, of all CPUs: no event before `time` comes any more.
    pub fn advance(&mut self, writer: &mut Writer, time: u64) -> Result<()> {
        self.now = self.now.max(time);
        (0..self.cpus.len() as u32).try_for_each(|cpu| self.emit(writer, cpu))
    }

    /// Writes everything that waits, and the last interval.
    pub fn finish(&mut self, writer: &mut Writer) -> Result<()> {
        for cpu in 0..self.cpus.len() as u32 {
            while let Some(first) = self.nodes.first(cpu) {
                self.write(writer, first)?;
            }
        }
        self.end_interval(writer)?;
        match self.map.learned() {
            Some(learned) => writer.add_metadata(&[(LEARNED_KEY, learned.as_bytes())]),
            None => Ok(()),
        }
    }

    /// Writes the events of a CPU that have waited long enough.
    pub(super) fn emit(&mut self, writer: &mut Writer, cpu: u32) -> Result<()> {
        while let Some(first) = self.nodes.first(cpu) {
            let Some(node) = self.nodes.get(first) else { break };
            let waits = !node.keep && matches!(node.kind, Kind::Alloc | Kind::PageAlloc);
            if waits && self.now.saturating_sub(node.time) <= self.options.threshold {
                break;
            }
            self.write(writer, first)?;
        }
        Ok(())
    }

    /// Writes the oldest events until what waits fits into the memory again.
    pub(super) fn write_through(&mut self, writer: &mut Writer) -> Result<()> {
        self.intervals.write_through();
        while self.nodes.memory() > self.options.memory / 2 {
            let firsts = (0..self.cpus.len() as u32).filter_map(|cpu| self.nodes.first(cpu));
            let oldest = firsts.min_by_key(|&first| self.nodes.get(first).map(|node| node.seq));
            let Some(oldest) = oldest else { break };
            self.write(writer, oldest)?;
        }
        Ok(())
    }

    /// Writes an event, with which no life is folded any more.
    fn write(&mut self, writer: &mut Writer, index: u32) -> Result<()> {
        let Some(node) = self.nodes.get(index).copied() else { return Ok(()) };
        let number = self.cpus.get(node.cpu as usize).map_or(0, |cpu| cpu.number);
        if let Some(loss) = self.nodes.take_loss(index) {
            writer.add_loss(number, loss)?;
        } else {
            self.expire(&node, index);
            writer.add_event(number, node.time, self.nodes.record(index))?;
        }
        self.nodes.remove(index);
        Ok(())
    }

    /// An allocation that is written waits for no free any more: its life is a survivor's.
    fn expire(&mut self, node: &Node, index: u32) {
        let table = match node.kind {
            Kind::Alloc => &mut self.objects,
            Kind::PageAlloc => &mut self.pages,
            _ => return,
        };
        if table.get(node.value) == Some(index) {
            table.remove(node.value);
            if node.kind == Kind::Alloc {
                self.written.set(node.value, Some(Open::Live));
            }
        }
    }
}
