//! One event, with its fields.

use core::ops::Deref;
use std::rc::Rc;
use std::sync::{Arc, LazyLock};

use super::contents::Contents;
use super::event_chunk::Descriptor;
use super::value::{FieldKey, Value};
use super::{EventChunk, Record, Resolved, Schema};
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::{ByteOrder, Field, FieldKind, unused_bits};
use crate::schema::{EventClass, Meaning, Place, Role, Shape, Transform};

/// One event of a trace. Fields are read from the file when they are needed.
///
/// ```
/// # use kmt_format::{read::Trace, schema::Role, Result};
/// fn waste(file: &[u8]) -> Result<u64> {
///     let trace = Trace::open(file)?;
///     let mut waste = 0;
///     for event in trace.events()? {
///         if event.class().name == "kmalloc" {
///             // A field by its name or by its role.
///             let requested = event.field("bytes_req")?.as_u64()?;
///             waste += event.field(Role::BYTES_ALLOC)?.as_u64()? - requested;
///         }
///     }
///     Ok(waste)
/// }
/// # let file = kmt_format::example()?;
/// # assert_eq!(waste(&file)?, 30);
/// # Ok::<(), kmt_format::Error>(())
/// ```
///
/// An event stays on its thread; its chunk may go to another one, with all of its events:
///
/// ```
/// use kmt_format::read::{Event, Trace};
///
/// fn pids(file: &[u8]) -> kmt_format::Result<Vec<i32>> {
///     let trace = Trace::open(file)?;
///     let chunks: Vec<_> = trace.streams().values().flat_map(|stream| &stream.chunks).collect();
///     let chunks = chunks.into_iter().map(|(chunk, _)| trace.read(chunk)).collect::<kmt_format::Result<Vec<_>>>()?;
///     let schema = trace.schema();
///     Ok(std::thread::scope(|scope| {
///         let pids = move |chunk| (0..).map_while(|i| Some(Event::new(schema, &chunk, i)?.pid())).collect();
///         let threads: Vec<_> = chunks.into_iter().map(|chunk| scope.spawn(move || pids(chunk))).collect();
///         threads.into_iter().flat_map(|thread| -> Vec<i32> { thread.join().unwrap_or_default() }).collect()
///     }))
/// }
/// # let file = kmt_format::example()?;
/// # assert!(!pids(&file)?.is_empty());
/// # Ok::<(), kmt_format::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Event<'t> {
    chunk: Held<'t>,
    class: &'t EventClass,
    shape: &'t Shape,
    descriptor: Descriptor,
    record: Record,
    time: u64,
    /// For names of tasks and symbols; `None` where only the schema is at hand.
    contents: Option<&'t Contents<'t>>,
}

/// The chunk of an event: an iterator over a whole trace shares it with its events, since it moves on to other chunks.
#[derive(Debug, Clone)]
pub(super) enum Held<'t> {
    /// With the data of the event's descriptor.
    Borrowed(&'t EventChunk<'t>, &'t [u8]),
    Shared(Rc<EventChunk<'t>>),
}

impl<'t> Deref for Held<'t> {
    type Target = EventChunk<'t>;

    #[inline]
    fn deref(&self) -> &EventChunk<'t> {
        match self {
            Self::Borrowed(chunk, _) => chunk,
            Self::Shared(chunk) => chunk,
        }
    }
}

/// Class and shape of events that no schema describes: they have no fields.
static UNKNOWN: LazyLock<(EventClass, Shape)> = LazyLock::new(|| {
    let class = EventClass {
        id: 0,
        system: String::new(),
        name: String::new(),
        meaning: Meaning::OTHER,
        fields: Arc::new([]),
        roles: Arc::new([]),
        common_count: 0,
        format_text: Arc::from(""),
        print_fmt: 0..0,
    };
    (class, Shape { class: usize::MAX, slots: Arc::new([]), descriptor_len: 0, payload_len: 0 })
});

#[cold]
fn unknown<'t>() -> (&'t EventClass, &'t Shape) {
    let (class, shape) = &*UNKNOWN;
    (class, shape)
}

