//! A .kmt file that is being written: the writer of its chunks, the output that gets them, and totals of its events.

use std::collections::BTreeMap;

use kmt_format::kernel::{ByteOrder, CpuStats, HeaderPage, Missed, SubBuffer};
use kmt_format::write::{Keep, Loss, SubBufferPart, SubBufferSummary, Writer, WriterStats};

use crate::failure::Result;
use crate::output::Output;
use crate::survivors::{Feed, SurvivorOptions};

/// Size from which finished chunks are handed to the output, in bytes.
pub const WRITE_LEN: usize = 1 << 20;

/// Destination of the chunks.
pub trait ChunkOutput {
    /// Appends whole chunks.
    fn write(&mut self, bytes: &[u8]) -> Result<()>;

    /// Completes the file.
    fn finish(self) -> Result<()>;
}

impl ChunkOutput for Output {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.write(bytes)
    }

    fn finish(self) -> Result<()> {
        self.finish()
    }
}

/// A file that is being written.
#[derive(Debug)]
pub struct KmtFile<O = Output> {
    /// Makes chunks.
    pub writer: Writer,
    /// Gets the chunks.
    pub output: O,
    /// Counts of the events that were added, by CPU.
    pub cpus: BTreeMap<u32, WriterStats>,
    /// Sum of the losses that were added, and of those that sub-buffers are marked with.
    pub lost: Loss,
    /// Events in the chunks that the output has.
    pub events_written: u64,
    /// Events that were overwritten by design, before the first one of a CPU.
    pub overwritten: u64,
    /// True if the loss before the next sub-buffer is by design.
    is_by_design: bool,
    /// Folds lives of objects that die young; `None`: all events are written.
    feed: Option<Feed>,
    /// Events that were folded until that ended, by CPU.
    folded: BTreeMap<u32, u64>,
    /// Events that were left out until then, by CPU.
    left_out: BTreeMap<u32, u64>,
}

impl<O: ChunkOutput> KmtFile<O> {
    /// A file without events.
    pub fn new(writer: Writer, output: O) -> Self {
        Self {
            writer,
            output,
            cpus: BTreeMap::new(),
            lost: Loss::default(),
            events_written: 0,
            overwritten: 0,
            is_by_design: false,
            feed: None,
            folded: BTreeMap::new(),
            left_out: BTreeMap::new(),
        }
    }

    /// Folds lives from now on. The writer's options say that it may.
    pub fn fold(&mut self, options: SurvivorOptions) {
        self.feed = Some(Feed::new(options));
        let cpus: Vec<u32> = self.cpus.keys().copied().collect();
        self.feed.iter_mut().for_each(|feed| cpus.iter().for_each(|&cpu| feed.cpu(cpu)));
    }

    /// True if lives are folded.
    pub fn is_folding(&self) -> bool {
        self.feed.is_some()
    }

    /// Events that are in sums instead of the file.
    pub fn folded(&self) -> u64 {
        let open = self.feed.iter().flat_map(Feed::folded).map(|(_, events)| events);
        self.folded.values().copied().chain(open).sum()
    }

    /// Events that are neither in the file nor in sums: frees without a recorded allocation, where a filter left out allocations.
    pub fn left_out(&self) -> u64 {
        let open = self.feed.iter().flat_map(Feed::left_out).map(|(_, events)| events);
        self.left_out.values().copied().chain(open).sum()
    }

    /// The ring buffer of a CPU was found empty at a time: where lives are folded, other CPUs' events wait for it.
    pub fn known_until(&mut self, cpu: u32, time: u64) {
        self.feed.iter_mut().for_each(|feed| feed.until(cpu, time));
    }

    /// Folds what can be folded, where lives are.
    pub fn fold_known(&mut self) -> kmt_format::Result<()> {
        match &mut self.feed {
            Some(feed) => feed.run(&mut self.writer),
            None => Ok(()),
        }
    }

