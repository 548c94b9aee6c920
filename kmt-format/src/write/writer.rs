//! The writer: decides which chunk comes when, and frames it.

use std::collections::HashMap;
use zerocopy::{BigEndian, IntoBytes, LittleEndian};

use super::event_chunk::{EventChunkBuilder, Habit};
use super::frame::{Frame, file_header};
use super::plan::ClassPlan;
use super::rows::{clock_head, stats_row, task_row, writer_stats_row};
use super::schema_chunk::schema_body;
use super::symbols_chunk::symbols_body;
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::{ByteOrder, CpuStats, KernelSymbols, Module, TraceClock};
use crate::raw::{ALIGNMENT, ChunkHeader, ChunkKind, Trailer, chunk_flags};
use crate::schema::EventClass;

/// What a file says of the target in its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriterOptions {
    /// Byte order of the traced kernel, and so of the file.
    pub order: ByteOrder,
    /// Size of the traced kernel's `long` in bytes: 4 or 8.
    pub long_size: usize,
    /// Alignment of u64 in the traced kernel's structures; `None` if not known.
    pub align_u64: Option<u8>,
    /// Page size of the target in bytes; `None` if not known.
    pub page_size: Option<u64>,
    /// Identifies the trace. Chunks carry its first four bytes, so traces of one set of files should differ in them.
    pub trace_uuid: [u8; 16],
}

/// Events lost at one place of one CPU's stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Loss {
    /// Events lost as the kernel counted them.
    pub counted: u64,
    /// At least one more was lost, and the kernel did not count.
    pub uncounted: bool,
    /// Part of the input was damaged here and could not be decoded.
    pub damaged_input: bool,
}

impl Loss {
    /// Both losses at one place.
    pub fn and(self, other: Self) -> Self {
        Self {
            counted: self.counted.saturating_add(other.counted),
            uncounted: self.uncounted | other.uncounted,
            damaged_input: self.damaged_input | other.damaged_input,
        }
    }
}

/// A task's name, for [`Writer::tasks`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Since when, in the clock's unit; 0 if not known.
    pub time: u64,
    /// Thread id.
    pub pid: i32,
    /// Thread group id; 0 if not known.
    pub tgid: i32,
    /// Name; what is beyond 16 bytes is cut.
    pub comm: Vec<u8>,
}

/// When the kernel's counters were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatsTaken {
    /// Before the ring buffer was drained.
    Before,
    /// After.
    After,
}

/// What the writer's input of one CPU held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WriterStats {
    /// Events written.
    pub events: u64,
    /// Bytes of input.
    pub bytes: u64,
    /// Sub-buffers read.
    pub sub_buffers: u64,
    /// Sub-buffers that could not be decoded to their end.
    pub sub_buffers_damaged: u64,
    /// Discarded events and fillers passed over.
    pub discarded: u64,
}

/// Makes a file from events and metadata. It does no I/O: [`Writer::take`] hands out what is ready.
///
/// Memory is bounded by one open chunk for each CPU, besides what [`Writer::take`] has not been asked for.
#[derive(Debug)]
pub struct Writer {
    options: WriterOptions,
    header: Vec<u8>,
    out: Vec<u8>,
    file_len: u64,
    chunk_count: u32,
    event_count: u64,
    event_bytes: u64,
    loose_sequence: u32,
    /// Formats by event id, not yet used.
    formats: HashMap<u16, EventClass>,
    plans: Vec<ClassPlan>,
    habits: Vec<Habit>,
    /// Index in `plans` by event id; `u16::MAX` if none.
    plan_of_id: Vec<u16>,
    plans_written: usize,
    /// By CPU, in order of first sight.
    streams: Vec<(u32, Stream)>,
    /// Index of the stream that was used last: events of one CPU mostly come together.
    current: usize,
}