impl<'t> Event<'t> {
    /// The event of that index in a chunk; `None` if there is none. `schema` is that of the same file.
    #[inline]
    pub fn new(schema: &'t Schema, chunk: &'t EventChunk<'t>, index: usize) -> Option<Self> {
        if index >= chunk.info().event_count as usize {
            return None;
        }
        Self::borrowed(chunk, schema, None, index)
    }

    /// The event of that index, which is one of the chunk.
    #[inline(always)]
    pub(super) fn borrowed(
        chunk: &'t EventChunk<'t>,
        schema: &'t Schema,
        contents: Option<&'t Contents<'t>>,
        index: usize,
    ) -> Option<Self> {
        let hold = |descriptor| Held::Borrowed(chunk, chunk.data_of(descriptor).unwrap_or_default());
        Self::of(chunk, hold, schema, contents, index)
    }

    /// The event of that index, which is one of the chunk; `hold` decides how the event keeps its chunk. Always inlined:
    /// an event of 90 bytes would be copied three times on its way out.
    #[inline(always)]
    pub(super) fn of(
        chunk: &EventChunk<'t>,
        hold: impl FnOnce(Descriptor) -> Held<'t>,
        schema: &'t Schema,
        contents: Option<&'t Contents<'t>>,
        index: usize,
    ) -> Option<Self> {
        let record = chunk.record(index)?;
        let time = chunk.time_of(index, record.time_offset);
        let descriptor = chunk.descriptor(record.descriptor.into()).unwrap_or_default();
        // Reading the chunk has found both: an event without them is kept all the same, never left out.
        let shape = schema.shape(descriptor.shape as usize);
        let (class, shape) = shape.and_then(|s| Some((schema.class(s.class)?, s))).unwrap_or_else(unknown);
        Some(Self { chunk: hold(descriptor), class, shape, descriptor, record, time, contents })
    }

    /// CPU that recorded the event.
    pub fn cpu(&self) -> u32 {
        self.chunk.cpu
    }

    /// Time in the clock's unit.
    pub fn time(&self) -> u64 {
        self.time
    }

