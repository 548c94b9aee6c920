//! The writer: decides which chunk comes when, and frames it.

use std::collections::HashMap;
use zerocopy::LittleEndian;

use super::frame::{ChunkId, file_header};
use super::framer::Framer;
use super::schema_chunk::schema_body;
use super::sub_buffer_chunk::SubBufferChunk;
use super::types::{WriterLimits, WriterOptions};
use super::unknown_ids::UnknownIds;
use super::used_code::UsedCode;
use crate::Loss;
use crate::codec::Compression;
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::with_order;
use crate::pack::{BodyLayout, ClassRepeats, EventChunkBuilder, RecordPlan};
use crate::raw::{ChunkHeader, ChunkKind, chunk_flags};
use crate::schema::EventClass;

/// Streams of one file at most: the readers' limit too.
const STREAMS_MAX: usize = 16_384;

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
    formats: HashMap<u16, EventClass>,
    /// Classes of ids without a format, where their events are kept.
    unknown: Option<UnknownIds>,
    /// Classes that were in the file already when this writer went on with it.
    pub(super) first_class: usize,
    pub(super) plans: Vec<RecordPlan>,
    /// Addresses of code in events.
    pub(super) code: UsedCode,
    class_repeats: Vec<ClassRepeats>,
    /// Index in `plans` plus one by event id; 0 if none: a table of zeros costs nothing until it is used.
    plan_of_id: Vec<u16>,
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

#[derive(Debug)]
pub(super) struct OpenStream {
    pub(super) builder: EventChunkBuilder,
    pub(super) sub_buffers: SubBufferChunk,
    sequence: u32,
    last_time: Option<u64>,
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

    /// Makes an event class known by its `format` file. It gets into the file when its first event does.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not that of a `format` file.
    pub fn add_format(&mut self, system: &str, text: &str) -> Result<u16> {
        let class = EventClass::from_format(system, text, self.options.long_size)?;
        let id = class.id;
        self.formats.entry(id).or_insert(class);
        Ok(id)
    }

    /// True if there is a format for that event id.
    pub fn knows_id(&self, id: u16) -> bool {
        self.formats.contains_key(&id) || self.plan_of_id.get(usize::from(id)).is_some_and(|&i| i != 0)
    }

    /// The class of that event id, if there is a format for it.
    pub fn class_of(&self, id: u16) -> Option<&EventClass> {
        let known = self.plan_of_id.get(usize::from(id)).and_then(|index| index.checked_sub(1));
        match known {
            Some(index) => self.plans.get(usize::from(index)).map(|plan| &plan.class),
            None => self.formats.get(&id),
        }
    }

    /// Keeps events whose id has no format, as events of a class `unknown:event_ID` with the fields common to all events
    /// and an array of bytes, `data`. `format` is any `format` file of the same kernel: its common fields are used.
    ///
    /// At most 64 ids are kept so: more of them come from damage.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not that of a `format` file.
    pub fn keep_unknown(&mut self, format: &str) -> Result<()> {
        self.unknown = Some(UnknownIds::new(format, self.options.long_size)?);
        Ok(())
    }

    /// Writes the class of that event id into the file even if none of its events occurs.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no format for the id, or one that cannot be stored.
    pub fn declare(&mut self, id: u16) -> Result<()> {
        self.plan_index(id).map(|_| ())
    }

    #[inline]
    pub(super) fn plan_index(&mut self, id: u16) -> Result<usize> {
        match self.plan_of_id.get(usize::from(id)).and_then(|index| index.checked_sub(1)) {
            Some(index) => Ok(usize::from(index)),
            None => self.add_plan(id),
        }
    }

