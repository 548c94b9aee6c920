//! One file of the files of one recording, which a recorder wrote one after the other.
//!
//! Event chunks are copied with the numbers that they have in the whole recording. What holds for a file as a whole (keys,
//! attached files, counters) is made of that of all files ([`facts`](super::joined_facts)); all else is copied.

use std::collections::{BTreeMap, HashSet};

use super::joined_facts::{PART_KEY, write_facts};
use super::rewrite::{frame_of, summary};
use super::scan::Scan;
use crate::Limits;
use crate::error::{Error, ErrorKind, Result};
use crate::pack::Summary;
use crate::raw::{ChunkKind, chunk_flags};
use crate::read::{ChunkRef, EventsInfo};
use crate::write::framing::{ChunkId, Frame};
use crate::write::{Writer, WriterOptions};

/// Offset of `first_event` in the heads of EVNT and RAWP chunks.
const FIRST_EVENT_AT: usize = 32;

/// Offset of `number` in the heads of FOLD chunks.
const FOLD_NUMBER_AT: usize = 8;

/// Makes one file of the files of one recording: those that [`Writer::next_file`] separates.
///
/// ```
/// use kmt_format::Limits;
/// use kmt_format::edit::Join;
/// use kmt_format::kernel::ByteOrder;
/// use kmt_format::read::Trace;
/// use kmt_format::write::{Writer, WriterOptions};
///
/// let mut writer = Writer::new(WriterOptions::new(ByteOrder::Little, 8))?;
/// let parts = [writer.next_file()?, writer.finish()?];
/// let mut join = Join::new(Limits::default());
/// for part in &parts {
///     join.add(part)?;
/// }
/// let mut whole = Vec::new();
/// while let Some(bytes) = join.next_bytes()? {
///     whole.extend(bytes);
/// }
/// assert!(Trace::open(&whole)?.is_finished());
/// # Ok::<(), kmt_format::Error>(())
/// ```
pub struct Join<'d> {
    limits: Limits,
    pub(super) parts: Vec<Part<'d>>,
    /// Made with the first bytes.
    writer: Option<Writer>,
    /// Number of the part whose chunks are being copied, and of the next chunk in it.
    next: (usize, usize),
    /// Numbers that the first chunk and the first event of this part have, by CPU.
    bases: BTreeMap<u32, (u32, u64)>,
    /// Number that the first interval of folded lives of this part has.
    fold_base: u64,
    /// Checksum and length of definitions that are in the file.
    written: HashSet<(ChunkKind, u32, u64)>,
}

/// A file of the recording.
pub(super) struct Part<'d> {
    data: &'d [u8],
    pub scan: Scan<'d>,
}

impl core::fmt::Debug for Join<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Join").field("parts", &self.parts.len()).finish_non_exhaustive()
    }
}

impl<'d> Join<'d> {
    /// Key of the number of a file in its recording, from 1; in a file that was joined `FIRST-LAST`.
    pub const PART_KEY: &'static str = PART_KEY;

    /// Nothing yet.
    pub fn new(limits: Limits) -> Self {
        let (bases, written) = Default::default();
        Self { limits, parts: Vec::new(), writer: None, next: (0, 0), bases, fold_base: 0, written }
    }