    /// The class.
    pub fn class(&self) -> &'t EventClass {
        self.class
    }

    /// Index of the class in the schema.
    pub fn class_index(&self) -> usize {
        self.shape.class
    }

    /// The record.
    pub fn record(&self) -> Record {
        self.record
    }

    /// Byte order of the traced kernel, in which [`Event::bytes`] holds numbers.
    pub fn order(&self) -> ByteOrder {
        self.chunk.order
    }

    /// The number in that field, zero-extended, or sign-extended if the field is signed; `None` for arrays.
    #[inline]
    pub fn uint(&self, field: usize) -> Option<u64> {
        let slot = self.shape.slots.get(field)?;
        let info = self.class.fields.get(field)?;
        if info.kind != FieldKind::Scalar {
            return None;
        }
        let stored = self.stored(field)?;
        let value = match slot.transform {
            Transform::None if info.signed => sign_extend(stored, slot.stored),
            Transform::None => stored,
            Transform::BeforeTime => wrapped(self.time.wrapping_sub(stored), info),
            Transform::BeforeField(base) => wrapped(self.base_value(base.into())?.wrapping_sub(stored), info),
        };
        Some(value)
    }

    /// The value that a difference starts from; `None` if that is a difference of a field itself, or no number.
    #[inline(never)]
    fn base_value(&self, base: usize) -> Option<u64> {
        let is_difference = matches!(self.shape.slots.get(base)?.transform, Transform::BeforeField(_));
        if is_difference { None } else { self.uint(base) }
    }

    /// The number in the first field with that role.
    pub fn uint_with(&self, role: Role) -> Option<u64> {
        self.uint(self.class.field_with(role)?)
    }

    /// The bytes of an array field, in the traced kernel's byte order; `None` for scalars.
    ///
    /// Fixed text comes without the NUL bytes that fill it up; dynamic text as the kernel stored it, NUL included.
    pub fn bytes(&self, field: usize) -> Option<&[u8]> {
        if matches!(self.class.fields.get(field)?.kind, FieldKind::Scalar | FieldKind::Opaque(_)) {
            return None;
        }
        self.chunk.array(self.stored(field)?)
    }

    /// The text of an array field, without its closing NUL.
    pub fn text(&self, field: usize) -> Option<&[u8]> {
        let bytes = self.bytes(field)?;
        bytes.split(|&b| b == 0).next()
    }

    /// The event as a record of the kernel, the common fields first: what [`Writer::add_event`](crate::write::Writer::add_event)
    /// takes, for tools that write another file of it. `record` is cleared first.
    ///
    /// Every field is where and what it was. Dynamic arrays follow the others in the order of their fields, as the
    /// kernel lays them out; bytes that no field claims are zero.
    ///
    /// ```
    /// use kmt_format::read::Trace;
    /// use kmt_format::write::{Writer, WriterOptions};
    /// # let file = kmt_format::example()?;
    /// let trace = Trace::open(&file)?;
    /// let mut writer = Writer::new(WriterOptions::new(trace.header().order, trace.header().long_size))?;
    /// for (_, class) in trace.schema().classes() {
    ///     writer.add_format(&class.system, &class.format_text)?;
    /// }
    /// let mut record = Vec::new();
    /// for event in trace.events()?.filter(|event| event.cpu() == 1) {
    ///     event.to_record(&mut record);
    ///     writer.add_event(event.cpu(), event.time(), &record)?;
    /// }
    /// let slice = writer.finish()?;
    /// assert_eq!(Trace::open(&slice)?.event_count(), 2);
    /// # Ok::<(), kmt_format::Error>(())
    /// ```
    pub fn to_record(&self, record: &mut Vec<u8>) {
        record.clear();
        let order = self.order();
        let end = |f: &Field| (f.offset as usize).saturating_add(f.size as usize);
        let fixed_len = self.class.fields.iter().map(end).max().unwrap_or(0);
        record.resize(fixed_len, 0);
        for (index, field) in self.class.fields.iter().enumerate() {
            let (offset, size) = (field.offset as usize, field.size as usize);
            let bytes = self.bytes(index).unwrap_or_default();
            match field.kind {
                FieldKind::Scalar => {
                    let mut number = Vec::with_capacity(8);
                    order.push(&mut number, self.uint(index).unwrap_or(0), size.min(8));
                    put(record, offset, &number);
                }
                FieldKind::Opaque(_) => {}
                FieldKind::Array { .. } | FieldKind::Tail => put(record, offset, bytes),
                FieldKind::DataLoc | FieldKind::RelLoc => {
                    let start = record.len();
                    let from = if field.kind == FieldKind::RelLoc { offset.saturating_add(size) } else { 0 };
                    let place = (start.saturating_sub(from) & 0xffff) | bytes.len() << 16;
                    let mut locator = Vec::with_capacity(4);
                    order.push(&mut locator, place as u64, 4);
                    put(record, offset, &locator);
                    record.extend_from_slice(bytes);
                }
            }
        }
    }

    /// The call chain of the event: of `ftrace:kernel_stack`, or of any event with such a field.
    ///
    /// ```
    /// use kmt_format::read::Trace;
    /// # let file = kmt_format::example()?;
    /// let trace = Trace::open(&file)?;
    /// let stack = trace.events()?.find_map(|event| event.stack().map(|stack| stack.addresses().collect::<Vec<_>>()));
    /// assert_eq!(stack, Some(vec![0xffff_ffff_8100_0110, 0xffff_ffff_8100_0220]));
    /// # Ok::<(), kmt_format::Error>(())
    /// ```
    pub fn stack(&self) -> Option<Stack<'_>> {
        let field = self.class.field_with(Role::STACK)?;
        let id = self.stored(field)?;
        Some(Stack {
            id,
            bytes: self.bytes(field)?,
            order: self.chunk.order,
            long_size: self.chunk.long_size(),
        })
    }

    /// The value of a field, by its name, its role, or its index in the class.
    ///
    /// # Errors
    ///
    /// Returns an error if the event has no such field; [`Event::get`] gives `None` then.
    #[inline]
    pub fn field<K: FieldKey>(&self, key: K) -> Result<Value<'_>> {
        self.get(&key).ok_or_else(|| {
            let event = format!("{}:{}", self.class.system, self.class.name);
            Error::new(ErrorKind::NoField { event, field: key.to_text() })
        })
    }

    /// The value of a field that an event may lack, by its name, its role, or its index in the class.
    #[inline]
    pub fn get<K: FieldKey>(&self, key: K) -> Option<Value<'_>> {
        let index = key.index_in(self.class)?;
        let field = self.class.fields.get(index)?;
        match field.kind {
            FieldKind::Scalar => Some(Value::number(field, self.uint(index)?)),
            _ => Some(Value::array(field, self.bytes(index)?)),
        }
    }

    /// Meaning of the class.
    pub fn meaning(&self) -> Meaning {
        self.class.meaning
    }

    /// Name of the task that was running, at the time of the event: see
    /// [`Metadata::comm`](super::Metadata::comm). `None` if unknown, or the event was made of a chunk and
    /// a schema alone.
    pub fn comm(&self) -> Option<&[u8]> {
        self.contents?.metadata.comm(self.pid(), self.time)
    }

    /// The symbol that holds the address in the first field with that role, such as [`Role::CALL_SITE`]. `None` if there
    /// is no such field or symbol, or the event was made of a chunk and a schema alone.
    pub fn symbol(&self, role: Role) -> Option<Resolved<'t>> {
        self.contents?.symbols.as_ref()?.resolve(self.uint_with(role)?)
    }

    /// Thread that was running, from the common fields.
    pub fn pid(&self) -> i32 {
        self.uint_with(Role::PID).unwrap_or(0) as i32
    }

    #[inline]
    fn descriptor_data(&self) -> Option<&[u8]> {
        match &self.chunk {
            Held::Borrowed(_, data) => Some(data),
            Held::Shared(chunk) => chunk.data_of(self.descriptor),
        }
    }

    #[inline]
    fn stored(&self, field: usize) -> Option<u64> {
        let slot = self.shape.slots.get(field)?;
        let (offset, len) = (slot.offset as usize, usize::from(slot.stored));
        let order = self.chunk.order;
        match slot.place {
            Place::Opaque { .. } => None,
            Place::ClassId => Some(u64::from(self.class.id)),
            Place::Descriptor => order.uint_at(self.descriptor_data()?, offset, len),
            Place::Value => {
                let shifted = self.record.value.checked_shr(slot.offset.saturating_mul(8))?;
                Some(shifted & (u64::MAX >> unused_bits(len as u32)))
            }
            Place::Context => order.uint_at(self.chunk.context(self.record.context.into())?, offset, len),
            Place::Payload => {
                let payload = self.chunk.payload(self.record.value, self.shape.payload_len)?;
                order.uint_at(payload, offset, len)
            }
        }
    }
}