    fn add_plan(&mut self, id: u16) -> Result<usize> {
        let class = self.formats.remove(&id).or_else(|| self.unknown.as_mut()?.class(id));
        let class = class.ok_or_else(|| Error::new(ErrorKind::UnknownEventId { id }))?;
        let index = self.plans.len();
        // Three shapes a class, and shape numbers have 16 bits.
        let number = self.first_class + index;
        if number >= 21_000 {
            return Err(Error::new(ErrorKind::Usage("more than 21,000 event classes")));
        }
        let plan = RecordPlan::new(class, number, number * 3, self.options.long_size)?;
        self.plans.push(plan);
        self.class_repeats.push(ClassRepeats::default());
        if let Some(slot) = self.plan_of_id.get_mut(usize::from(id)) {
            *slot = index as u16 + 1;
        }
        Ok(index)
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

    /// Index of the stream of `cpu`.
    #[inline]
    pub(super) fn stream(&mut self, cpu: u32) -> Result<usize> {
        match self.streams.get(self.current) {
            Some((current, _)) if *current == cpu => Ok(self.current),
            _ => self.other_stream(cpu),
        }
    }

    fn other_stream(&mut self, cpu: u32) -> Result<usize> {
        if cpu == ChunkHeader::<LittleEndian>::NO_STREAM {
            return Err(Error::new(ErrorKind::Usage("the number of a CPU is out of range")));
        }
        if let Some(&index) = self.stream_of_cpu.get(&cpu) {
            self.current = index;
            return Ok(index);
        }
        if self.streams.len() >= STREAMS_MAX {
            return Err(Error::new(ErrorKind::Usage("more than 16,384 CPUs, the most that readers accept")));
        }
        self.current = self.streams.len();
        self.stream_of_cpu.insert(cpu, self.current);
        self.streams.push((cpu, OpenStream::new(&self.options, &self.limits)));
        Ok(self.current)
    }

    fn stream_known(&mut self, cpu: u32) -> Option<&mut OpenStream> {
        let index = *self.stream_of_cpu.get(&cpu)?;
        self.streams.get_mut(index).map(|(_, stream)| stream)
    }

    /// Closes the open chunk of `cpu`, if there is one.
    ///
    /// # Errors
    ///
    /// Returns an error if the codec refuses it.
    pub fn flush(&mut self, cpu: u32) -> Result<()> {
        if self.stream_known(cpu).is_some_and(|s| !s.is_empty()) {
            self.close_chunk(cpu)?;
        }
        Ok(())
    }

    /// Closes the open chunk of `cpu`, where nothing more of it is expected: its memory is given back.
    ///
    /// # Errors
    ///
    /// Returns an error if the codec refuses it.
    pub fn end_cpu(&mut self, cpu: u32) -> Result<()> {
        self.flush(cpu)?;
        if let Some(stream) = self.stream_known(cpu) {
            stream.builder.release_memory();
            stream.sub_buffers.release_memory();
        }
        Ok(())
    }

    pub(super) fn close_chunk(&mut self, cpu: u32) -> Result<()> {
        self.write_schema()?;
        self.write_new_symbols()?;
        let index = self.stream_of_cpu.get(&cpu);
        let Some((_, stream)) = index.and_then(|&index| self.streams.get_mut(index)) else { return Ok(()) };
        let order = self.options.order;
        let class_limit = self.first_class.saturating_add(self.plans_written);
        let start = self.framer.start();
        let (kind, layout) = if stream.sub_buffers.is_empty() {
            let body = stream.builder.take_body(&mut self.framer.out);
            let Self { options, .. } = self;
            (ChunkKind::EVENTS, body.layout(order, options.long_size, options.compression))
        } else {
            let summary = stream.sub_buffers.summary;
            let prefix_len = stream.sub_buffers.take_body(order, class_limit, &mut self.framer.out);
            let events = summary.first_event.saturating_add(summary.record_count.into());
            stream.builder.continue_after(events, summary.t_last);
            (ChunkKind::SUB_BUFFERS, BodyLayout { prefix_len, records: None, summary })
        };
        let mut flags = chunk_flags::CRITICAL;
        if layout.summary.record_count > 0 {
            if stream.last_time.is_some_and(|last| layout.summary.t_base < last) {
                flags |= chunk_flags::TIME_REGRESSION;
            }
            stream.last_time = Some(layout.summary.t_last);
        }
        let sequence = stream.sequence;
        stream.sequence = stream.sequence.wrapping_add(1);
        self.framer.frame(start, ChunkId { kind, flags, stream: cpu, sequence }, &layout)
    }

    /// Writes the classes used for the first time since the last call.
    pub(super) fn write_schema(&mut self) -> Result<()> {
        if self.plans_written < self.plans.len() {
            let body = self.schema_body(self.plans_written);
            self.plans_written = self.plans.len();
            self.framer.loose_chunk(ChunkKind::SCHEMA, chunk_flags::CRITICAL, &body)?;
        }
        Ok(())
    }

    fn schema_body(&self, from: usize) -> Vec<u8> {
        let plans: Vec<&RecordPlan> = self.plans.iter().skip(from).collect();
        with_order!(self.options.order, O => schema_body::<O>(&plans))
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

impl OpenStream {
    fn new(options: &WriterOptions, limits: &WriterLimits) -> Self {
        Self {
            builder: EventChunkBuilder::new(options.order, options.long_size, limits.chunk_len),
            sub_buffers: SubBufferChunk::default(),
            sequence: 0,
            last_time: None,
        }
    }

    #[inline]
    fn must_close_before(&self, time: u64) -> bool {
        self.builder.must_close_before(time) || !self.sub_buffers.is_empty()
    }

    fn has_events(&self) -> bool {
        self.builder.record_count() > 0 || !self.sub_buffers.is_empty()
    }

    /// Bytes of what is open.
    fn len_bytes(&self) -> usize {
        self.builder.len_bytes() + self.sub_buffers.len_bytes()
    }

    fn is_empty(&self) -> bool {
        self.builder.is_empty() && self.sub_buffers.is_empty()
    }
}