    /// Adds the next file of the recording.
    ///
    /// # Errors
    ///
    /// Returns an error if the file is damaged, must be refused, or is not of the same recording.
    pub fn add(&mut self, data: &'d [u8]) -> Result<()> {
        let scan = Scan::new(data, self.limits)?;
        if scan.contents.damage_count > 0 || scan.torn.is_some() {
            let what = "a damaged file cannot be joined to others; recover it first";
            return Err(Error::new(ErrorKind::Usage(what)));
        }
        let identity = |scan: &Scan<'_>| {
            let header = &scan.contents.header;
            (header.order, header.long_size, header.trace_uuid)
        };
        if self.parts.first().is_some_and(|first| identity(&first.scan) != identity(&scan)) {
            return Err(Error::new(ErrorKind::Usage("a file of another recording cannot be joined")));
        }
        self.parts.push(Part { data, scan });
        Ok(())
    }

    /// More bytes of the file; `None` after its end, and where there are no files.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written.
    pub fn next_bytes(&mut self) -> Result<Option<Vec<u8>>> {
        let Some(first) = self.parts.first() else { return Ok(None) };
        let mut writer = match self.writer.take() {
            Some(writer) => writer,
            None => {
                let header = first.scan.contents.header;
                let options = WriterOptions::new(header.order, header.long_size)
                    .align_u64(header.align_u64)
                    .page_size(header.page_size)
                    .trace_uuid(header.trace_uuid)
                    .folded(self.parts.iter().any(|part| part.scan.contents.header.folded));
                let mut writer = Writer::new(options)?;
                write_facts(self.parts.iter().map(|part| &part.scan.contents), &mut writer)?;
                let bytes = writer.take();
                self.writer = Some(writer);
                return Ok(Some(bytes));
            }
        };
        if !self.copy_next(&mut writer) {
            self.parts.clear();
            return writer.finish().map(Some);
        }
        let bytes = writer.take();
        self.writer = Some(writer);
        Ok(Some(bytes))
    }

    /// Copies the next chunk; false if there is none.
    fn copy_next(&mut self, writer: &mut Writer) -> bool {
        let (at, index) = self.next;
        let Some(part) = self.parts.get(at) else { return false };
        let Some(chunk) = part.scan.chunks.get(index).copied() else {
            for (&cpu, stream) in &part.scan.contents.streams {
                let last = stream.chunks.last().map_or(0, |(chunk, _)| chunk.sequence.wrapping_add(1));
                let (sequence, event) = self.bases.entry(cpu).or_default();
                *sequence = sequence.wrapping_add(last);
                *event = event.saturating_add(stream.last_event());
            }
            let folds = part.scan.contents.folds.last().map_or(0, |(_, info)| info.number.saturating_add(1));
            self.fold_base = self.fold_base.saturating_add(folds);
            self.next = (at.saturating_add(1), 0);
            return true;
        };
        self.next = (at, index.saturating_add(1));
        match (chunk.kind, chunk.cpu) {
            (ChunkKind::EVENTS | ChunkKind::SUB_BUFFERS, Some(cpu)) => {
                let base = self.bases.get(&cpu).copied().unwrap_or_default();
                part.copy_events(&chunk, cpu, base, writer);
            }
            (ChunkKind::FOLD, _) => part.copy_fold(&chunk, self.fold_base, writer),
            // Those of the whole file are written apart from these.
            (ChunkKind::HEADER_COPY | ChunkKind::INDEX | ChunkKind::TRAILER, _)
            | (ChunkKind::META | ChunkKind::FILE | ChunkKind::STATS, _) => {}
            // Each file repeats them.
            (ChunkKind::SCHEMA | ChunkKind::CLOCK, _)
                if !self.written.insert((chunk.kind, chunk.body_crc, chunk.body_len)) => {}
            (kind, _) if !kind.is_known() && chunk.flags & chunk_flags::SAFE_TO_COPY == 0 => {}
            _ => part.copy(&chunk, writer),
        }
        true
    }
}