    /// Ends folding: all events of the file are known.
    pub fn end_folding(&mut self) -> kmt_format::Result<()> {
        let Some(mut feed) = self.feed.take() else { return Ok(()) };
        feed.finish(&mut self.writer)?;
        for (cpu, events) in feed.folded() {
            *self.folded.entry(cpu).or_default() += events;
        }
        for (cpu, events) in feed.left_out() {
            *self.left_out.entry(cpu).or_default() += events;
        }
        Ok(())
    }

    /// Counts of a CPU, which gets a row in the file.
    pub fn stats(&mut self, cpu: u32) -> &mut WriterStats {
        self.cpus.entry(cpu).or_default()
    }

    /// Number of events that were added.
    pub fn events(&self) -> u64 {
        self.cpus.values().map(|stats| stats.events).sum()
    }

    /// Adds an event, and counts it.
    pub fn event(&mut self, cpu: u32, time: u64, record: &[u8]) -> kmt_format::Result<()> {
        match &mut self.feed {
            Some(feed) => {
                self.writer.accepts(record)?;
                feed.event(cpu, time, record);
            }
            None => self.writer.add_event(cpu, time, record)?,
        }
        let stats = self.stats(cpu);
        stats.events += 1;
        stats.bytes += record.len() as u64;
        Ok(())
    }

    /// Adds a sub-buffer, and counts its events and its loss: [`Writer::add_sub_buffer`].
    pub fn sub_buffer(
        &mut self,
        cpu: u32,
        bytes: &[u8],
        layout: &HeaderPage,
        keep: Keep,
        see: impl FnMut(u64, &[u8]) -> bool,
    ) -> kmt_format::Result<SubBufferSummary> {
        let found = match &mut self.feed {
            Some(feed) => {
                let mut see = see;
                self.writer.decode_sub_buffer(bytes, layout, |part| match part {
                    SubBufferPart::Loss(loss) => {
                        feed.loss(cpu, loss);
                        true
                    }
                    SubBufferPart::Event(time, record) => {
                        let is_kept = see(time, record);
                        if is_kept {
                            feed.event(cpu, time, record);
                        }
                        is_kept
                    }
                    _ => true,
                })
            }
            None => self.writer.add_sub_buffer(cpu, bytes, layout, keep, see)?,
        };
        self.stats(cpu).add(bytes.len(), &found);
        let is_by_design = std::mem::take(&mut self.is_by_design);
        let lost = match (is_by_design, found.loss.damaged_input) {
            (false, _) => found.loss,
            (true, true) => Loss::damaged_input(),
            (true, false) => Loss::default(),
        };
        self.lost = self.lost.and(lost);
        Ok(found)
    }

    /// Marks that events before the next sub-buffer, the first of a CPU, were overwritten by design: [`overwritten`].
    pub fn mark_overwritten(&mut self, cpu: u32, events: u64) -> kmt_format::Result<()> {
        self.mark_begin(cpu)?;
        self.overwritten = self.overwritten.saturating_add(events);
        self.is_by_design = true;
        Ok(())
    }

    /// Marks that events before the next one, the first of a CPU, may have been overwritten by design.
    pub fn mark_begin(&mut self, cpu: u32) -> kmt_format::Result<()> {
        let mut mark = Loss::default();
        mark.overwritten = true;
        self.add_loss(cpu, mark)
    }

    /// Adds a loss before the next event of a CPU.
    pub fn add_loss(&mut self, cpu: u32, loss: Loss) -> kmt_format::Result<()> {
        match &mut self.feed {
            Some(feed) => {
                feed.loss(cpu, loss);
                Ok(())
            }
            None => self.writer.add_loss(cpu, loss),
        }
    }

    /// Adds a loss before the next event of a CPU, and counts it.
    pub fn lose(&mut self, cpu: u32, loss: Loss) -> kmt_format::Result<()> {
        self.lost = self.lost.and(loss);
        self.add_loss(cpu, loss)
    }

