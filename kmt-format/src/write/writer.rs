//! The writer: a file from its header to its trailer. Its `impl` blocks stand by concept: `classes`, `streams`, and a file for each
//! other kind of chunk.

use std::collections::HashMap;

use super::frame::file_header;
use super::framer::Framer;
use super::open_stream::OpenStream;
use super::types::{WriterLimits, WriterOptions};
use super::unknown_ids::UnknownIds;
use super::used_code::UsedCode;
use crate::Loss;
use crate::codec::Compression;
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::with_order;
use crate::pack::{ClassRepeats, RecordPlan};
use crate::raw::{ChunkKind, chunk_flags};
use crate::schema::EventClass;

/// Makes a file from events and metadata. It does no I/O: [`Writer::take`] hands out what is ready.
///
/// Memory is bounded by one open chunk for each CPU, plus the bytes not yet returned by [`Writer::take`].
///
/// ```
/// use kmt_format::Loss;
/// use kmt_format::kernel::ByteOrder;
/// use kmt_format::write::{Writer, WriterOptions};
/// # let example = kmt_format::example()?;
/// # let trace = kmt_format::read::Trace::open(&example)?;
/// # let format = trace.schema().class(0).expect("a class").format_text.clone();
/// # let mut record = Vec::new();
/// # trace.events()?.next().expect("an event").to_record(&mut record);
///
/// let mut writer = Writer::new(WriterOptions::new(ByteOrder::Little, 8))?;
/// writer.add_format("kmem", &format)?;
/// let mut file = Vec::new();
/// for time in 0..1_000 {
///     writer.add_event(0, time, &record)?;
///     file.extend(writer.take());
/// }
/// writer.add_loss(0, Loss::counted(5))?;
/// file.extend(writer.finish()?);
/// # assert_eq!(kmt_format::read::Trace::open(&file)?.event_count(), 1_000);
/// # Ok::<(), kmt_format::Error>(())
/// ```
#[derive(Debug)]
pub struct Writer {
    pub(super) options: WriterOptions,
    pub(super) limits: WriterLimits,
    pub(super) framer: Framer,
    /// Formats by event id, not yet used.
    pub(super) formats: HashMap<u16, EventClass>,
    /// Classes of ids without a format, where their events are kept.
    pub(super) unknown: Option<UnknownIds>,
    /// Classes that were in the file already when this writer went on with it.
    pub(super) first_class: usize,
    pub(super) plans: Vec<RecordPlan>,
    /// Addresses of code in events.
    pub(super) code: UsedCode,
    pub(super) class_repeats: Vec<ClassRepeats>,
    /// Index in `plans` plus one by event id; 0 if none: a table of zeros costs nothing until it is used.
    pub(super) plan_of_id: Vec<u16>,
    pub(super) plans_written: usize,
    /// Number of classes, and how long a chunk of all of them is.
    classes_len: (usize, u64),
    /// By CPU, in order of first sight.
    pub(super) streams: Vec<(u32, OpenStream)>,
    /// Index in `streams` by CPU.
    pub(super) stream_of_cpu: HashMap<u32, usize>,
    /// Index of the stream that was used last: events of one CPU mostly come together.
    pub(super) current: usize,
}

impl Writer {
    /// Starts a file.
    ///
    /// # Errors
    ///
    /// Returns an error if the options say what the format cannot express.
    pub fn new(options: WriterOptions) -> Result<Self> {
        Self::with_limits(options, WriterLimits::default())
    }

    /// Starts a file, with other limits than the default ones.
    ///
    /// # Errors
    ///
    /// Returns an error if the options say what the format cannot express.
    pub fn with_limits(options: WriterOptions, limits: WriterLimits) -> Result<Self> {
        if !matches!(options.long_size, 4 | 8) {
            return Err(Error::new(ErrorKind::Usage("the size of long is neither 4 nor 8")));
        }
        if !options.compression.is_available() {
            return Err(Error::new(ErrorKind::CodecNotBuilt { codec: "zstd" }));
        }
        let mut writer = Self::with_framer(
            options,
            Framer::start_of(options.order, options.trace_uuid, options.compression),
        );
        writer.limits = limits;
        writer.framer.index_rows_max = limits.index_rows;
        writer.begin()?;
        Ok(writer)
    }

    /// Writes the header of the file and its copy.
    pub(super) fn begin(&mut self) -> Result<()> {
        let header = with_order!(self.options.order, O => file_header::<O>(&self.options));
        self.framer.out.extend_from_slice(&header);
        self.framer.file_len = header.len() as u64;
        self.framer.loose_chunk(ChunkKind::HEADER_COPY, 0, &header)
    }

    pub(crate) fn with_framer(options: WriterOptions, framer: Framer) -> Self {
        Self {
            options,
            limits: WriterLimits::default(),
            framer,
            formats: HashMap::new(),
            unknown: None,
            first_class: 0,
            plans: Vec::new(),
            code: UsedCode::default(),
            class_repeats: Vec::new(),
            plan_of_id: vec![0; 1 << 16],
            plans_written: 0,
            classes_len: (0, 0),
            streams: Vec::new(),
            stream_of_cpu: HashMap::new(),
            current: 0,
        }
    }

    /// Continues a file with this number of classes, and for each CPU the number of the next chunk, the number of
    /// the next event, and the last time.
    pub(crate) fn continue_file(
        &mut self,
        classes: usize,
        streams: impl Iterator<Item = (u32, u32, u64, u64)>,
    ) {
        self.first_class = classes;
        for (cpu, sequence, events, t_last) in streams {
            let mut stream = OpenStream::new(&self.options, &self.limits);
            stream.sequence = sequence;
            stream.last_time = Some(t_last);
            stream.builder.continue_after(events, t_last);
            self.stream_of_cpu.insert(cpu, self.streams.len());
            self.streams.push((cpu, stream));
        }
    }