#[derive(Debug)]
struct Stream {
    builder: EventChunkBuilder,
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
        if !matches!(options.long_size, 4 | 8) {
            return Err(Error::new(ErrorKind::Usage("the size of long is neither 4 nor 8")));
        }
        let header = match options.order {
            ByteOrder::Little => file_header::<LittleEndian>(&options),
            ByteOrder::Big => file_header::<BigEndian>(&options),
        };
        let mut writer = Self {
            options,
            out: header.clone(),
            file_len: header.len() as u64,
            header,
            chunk_count: 0,
            event_count: 0,
            event_bytes: 0,
            loose_sequence: 0,
            formats: HashMap::new(),
            plans: Vec::new(),
            habits: Vec::new(),
            plan_of_id: vec![u16::MAX; 1 << 16],
            plans_written: 0,
            streams: Vec::new(),
            current: 0,
        };
        let copy = writer.header.clone();
        writer.loose_chunk(ChunkKind::HEADER_COPY, 0, &copy);
        Ok(writer)
    }

    /// The bytes made since the last call, to be appended to the file.
    pub fn take(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.out)
    }

    /// Bytes made and not yet taken.
    pub fn pending_len(&self) -> usize {
        self.out.len()
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

    /// Whether there is a format for that event id.
    pub fn knows_id(&self, id: u16) -> bool {
        self.formats.contains_key(&id) || self.plan_of_id.get(usize::from(id)).is_some_and(|&i| i != u16::MAX)
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
    fn plan_index(&mut self, id: u16) -> Result<usize> {
        match self.plan_of_id.get(usize::from(id)) {
            Some(&index) if index != u16::MAX => Ok(usize::from(index)),
            _ => self.add_plan(id),
        }
    }

    fn add_plan(&mut self, id: u16) -> Result<usize> {
        let class = self.formats.remove(&id).ok_or_else(|| Error::new(ErrorKind::UnknownEventId { id }))?;
        let index = self.plans.len();
        // Three shapes a class, and shape numbers have 16 bits.
        if index >= 21_000 {
            return Err(Error::new(ErrorKind::Usage("more than 21,000 event classes")));
        }
        let plan = ClassPlan::new(class, index, index * 3, self.options.long_size)?;
        self.plans.push(plan);
        self.habits.push(Habit::default());
        if let Some(slot) = self.plan_of_id.get_mut(usize::from(id)) {
            *slot = index as u16;
        }
        Ok(index)
    }

    /// Adds an event of `cpu`: its time in the clock's unit, and its record from `common_type` on, as
    /// [`Item::Event`](crate::kernel::Item) has it. Events of one CPU come in the order the kernel wrote them.
    ///
    /// # Errors
    ///
    /// Returns an error if the id has no format or the record is shorter than its fields; nothing is added then.
    #[inline]
    pub fn event(&mut self, cpu: u32, time: u64, record: &[u8]) -> Result<()> {
        let id = self.options.order.uint_at(record, 0, 2).unwrap_or(0) as u16;
        let index = self.plan_index(id)?;
        let mut stream = self.stream(cpu)?;
        if self.streams.get(stream).is_some_and(|(_, s)| s.builder.must_close_before(time)) {
            self.close_chunk(cpu);
            stream = self.stream(cpu)?;
        }
        let (Some(plan), Some(habit), Some((_, stream))) =
            (self.plans.get(index), self.habits.get_mut(index), self.streams.get_mut(stream))
        else {
            return Err(Error::new(ErrorKind::Usage("no such stream")));
        };
        stream.builder.push(plan, habit, time, record)
    }

    /// Notes a loss after the last event of `cpu` that was added.
    ///
    /// # Errors
    ///
    /// Returns an error if the CPU number cannot be expressed.
    pub fn lost(&mut self, cpu: u32, loss: Loss) -> Result<()> {
        let stream = self.stream(cpu)?;
        if self.streams.get(stream).is_some_and(|(_, s)| s.builder.record_count() > 0) {
            self.close_chunk(cpu);
        }
        if let Some((_, stream)) = self.streams.get_mut(stream) {
            stream.builder.add_loss(loss);
        }
        Ok(())
    }

    /// Index of the stream of `cpu`.
    #[inline]
    fn stream(&mut self, cpu: u32) -> Result<usize> {
        match self.streams.get(self.current) {
            Some((current, _)) if *current == cpu => Ok(self.current),
            _ => self.other_stream(cpu),
        }
    }

    fn other_stream(&mut self, cpu: u32) -> Result<usize> {
        if cpu == ChunkHeader::<LittleEndian>::NO_STREAM {
            return Err(Error::new(ErrorKind::Usage("no CPU has that number")));
        }
        self.current = self.streams.iter().position(|(c, _)| *c == cpu).unwrap_or_else(|| {
            let builder = EventChunkBuilder::new(self.options.order, self.options.long_size);
            self.streams.push((cpu, Stream { builder, sequence: 0, last_time: None }));
            self.streams.len() - 1
        });
        Ok(self.current)
    }

    /// Closes the open chunk of `cpu`, if there is one.
    pub fn flush(&mut self, cpu: u32) {
        if self.streams.iter().any(|(c, s)| *c == cpu && !s.builder.is_empty()) {
            self.close_chunk(cpu);
        }
    }

    fn close_chunk(&mut self, cpu: u32) {
        self.write_schema();
        let Some((_, stream)) = self.streams.iter_mut().find(|(c, _)| *c == cpu) else { return };
        let count = stream.builder.record_count() as u64;
        let (t_base, t_last) = (stream.builder.t_base(), stream.builder.t_last());
        let mut flags = chunk_flags::CRITICAL;
        if count > 0 {
            if stream.last_time.is_some_and(|last| t_base < last) {
                flags |= chunk_flags::TIME_REGRESSION;
            }
            stream.last_time = Some(t_last);
        }
        let sequence = stream.sequence;
        stream.sequence = stream.sequence.wrapping_add(1);
        let start = self.out.len();
        self.out.resize(start + ALIGNMENT, 0);
        stream.builder.take_body(&mut self.out);
        let before = self.file_len;
        self.frame(start, ChunkKind::EVENTS, flags, cpu, sequence);
        self.event_count += count;
        self.event_bytes += self.file_len - before;
    }

    /// Writes the classes that came into use since the last time.
    fn write_schema(&mut self) {
        if self.plans_written < self.plans.len() {
            let body = self.schema_body(self.plans_written);
            self.plans_written = self.plans.len();
            self.loose_chunk(ChunkKind::SCHEMA, chunk_flags::CRITICAL, &body);
        }
    }

    fn schema_body(&self, from: usize) -> Vec<u8> {
        let plans: Vec<&ClassPlan> = self.plans.iter().skip(from).collect();
        match self.options.order {
            ByteOrder::Little => schema_body::<LittleEndian>(&plans),
            ByteOrder::Big => schema_body::<BigEndian>(&plans),
        }
    }

    /// Writes the trace clock.
    pub fn clock(&mut self, clock: &TraceClock) {
        let mut body = match self.options.order {
            ByteOrder::Little => clock_head::<LittleEndian>(clock),
            ByteOrder::Big => clock_head::<BigEndian>(clock),
        };
        body.extend_from_slice(clock.name.as_bytes());
        self.loose_chunk(ChunkKind::CLOCK, chunk_flags::CRITICAL, &body);
    }

    /// Writes keys and values; values may be any bytes. See the registry for well-known keys.
    pub fn meta(&mut self, pairs: &[(&str, &[u8])]) {
        let order = self.options.order;
        let mut body = Vec::new();
        for (key, value) in pairs {
            order.push(&mut body, key.len() as u64, 4);
            order.push(&mut body, value.len() as u64, 4);
            body.extend_from_slice(key.as_bytes());
            body.extend_from_slice(value);
            body.resize(body.len().next_multiple_of(4), 0);
        }
        self.loose_chunk(ChunkKind::META, chunk_flags::SAFE_TO_COPY, &body);
    }

    /// Writes a file of the target, verbatim.
    pub fn file(&mut self, name: &str, contents: &[u8]) {
        let order = self.options.order;
        let mut body = Vec::with_capacity(contents.len() + name.len() + 24);
        order.push(&mut body, contents.len() as u64, 8);
        order.push(&mut body, name.len() as u64, 4);
        order.push(&mut body, 0, 4);
        body.extend_from_slice(name.as_bytes());
        body.resize(body.len().next_multiple_of(8), 0);
        body.extend_from_slice(contents);
        self.loose_chunk(ChunkKind::FILE, chunk_flags::SAFE_TO_COPY, &body);
    }

    /// Writes names of tasks.
    pub fn tasks(&mut self, tasks: &[Task]) {
        let body = match self.options.order {
            ByteOrder::Little => tasks.iter().flat_map(task_row::<LittleEndian>).collect::<Vec<u8>>(),
            ByteOrder::Big => tasks.iter().flat_map(task_row::<BigEndian>).collect(),
        };
        self.loose_chunk(ChunkKind::TASKS, chunk_flags::SAFE_TO_COPY, &body);
    }

    /// Writes the kernel's symbols. `modules` gives the places of modules.
    pub fn symbols(&mut self, symbols: &KernelSymbols<'_>, modules: &[Module]) {
        let long_size = self.options.long_size;
        let body = match self.options.order {
            ByteOrder::Little => symbols_body::<LittleEndian>(symbols, modules, long_size),
            ByteOrder::Big => symbols_body::<BigEndian>(symbols, modules, long_size),
        };
        self.loose_chunk(ChunkKind::SYMBOLS, chunk_flags::SAFE_TO_COPY, &body);
    }

    /// Writes the kernel's own counters for each CPU.
    pub fn stats(&mut self, taken: StatsTaken, stats: &[(u32, CpuStats)]) {
        let taken = if taken == StatsTaken::Before { 0 } else { 1 };
        let rows: Vec<u8> = match self.options.order {
            ByteOrder::Little => {
                stats.iter().flat_map(|(c, s)| stats_row::<LittleEndian>(*c, taken, s)).collect()
            }
            ByteOrder::Big => stats.iter().flat_map(|(c, s)| stats_row::<BigEndian>(*c, taken, s)).collect(),
        };
        self.loose_chunk(ChunkKind::STATS, chunk_flags::SAFE_TO_COPY, &rows);
    }

    /// Writes what the input of each CPU held.
    pub fn writer_stats(&mut self, stats: &[(u32, WriterStats)]) {
        let rows: Vec<u8> = match self.options.order {
            ByteOrder::Little => {
                stats.iter().flat_map(|(c, s)| writer_stats_row::<LittleEndian>(*c, s)).collect()
            }
            ByteOrder::Big => stats.iter().flat_map(|(c, s)| writer_stats_row::<BigEndian>(*c, s)).collect(),
        };
        self.loose_chunk(ChunkKind::STATS, chunk_flags::SAFE_TO_COPY, &rows);
    }

    /// Closes all chunks and writes the trailer; returns the last bytes of the file.
    pub fn finish(mut self) -> Vec<u8> {
        let mut cpus: Vec<u32> = self.streams.iter().map(|(cpu, _)| *cpu).collect();
        cpus.sort_unstable();
        for cpu in cpus {
            self.flush(cpu);
        }
        self.write_schema();
        if !self.plans.is_empty() {
            // A second copy, so that damage to the first one does not cost the events.
            let body = self.schema_body(0);
            self.loose_chunk(ChunkKind::SCHEMA, chunk_flags::CRITICAL, &body);
        }
        let trailer_len = (ALIGNMENT + size_of::<Trailer<LittleEndian>>()).next_multiple_of(ALIGNMENT) as u64;
        let body = match self.options.order {
            ByteOrder::Little => self.trailer::<LittleEndian>(trailer_len),
            ByteOrder::Big => self.trailer::<BigEndian>(trailer_len),
        };
        self.loose_chunk(ChunkKind::TRAILER, 0, &body);
        self.out
    }

    fn trailer<O: zerocopy::ByteOrder>(&self, trailer_len: u64) -> Vec<u8> {
        let trailer = Trailer::<O> {
            head_len: (size_of::<Trailer<O>>() as u32).into(),
            chunk_count: (self.chunk_count + 1).into(),
            file_len: (self.file_len + trailer_len).into(),
            event_count: self.event_count.into(),
            event_bytes: self.event_bytes.into(),
        };
        trailer.as_bytes().to_vec()
    }

    fn loose_chunk(&mut self, kind: ChunkKind, flags: u8, body: &[u8]) {
        let sequence = self.loose_sequence;
        self.loose_sequence = self.loose_sequence.wrapping_add(1);
        let start = self.out.len();
        self.out.resize(start + ALIGNMENT, 0);
        self.out.extend_from_slice(body);
        self.frame(start, kind, flags, ChunkHeader::<LittleEndian>::NO_STREAM, sequence);
    }

    /// Makes a chunk of the body that stands at the end of `out`, behind room for its header at `start`.
    fn frame(&mut self, start: usize, kind: ChunkKind, flags: u8, stream: u32, sequence: u32) {
        let body_len = self.out.len() - start - ALIGNMENT;
        let total_len = (ALIGNMENT + body_len).next_multiple_of(ALIGNMENT);
        self.out.resize(start + total_len, 0);
        let body_crc = crc32fast::hash(self.out.get(start + ALIGNMENT..).unwrap_or_default());
        let frame = Frame { kind, flags, stream, sequence, total_len, body_len, body_crc };
        let salt = self.options.trace_uuid;
        let header = match self.options.order {
            ByteOrder::Little => frame.header::<LittleEndian>(salt),
            ByteOrder::Big => frame.header::<BigEndian>(salt),
        };
        if let Some(place) = self.out.get_mut(start..start + ALIGNMENT) {
            place.copy_from_slice(&header);
        }
        self.file_len += total_len as u64;
        self.chunk_count += 1;
    }
}