    /// Adds the loss of an event of a CPU that is in the input and cannot be read: unlike what the kernel lost before the
    /// first event, it is of the recorded time.
    pub fn lose_unreadable(&mut self, cpu: u32) -> kmt_format::Result<()> {
        self.lost = self.lost.and(Loss::counted(1));
        self.add_loss(cpu, Loss::counted(1).and(Loss::damaged_input()))
    }

    /// Writes all finished chunks.
    pub fn write(&mut self) -> Result<()> {
        if self.writer.pending_len() > 0 {
            self.output.write(self.writer.pending())?;
            self.writer.clear_pending();
            self.events_written = self.writer.events_closed();
        }
        Ok(())
    }

    /// Writes finished chunks if there are many of them.
    pub fn write_if_large(&mut self) -> Result<()> {
        if self.writer.pending_len() >= WRITE_LEN { self.write() } else { Ok(()) }
    }

    /// Ends the chunks of the CPUs that have events.
    pub fn end_cpus(&mut self) -> kmt_format::Result<()> {
        self.cpus.keys().try_for_each(|&cpu| self.writer.end_cpu(cpu))
    }

    /// Adds the counts of all CPUs to the file.
    pub fn add_totals(&mut self) -> kmt_format::Result<()> {
        self.end_folding()?;
        // Counts of the file are those of the events in it.
        let of_file = |(&cpu, &stats): (&u32, &WriterStats)| {
            let of_cpu = |events: &BTreeMap<u32, u64>| events.get(&cpu).copied().unwrap_or(0);
            (cpu, stats.without(of_cpu(&self.folded).saturating_add(of_cpu(&self.left_out))))
        };
        let rows: Vec<(u32, WriterStats)> = self.cpus.iter().map(of_file).collect();
        self.writer.add_writer_stats(&rows)
    }

    /// Completes the file and begins the next one of the same recording: [`Writer::next_file`]. `next` puts its output in
    /// the place of this one. Counts of events begin again, those of losses do not.
    pub fn next_file(&mut self, next: impl FnOnce(&mut O) -> Result<()>) -> Result<()> {
        let rest = self.writer.next_file()?;
        self.output.write(&rest)?;
        next(&mut self.output)?;
        self.cpus.values_mut().for_each(|stats| *stats = WriterStats::default());
        self.events_written = 0;
        Ok(())
    }

    /// Writes what is left, and completes the file.
    pub fn finish(mut self) -> Result<()> {
        self.output.write(&self.writer.finish()?)?;
        self.output.finish()
    }
}