    /// Stores attached files with another codec than events; and keys, names of tasks, counters and classes
    /// with LZ4, which every reader has. They are most of a short recording, and are read once.
    ///
    /// # Errors
    ///
    /// Returns an error if this build of the library lacks the codec.
    pub fn compress_besides(&mut self, compression: Compression) -> Result<()> {
        if !compression.is_available() {
            return Err(Error::new(ErrorKind::CodecNotBuilt { codec: "zstd" }));
        }
        self.framer.attachment_compression = compression;
        Ok(())
    }

    /// Length that the file will have about, in bytes, if it is finished now: with open chunks, the second copy of the
    /// classes, index and trailer.
    pub fn finished_len(&mut self) -> u64 {
        let open = self.streams.iter().map(|(_, stream)| stream.len_bytes() as u64);
        let open: u64 = open.filter(|&len| len > 0).map(|len| len + 128).sum();
        if self.classes_len.0 != self.plans.len() {
            let len = self.framer.len_of(ChunkKind::SCHEMA, &self.schema_body(0));
            self.classes_len = (self.plans.len(), len);
        }
        let (_, classes) = self.classes_len;
        let unwritten = if self.plans_written < self.plans.len() { classes } else { 0 };
        self.framer.file_len + open + classes + unwritten + self.framer.closing_len()
    }

    /// The bytes made since the last call, to be appended to the file.
    pub fn take(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.framer.out)
    }

    /// Moves the bytes made since the last call to the end of `out`; keeps the memory for the next ones.
    pub fn take_into(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.framer.out);
    }

    /// The bytes made and not yet taken.
    pub fn pending(&self) -> &[u8] {
        &self.framer.out
    }

    /// Forgets the bytes that [`Writer::pending`] gives; keeps the memory for the next ones.
    pub fn clear_pending(&mut self) {
        self.framer.out.clear();
    }

    /// Bytes made and not yet taken.
    pub fn pending_len(&self) -> usize {
        self.framer.out.len()
    }

    /// Events in all chunks of the file that are made so far, taken or not. Those of open chunks do not count yet.
    pub fn events_closed(&self) -> u64 {
        self.framer.event_count
    }

    /// Adds an event of `cpu`: its time in the clock's unit, and its record from `common_type` on, as
    /// [`SubBufferItem::Event`](crate::kernel::SubBufferItem) has it. Events of one CPU come in the order the kernel wrote them.
    ///
    /// # Errors
    ///
    /// Returns an error if the id has no format or the record is shorter than its fields; nothing is added then.
    #[inline]
    pub fn add_event(&mut self, cpu: u32, time: u64, record: &[u8]) -> Result<()> {
        let id = self.options.order.uint_at(record, 0, 2).unwrap_or(0) as u16;
        let index = self.plan_index(id)?;
        let mut stream = self.stream(cpu)?;
        if self.streams.get(stream).is_some_and(|(_, s)| s.must_close_before(time)) {
            self.close_chunk(cpu)?;
            stream = self.stream(cpu)?;
        }
        let (Some(plan), Some(repeats), Some((_, stream))) =
            (self.plans.get(index), self.class_repeats.get_mut(index), self.streams.get_mut(stream))
        else {
            return Err(Error::new(ErrorKind::Usage("the stream does not exist")));
        };
        stream.builder.push(plan, repeats, time, record)?;
        if self.code.is_on() && stream.builder.has_new_fields() {
            self.code.add_record(plan, record, self.options.order, self.options.long_size);
        }
        Ok(())
    }

    /// Tells whether [`Writer::add_event`] would take a record.
    ///
    /// # Errors
    ///
    /// Those of [`Writer::add_event`].
    #[inline]
    pub fn accepts(&mut self, record: &[u8]) -> Result<()> {
        let id = self.options.order.uint_at(record, 0, 2).unwrap_or(0) as u16;
        let index = self.plan_index(id)?;
        self.plans.get(index).map_or(Ok(()), |plan| plan.check_len(record))
    }

    /// Records a loss after the last event of `cpu` that was added.
    ///
    /// # Errors
    ///
    /// Returns an error if the CPU number cannot be expressed.
    pub fn add_loss(&mut self, cpu: u32, loss: Loss) -> Result<()> {
        let stream = self.stream(cpu)?;
        if self.streams.get(stream).is_some_and(|(_, s)| s.has_events()) {
            self.close_chunk(cpu)?;
        }
        if let Some((_, stream)) = self.streams.get_mut(stream) {
            stream.builder.add_loss(loss);
        }
        Ok(())
    }

    /// Closes all chunks and writes index and trailer; returns the last bytes of the file.
    ///
    /// # Errors
    ///
    /// Returns an error if the codec refuses a chunk.
    pub fn finish(mut self) -> Result<Vec<u8>> {
        self.complete()?;
        Ok(self.framer.out)
    }

    /// Writes what is left: open chunks, a second copy of the classes, index and trailer.
    pub(super) fn complete(&mut self) -> Result<()> {
        let mut cpus: Vec<u32> = self.streams.iter().map(|(cpu, _)| *cpu).collect();
        cpus.sort_unstable();
        for cpu in cpus {
            self.end_cpu(cpu)?;
        }
        self.write_schema()?;
        self.write_new_symbols()?;
        if !self.plans.is_empty() {
            // A second copy, so that damage to the first one does not cost the events.
            let body = self.schema_body(0);
            self.framer.loose_chunk(ChunkKind::SCHEMA, chunk_flags::CRITICAL, &body)?;
        }
        self.framer.close()
    }

    /// The file as it grows, for files that are made of others.
    pub(crate) fn framer(&mut self) -> &mut Framer {
        &mut self.framer
    }
}
