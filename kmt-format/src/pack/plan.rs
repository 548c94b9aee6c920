//! Steps to take the records of one event class apart, computed once.

use std::sync::OnceLock;

use super::interner::partial_word;
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::{ByteOrder, FieldKind};
use crate::print_fmt::code_fields;
use crate::schema::{EventClass, Place, Role, SHAPE_COMPACT, Shape, Transform, shapes_of};

/// A run of bytes of the kernel's record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment {
    pub offset: u32,
    pub len: u32,
}

/// Up to eight bytes of the kernel's record, as one word of a key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    /// Offset of the eight bytes that end with these bytes.
    from: usize,
    /// Shift, so that only these bytes are left.
    shift: u32,
    /// The bytes themselves, where fewer than eight bytes end with them.
    short: Segment,
}

impl Load {
    fn new(offset: u32, len: u32) -> Self {
        let end = (offset + len) as usize;
        let (from, shift) = end.checked_sub(8).map_or((usize::MAX - 8, 0), |from| (from, 64 - 8 * len));
        Self { from, shift, short: Segment { offset, len } }
    }

    /// The bytes of the record.
    pub fn segment(self) -> Segment {
        self.short
    }

    /// The number, in the byte order of the record.
    #[inline]
    pub fn number(self, record: &[u8], order: ByteOrder) -> u64 {
        // For every event: one load of constant length, where `ByteOrder::uint` branches on the length.
        let word = self.word(record);
        match order {
            ByteOrder::Little => word,
            ByteOrder::Big => word.swap_bytes() >> (64 - 8 * self.short.len),
        }
    }

    /// The word. The record holds at least the bytes of the load.
    #[inline]
    pub fn word(self, record: &[u8]) -> u64 {
        match record.get(self.from..self.from + 8).and_then(|b| <[u8; 8]>::try_from(b).ok()) {
            Some(bytes) => u64::from_le_bytes(bytes) >> self.shift,
            None => {
                let start = self.short.offset as usize;
                partial_word(record.get(start..start + self.short.len as usize).unwrap_or(&[]))
            }
        }
    }
}

/// The loads that cover these segments.
fn loads(segments: &[Segment]) -> Vec<Load> {
    let mut out = Vec::new();
    for segment in segments {
        let mut at = 0;
        while at < segment.len {
            let len = (segment.len - at).min(8);
            out.push(Load::new(segment.offset + at, len));
            at += len;
        }
    }
    out
}

/// Source of the value word of the compact and wide shapes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ValuePlan {
    /// No field moves.
    Zero,
    /// The scalar there.
    Field(Load),
    /// Entry and return time of a function, 8 bytes each.
    Timed { entry: Segment, returned: Segment },
}

/// Location of the contents of an array field.
#[derive(Debug, Clone)]
pub(crate) struct ArrayPlan {
    /// Index of the field.
    pub field: usize,
    offset: u32,
    size: u32,
    kind: FieldKind,
    /// Text that ends at its first NUL, within a fixed size.
    is_fixed_text: bool,
    /// The field with the number of addresses of a stack.
    depth: Option<Segment>,
}

impl ArrayPlan {
    fn new(class: &EventClass, field: usize) -> Option<Self> {
        let info = class.fields.get(field)?;
        let is_stack = class.roles.get(field) == Some(&Role::STACK);
        let depth = class.field_with(Role::STACK_DEPTH).filter(|_| is_stack);
        let depth = depth.and_then(|d| class.fields.get(d)).filter(|f| f.kind == FieldKind::Scalar);
        let depth = depth.map(|f| Segment { offset: f.offset, len: f.size });
        // Addresses are no text, also in a field of a text type.
        let is_fixed_text = info.is_fixed_text() && depth.is_none();
        Some(Self { field, offset: info.offset, size: info.size, kind: info.kind, is_fixed_text, depth })
    }