/// Events that were overwritten before the first sub-buffer of a CPU, whose counters are `counters`; `None`: none, or events
/// were lost otherwise.
///
/// In a ring buffer that overwrites, and of which nothing was read before it was stopped, the kernel marks the first sub-buffer
/// alone, and counts there what `overrun` counts (or has no room for the count).
pub fn overwritten(
    bytes: &[u8],
    layout: &HeaderPage,
    order: ByteOrder,
    counters: Option<CpuStats>,
) -> Option<u64> {
    let overrun = counters?.overrun.filter(|&overrun| overrun > 0)?;
    match SubBuffer::parse(bytes, layout, order).ok()?.missed() {
        Missed::Count(count) if count == overrun => Some(overrun),
        Missed::Unknown => Some(overrun),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";

    /// A sub-buffer without events, with these bits in its commit word and a count behind it.
    fn sub_buffer(flags: u64, count: u64) -> Vec<u8> {
        let mut bytes = vec![0; 4096];
        bytes[8..16].copy_from_slice(&flags.to_ne_bytes());
        bytes[16..24].copy_from_slice(&count.to_ne_bytes());
        bytes
    }

    #[test]
    fn only_a_mark_that_equals_overrun_is_by_design() {
        let layout = HeaderPage::parse(HEADER_PAGE).unwrap();
        let stats =
            |overrun: u64| CpuStats::parse(&format!("entries: 3\noverrun: {overrun}\ndropped events: 0\n"));
        let (missed, stored) = (1 << 31, 1 << 30);
        let of = |flags, count, counters| {
            overwritten(&sub_buffer(flags, count), &layout, ByteOrder::NATIVE, counters)
        };
        assert_eq!(of(missed | stored, 700, stats(700)), Some(700));
        assert_eq!(of(missed, 0, stats(700)), Some(700), "without room for the count");
        assert_eq!(of(missed | stored, 699, stats(700)), None, "another number is a loss");
        assert_eq!(of(0, 0, stats(700)), None, "no mark");
        assert_eq!(of(missed | stored, 700, stats(0)), None);
        assert_eq!(of(missed | stored, 700, None), None, "no counters");
    }

    /// Files on a disk with little room. Bytes beyond it are not written, as with `Output`.
    struct Disk {
        files: Vec<Vec<u8>>,
        left: usize,
    }

    impl ChunkOutput for Disk {
        fn write(&mut self, bytes: &[u8]) -> Result<()> {
            match self.left.checked_sub(bytes.len()) {
                Some(left) => self.left = left,
                None => return Err(crate::failure::Failure::new("no room")),
            }
            self.files.last_mut().unwrap().extend(bytes);
            Ok(())
        }

        fn finish(self) -> Result<()> {
            Ok(())
        }
    }

    /// Records events into three files until the disk is full; returns the files.
    fn recorded(left: usize, is_next_refused: bool) -> Vec<Vec<u8>> {
        let example = kmt_format::example().unwrap();
        let trace = kmt_format::read::Trace::open(&example).unwrap();
        let mut record = Vec::new();
        trace.events().unwrap().next().unwrap().to_record(&mut record);
        let options = kmt_format::write::WriterOptions::new(ByteOrder::Little, 8).trace_uuid([7; 16]);
        let mut writer = Writer::new(options).unwrap();
        writer.add_format("kmem", &trace.schema().class(0).unwrap().format_text).unwrap();
        let mut file = KmtFile::new(writer, Disk { files: vec![Vec::new()], left });
        let mut run = || -> Result<()> {
            for time in 1..=90 {
                file.event((time % 2) as u32, time, &record)?;
                if time % 10 == 0 {
                    file.end_cpus()?;
                    file.write()?;
                }
                if time % 30 == 0 {
                    file.next_file(|disk| {
                        if is_next_refused {
                            return Err(crate::failure::Failure::new("no next file"));
                        }
                        disk.files.push(Vec::new());
                        Ok(())
                    })?;
                }
            }
            Ok(())
        };
        let _ = run();
        file.output.files
    }

    /// Times of the events in all files.
    fn times(files: &[Vec<u8>]) -> Vec<u64> {
        let mut times = Vec::new();
        for bytes in files.iter().filter(|bytes| !bytes.is_empty()) {
            let trace = kmt_format::read::Trace::open(bytes).unwrap();
            assert!(trace.damages().is_empty(), "{:?}", trace.damages());
            let mut merge = trace.merge();
            while let Some(run) = merge.next_run() {
                times.extend(run.events().map(|event| event.time()));
            }
        }
        times
    }

    #[test]
    fn no_event_is_in_two_files_or_between_them_wherever_the_disk_is_full() {
        let whole = recorded(usize::MAX, false);
        let bytes: usize = whole.iter().map(Vec::len).sum();
        assert_eq!((whole.len(), times(&whole)), (4, (1..=90).collect::<Vec<u64>>()));
        let mut counts = std::collections::BTreeSet::new();
        for left in (0..bytes).step_by(61) {
            let found = times(&recorded(left, false));
            assert_eq!(found, (1..=found.len() as u64).collect::<Vec<u64>>(), "{left} bytes");
            counts.insert(found.len());
        }
        assert_eq!(counts, (0..=9).map(|tens| tens * 10).collect());
        // The next file cannot be taken: the first one is whole.
        let refused = recorded(usize::MAX, true);
        assert_eq!(times(&refused), (1..=30).collect::<Vec<u64>>());
        assert!(kmt_format::read::Trace::open(&refused[0]).unwrap().is_finished());
    }
}