impl Part<'_> {
    /// Copies a chunk of no CPU.
    fn copy(&self, chunk: &ChunkRef, writer: &mut Writer) {
        let stored = self.scan.stored(self.data, chunk);
        let framer = writer.framer();
        let sequence = framer.loose_sequence;
        framer.loose_sequence = sequence.wrapping_add(1);
        let id =
            ChunkId { kind: chunk.kind, flags: chunk.flags, stream: chunk.cpu.unwrap_or(u32::MAX), sequence };
        framer.stored_chunk(&frame_of(chunk, id), &stored, Summary::default());
    }

    /// Copies a chunk of folded lives with the number of its interval in the whole recording.
    fn copy_fold(&self, chunk: &ChunkRef, base: u64, writer: &mut Writer) {
        let folds = &self.scan.contents.folds;
        let own =
            folds.iter().find(|(fold, _)| fold.offset == chunk.offset).map_or(0, |(_, info)| info.number);
        let framer = writer.framer();
        let sequence = framer.loose_sequence;
        framer.loose_sequence = sequence.wrapping_add(1);
        let id = ChunkId { kind: chunk.kind, flags: chunk.flags, stream: u32::MAX, sequence };
        self.copy_numbered(chunk, (FOLD_NUMBER_AT, own.saturating_add(base)), id, Summary::default(), writer);
    }

    /// Copies a chunk of events with its numbers in the whole recording.
    fn copy_events(&self, chunk: &ChunkRef, cpu: u32, base: (u32, u64), writer: &mut Writer) {
        let info = self.scan.info_of(chunk).unwrap_or(EventsInfo::NONE);
        let first_event = info.first_event.saturating_add(base.1);
        let id = ChunkId {
            kind: chunk.kind,
            flags: chunk.flags,
            stream: cpu,
            sequence: base.0.wrapping_add(chunk.sequence),
        };
        let summary = Summary { first_event, ..summary(&info) };
        self.copy_numbered(chunk, (FIRST_EVENT_AT, first_event), id, summary, writer);
    }

    /// Copies a chunk with another number of 8 bytes at an offset of its head, which is in its prefix.
    fn copy_numbered(
        &self,
        chunk: &ChunkRef,
        (at, number): (usize, u64),
        id: ChunkId,
        summary: Summary,
        writer: &mut Writer,
    ) {
        let mut stored = self.scan.stored(self.data, chunk).into_owned();
        let mut bytes = Vec::with_capacity(8);
        self.scan.order().push(&mut bytes, number, 8);
        for (to, from) in stored.iter_mut().skip(at).zip(bytes) {
            *to = from;
        }
        let prefix = stored.get(..chunk.prefix_len as usize).unwrap_or_default();
        let frame = Frame {
            prefix_crc: crc32fast::hash(prefix),
            body_crc: crc32fast::hash(&stored),
            ..frame_of(chunk, id)
        };
        writer.framer().stored_chunk(&frame, &stored, summary);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Loss;
    use crate::kernel::{ByteOrder, CpuStats};
    use crate::read::Trace;
    use crate::write::{StatsTaken, Task};

    /// Parts of a file, in its order.
    #[derive(Clone, Copy)]
    enum Step {
        Event(u32, u64),
        Loss(u32, u64),
    }

    fn steps() -> Vec<Step> {
        let step = |n: u64| match n {
            7 | 19 => Step::Loss((n % 2) as u32, n),
            n => Step::Event((n % 3) as u32, 1_000 + n * 10),
        };
        (0..24).map(step).collect()
    }

    /// The record of an event of the example.
    fn record(trace: &Trace<'_>) -> Vec<u8> {
        let mut record = Vec::new();
        trace.events().unwrap().next().unwrap().to_record(&mut record);
        record
    }

    /// The files of a recording of these steps, with a border before each of these.
    fn parts(borders: &[usize]) -> Vec<Vec<u8>> {
        let example = crate::example().unwrap();
        let trace = Trace::open(&example).unwrap();
        let format = trace.schema().class(0).unwrap().format_text.clone();
        let record = record(&trace);
        let options = WriterOptions::new(ByteOrder::Little, 8).trace_uuid([9; 16]);
        let mut writer = Writer::new(options).unwrap();
        writer.add_format("kmem", &format).unwrap();
        let (mut files, mut bytes, mut events, mut number) = (Vec::new(), Vec::new(), 0u64, 1);
        let begin = |writer: &mut Writer, number: usize| {
            let number = number.to_string();
            writer.add_metadata(&[(Join::PART_KEY, number.as_bytes()), ("clock.pair", b"1 2 3")]).unwrap();
            writer.add_file("slabinfo.before", number.as_bytes()).unwrap();
            writer.add_file("slabinfo.after", number.as_bytes()).unwrap();
            writer.add_tasks(&[Task::new(4, number.as_bytes()).since(5)]).unwrap();
        };
        let end = |writer: &mut Writer, events: &mut u64| {
            let read = Some(core::mem::take(events));
            let stats = CpuStats { overrun: Some(2), read, ..CpuStats::default() };
            writer.add_stats(StatsTaken::After, &[(0, stats)]).unwrap();
            writer.add_metadata(&[("recorder.events", b"10")]).unwrap();
        };
        begin(&mut writer, number);
        for (at, step) in steps().into_iter().enumerate() {
            if borders.contains(&at) {
                end(&mut writer, &mut events);
                bytes.extend(writer.take());
                bytes.extend(writer.next_file().unwrap());
                files.push(core::mem::take(&mut bytes));
                number += 1;
                begin(&mut writer, number);
            }
            match step {
                Step::Event(cpu, time) => {
                    events += 1;
                    writer.add_event(cpu, time, &record).unwrap();
                }
                Step::Loss(cpu, count) => writer.add_loss(cpu, Loss::counted(count)).unwrap(),
            }
        }
        end(&mut writer, &mut events);
        bytes.extend(writer.finish().unwrap());
        files.push(bytes);
        files
    }

    fn joined(parts: &[Vec<u8>]) -> Result<Vec<u8>> {
        let mut join = Join::new(Limits::default());
        parts.iter().try_for_each(|part| join.add(part))?;
        let mut out = Vec::new();
        while let Some(bytes) = join.next_bytes()? {
            out.extend(bytes);
        }
        Ok(out)
    }

    /// Events by CPU, and the losses before them.
    fn contents(file: &[u8]) -> Vec<(u32, u64, Vec<u8>)> {
        let trace = Trace::open(file).unwrap();
        assert!(trace.is_finished() && trace.damages().is_empty(), "{:?}", trace.damages());
        assert!(trace.streams().values().all(|stream| stream.chunks_missing == 0));
        assert!(trace.streams().values().all(|stream| stream.events_missing == 0));
        let mut merge = trace.merge();
        let mut out = Vec::new();
        while let Some(run) = merge.next_run() {
            for event in run.events() {
                let mut record = Vec::new();
                event.to_record(&mut record);
                out.push((run.cpu, event.time(), record));
            }
        }
        out
    }

    fn lost(file: &[u8]) -> u64 {
        let trace = Trace::open(file).unwrap();
        let chunks = trace.streams().values().flat_map(|stream| &stream.chunks);
        chunks.map(|(_, info)| info.loss.counted).sum()
    }

    #[test]
    fn files_split_at_every_point_are_the_whole() {
        let whole = parts(&[]);
        let expected = contents(&whole[0]);
        assert_eq!((expected.len(), lost(&whole[0])), (22, 7 + 19));
        for first in 0..steps().len() {
            for second in first..steps().len() {
                let parts = parts(&[first, second]);
                assert_eq!(parts.len(), if first == second { 2 } else { 3 });
                let events: u64 = parts.iter().map(|part| contents(part).len() as u64).sum();
                assert_eq!(events, 22, "each event is in one file");
                let file = joined(&parts).unwrap();
                assert_eq!(contents(&file), expected, "{first} {second}");
                assert_eq!(lost(&file), 7 + 19);
            }
        }
    }

    #[test]
    fn facts_of_the_whole_are_those_of_its_parts_together() {
        let parts = parts(&[5, 12]);
        let file = joined(&parts).unwrap();
        let trace = Trace::open(&file).unwrap();
        let metadata = trace.metadata();
        assert_eq!(metadata.text(Join::PART_KEY), Some("1-3"));
        assert_eq!(metadata.text("recorder.events"), Some("30"));
        assert_eq!(metadata.pairs.iter().filter(|(key, _)| key == "clock.pair").count(), 3);
        assert_eq!(metadata.attachment("slabinfo.before"), Some(&b"1"[..]));
        assert_eq!(metadata.attachment("slabinfo.after"), Some(&b"3"[..]));
        let after = metadata.counters[&0].after.unwrap();
        assert_eq!((after.overrun, after.read), (Some(6), Some(22)));
        // The first file is missing: the recording begins with the second.
        let file = joined(&parts[1..]).unwrap();
        let trace = Trace::open(&file).unwrap();
        assert_eq!(trace.metadata().text(Join::PART_KEY), Some("2-3"));
        assert_eq!(trace.metadata().attachment("slabinfo.before"), Some(&b"2"[..]));
    }

    #[test]
    fn an_unfinished_last_file_stays_marked() {
        let mut parts = parts(&[8]);
        let index = Trace::open(&parts[1]).unwrap().metadata().trailer.unwrap().index_offset.unwrap();
        parts[1].truncate(usize::try_from(index).unwrap());
        let file = joined(&parts).unwrap();
        let trace = Trace::open(&file).unwrap();
        assert!(trace.is_finished() && trace.early_end().is_some());
        assert_eq!(contents(&file).len(), 22);
    }

    #[test]
    fn damaged_files_and_others_are_refused() {
        let parts = parts(&[8]);
        let mut torn = parts.clone();
        let len = torn[1].len();
        torn[1][len / 2] ^= 1;
        assert!(joined(&torn).is_err());
        let other = Writer::new(WriterOptions::new(ByteOrder::Little, 8)).unwrap().finish().unwrap();
        assert!(joined(&[parts[0].clone(), other]).is_err());
        assert!(joined(&[]).unwrap().is_empty());
    }
}