/// Writes bytes at an offset of a record, which grows where they reach beyond its end.
fn put(record: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset.saturating_add(bytes.len());
    if record.len() < end {
        record.resize(end, 0);
    }
    if let Some(place) = record.get_mut(offset..end) {
        place.copy_from_slice(bytes);
    }
}

/// A difference, modulo what the field holds.
fn wrapped(value: u64, field: &Field) -> u64 {
    let unused = unused_bits(field.size);
    if field.signed { ((value << unused) as i64 >> unused) as u64 } else { value << unused >> unused }
}

#[inline]
fn sign_extend(value: u64, bytes: u8) -> u64 {
    let shift = unused_bits(bytes.into());
    ((value << shift) as i64 >> shift) as u64
}

/// Return addresses, the innermost first.
///
/// A chunk keeps each stack once, for any number of events that have it: its heap is the stack table.
#[derive(Debug, Clone, Copy)]
pub struct Stack<'t> {
    id: u64,
    bytes: &'t [u8],
    order: ByteOrder,
    long_size: usize,
}

impl<'t> Stack<'t> {
    /// Equal for equal stacks of one chunk, where its writer kept each once; no meaning beyond the chunk.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The addresses. Bytes at the end that are no whole address are left out.
    pub fn addresses(&self) -> impl Iterator<Item = u64> + use<'t> {
        let order = self.order;
        self.bytes.chunks_exact(self.long_size.max(1)).map(move |bytes| order.uint(bytes))
    }
}