    /// The contents, cut to what the record holds.
    ///
    /// A fixed array of plain `char` ends at its first NUL; what the kernel left after it is filled with NUL.
    #[inline]
    pub fn bytes<'r>(&self, record: &'r [u8], order: ByteOrder, long_size: usize) -> &'r [u8] {
        let start = self.offset as usize;
        let (from, len) = match (self.kind, self.depth) {
            (FieldKind::DataLoc | FieldKind::RelLoc, _) => {
                // Before 2.6.39 the locator had 2 bytes and no length; nothing here needs to read those.
                let locator = order.uint_at(record, start, 4).unwrap_or(0);
                let base = if self.kind == FieldKind::RelLoc { start + 4 } else { 0 };
                (base + (locator & 0xffff) as usize, (locator >> 16) as usize)
            }
            (_, Some(depth)) => (start, self.stack_len(depth, record, order, long_size)),
            (FieldKind::Tail, _) => (start, record.len().saturating_sub(start)),
            (FieldKind::Scalar | FieldKind::Array { .. } | FieldKind::Opaque(_), None) => {
                (start, self.size as usize)
            }
        };
        let from = from.min(record.len());
        let bytes = record.get(from..record.len().min(from + len)).unwrap_or(&[]);
        if self.is_fixed_text {
            let text_len = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
            return bytes.get(..text_len).unwrap_or(bytes);
        }
        bytes
    }

    /// Bytes of `ftrace:kernel_stack`'s `caller`, whose real length is in `size` and not in the format file.
    ///
    /// Old kernels reserve more than they fill, newer ones more or less than the 8 entries of the format
    /// (`__ftrace_trace_stack`, kernel/trace/trace.c 4.4 to 7.2).
    fn stack_len(&self, depth: Segment, record: &[u8], order: ByteOrder, long_size: usize) -> usize {
        let count = order.uint_at(record, depth.offset as usize, depth.len as usize).unwrap_or(0) as usize;
        let room = record.len().saturating_sub(self.offset as usize) / long_size;
        count.min(room) * long_size
    }
}

/// Position of an address of code, or of a stack of them, in a record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CodePlan {
    /// Index in `arrays`; beyond them: it is the scalar.
    pub array: usize,
    pub scalar: Segment,
    /// True if the address before it is looked up too.
    pub before: bool,
}

/// One event class, ready for writing.
#[derive(Debug, Clone)]
pub(crate) struct RecordPlan {
    pub class: EventClass,
    /// Indexed by `SHAPE_*`; the file's index of the first one is `first_shape`.
    pub shapes: [Shape; 3],
    pub index: usize,
    pub first_shape: usize,
    /// Bytes that make up the context.
    pub context: Vec<Segment>,
    /// Number of bytes that make up the context.
    pub context_len: u32,
    /// Bytes that make up the context, as words of a key.
    pub context_key: Vec<Load>,
    /// The scalars that make up the descriptor, as words of a key.
    pub key: Vec<Load>,
    /// Arrays, whose contents belong to the descriptor too.
    pub arrays: Vec<ArrayPlan>,
    pub value: ValuePlan,
    /// Addresses of code in the record, found on first use by parsing the print fmt. All belong to
    /// the descriptor or the payload.
    code: OnceLock<Vec<CodePlan>>,
    /// Shortest record that holds all fixed fields.
    pub record_len_min: usize,
}

impl RecordPlan {
    pub fn new(class: EventClass, index: usize, first_shape: usize, long_size: usize) -> Result<Self> {
        let shapes = shapes_of(&class, index, long_size);
        let compact = &shapes[SHAPE_COMPACT];
        let mut plan = Self {
            index,
            first_shape,
            context: Vec::new(),
            context_len: 0,
            context_key: Vec::new(),
            key: Vec::new(),
            arrays: Vec::new(),
            value: ValuePlan::Zero,
            code: OnceLock::new(),
            record_len_min: 0,
            shapes: [compact.clone(), shapes[1].clone(), shapes[2].clone()],
            class,
        };
        let mut timed = (None, None);
        let (mut key, mut arrays) = (Vec::new(), Vec::new());
        for (i, (field, slot)) in plan.class.fields.iter().zip(compact.slots.iter()).enumerate() {
            let segment = Segment { offset: field.offset, len: field.size };
            // The format of a kernel stack has 8 entries; the record has as many as the stack.
            let is_stack = plan.class.roles.get(i) == Some(&Role::STACK)
                && matches!(field.kind, FieldKind::Array { .. } | FieldKind::Tail);
            let is_fixed = !is_stack && !matches!(field.kind, FieldKind::Opaque(_));
            // A locator has 4 bytes, for any `size`.
            let is_locator = matches!(field.kind, FieldKind::DataLoc | FieldKind::RelLoc);
            let size = if is_locator { 4 } else { field.size as usize };
            let end = if is_fixed { field.offset as usize + size } else { 0 };
            plan.record_len_min = plan.record_len_min.max(end);
            let is_scalar = field.kind == FieldKind::Scalar;
            match (slot.place, slot.transform) {
                (Place::ClassId | Place::Opaque { .. }, _) => {}
                (Place::Context, _) if is_scalar => plan.context.push(segment),
                (Place::Context, _) => {
                    let what = "a common field is not a scalar";
                    return Err(Error::new(ErrorKind::KernelText { file: "format", what }));
                }
                (Place::Value, Transform::None) => {
                    plan.value = ValuePlan::Field(Load::new(segment.offset, segment.len))
                }
                (Place::Value, Transform::BeforeTime) => timed.1 = Some(segment),
                (Place::Value, Transform::BeforeField(_)) => timed.0 = Some(segment),
                _ if is_scalar => key.push(segment),
                _ => arrays.push(i),
            }
        }
        if let (Some(entry), Some(returned)) = timed {
            plan.value = ValuePlan::Timed { entry, returned };
        }
        plan.arrays = arrays.into_iter().filter_map(|i| ArrayPlan::new(&plan.class, i)).collect();
        plan.key = loads(&merged(&key));
        plan.context_len = plan.context.iter().map(|s| s.len).sum();
        plan.context_key = loads(&merged(&plan.context));
        Ok(plan)
    }

    /// Positions of addresses of code in its events.
    pub fn code(&self, long_size: usize) -> &[CodePlan] {
        self.code.get_or_init(|| self.find_code(long_size))
    }

    fn find_code(&self, long_size: usize) -> Vec<CodePlan> {
        let fields = code_fields(&self.class, long_size).into_iter();
        let plans = fields.filter_map(|code| {
            let field = self.class.fields.get(code.field)?;
            let array = self.arrays.iter().position(|array| array.field == code.field).unwrap_or(usize::MAX);
            let scalar = Segment { offset: field.offset, len: field.size };
            let is_plain = field.kind == FieldKind::Scalar && matches!(field.size, 4 | 8);
            let is_stored = code.field >= self.class.common_count;
            let before = code.before;
            (is_stored && (array != usize::MAX || is_plain)).then_some(CodePlan { array, scalar, before })
        });
        plans.collect()
    }

    /// Checks that the record holds all fixed fields.
    #[inline]
    pub fn check_len(&self, record: &[u8]) -> Result<()> {
        if record.len() < self.record_len_min {
            let what = "an event is shorter than the fields of its format";
            return Err(Error::new(ErrorKind::SubBuffer(what)));
        }
        Ok(())
    }
}

/// Neighbouring segments joined, so that a descriptor key is made of few copies.
fn merged(segments: &[Segment]) -> Vec<Segment> {
    let mut sorted = segments.to_vec();
    sorted.sort_by_key(|s| s.offset);
    let mut out: Vec<Segment> = Vec::with_capacity(sorted.len());
    for segment in sorted {
        match out.last_mut() {
            Some(last) if last.offset + last.len == segment.offset => last.len += segment.len,
            _ => out.push(segment),
        }
    }
    out
}
