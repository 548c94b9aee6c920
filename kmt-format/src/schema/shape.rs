//! Shapes: where a file keeps the fields of an event class.
//!
//! A class has three. *Compact* is tried first: what repeats goes into a descriptor, 8-byte numbers in 4 bytes, the
//! one moving field into the value word. *Wide* is the same at full width, for numbers that need it. *Payload* keeps
//! every field in the heap, for classes whose fields hardly ever repeat. Spec section "Shapes and slots".

use std::sync::Arc;

use super::{EventClass, Role};
use crate::kernel::{Field, FieldKind};

pub(crate) const SHAPE_COMPACT: usize = 0;
pub(crate) const SHAPE_WIDE: usize = 1;
pub(crate) const SHAPE_PAYLOAD: usize = 2;

/// The part of a chunk that keeps a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// Not stored: it is the id of the class.
    ClassId,
    /// The record's context: common fields.
    Context,
    /// The record's descriptor: fields that repeat.
    Descriptor,
    /// The record's value word.
    Value,
    /// The heap, at the offset that the value word gives.
    Payload,
    /// A place or a transform of these numbers, which a later version of the format describes: the field has no value
    /// here.
    Opaque {
        /// Number of the place.
        place: u8,
        /// Number of the transform.
        transform: u8,
    },
}

/// Conversion of the stored number to the field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transform {
    /// It is the field.
    None,
    /// The field is the record's time minus the stored number.
    BeforeTime,
    /// The field is another field minus the stored number.
    BeforeField(u8),
}

/// Storage of one field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Slot {
    /// The part of the chunk.
    pub place: Place,
    /// Bytes stored: 1, 2, 4 or 8. For arrays 4: the heap offset of a u32 length and the bytes.
    pub stored: u8,
    /// Conversion of the stored number to the field.
    pub transform: Transform,
    /// Bytes from the start of the place; in the value word, from its least significant byte.
    pub offset: u32,
}

/// A way to store the fields of one class.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shape {
    /// Index of the class.
    pub class: usize,
    /// A slot for each field of the class, in order.
    pub slots: Arc<[Slot]>,
    /// Bytes of descriptor data.
    pub descriptor_len: u32,
    /// Bytes of payload; 0 if the value word is no offset of a payload.
    pub payload_len: u32,
}

/// The shapes that the writer uses for a class, indexed by `SHAPE_*`.
pub(crate) fn shapes_of(class: &EventClass, index: usize, long_size: usize) -> [Shape; 3] {
    [
        repeating(class, index, long_size, true),
        repeating(class, index, long_size, false),
        payload(class, index),
    ]
}

struct Builder {
    context: u32,
    descriptor: u32,
    payload: u32,
    slots: Vec<Slot>,
}

impl Builder {
    fn push(&mut self, place: Place, stored: u32, transform: Transform, value_offset: u32) {
        let counter = match place {
            Place::Context => &mut self.context,
            Place::Descriptor => &mut self.descriptor,
            Place::Payload => &mut self.payload,
            Place::ClassId | Place::Value | Place::Opaque { .. } => {
                self.slots.push(Slot { place, stored: stored as u8, transform, offset: value_offset });
                return;
            }
        };
        self.slots.push(Slot { place, stored: stored as u8, transform, offset: *counter });
        *counter += stored;
    }

    fn finish(self, class: usize) -> Shape {
        Shape { class, slots: self.slots.into(), descriptor_len: self.descriptor, payload_len: self.payload }
    }
}

fn builder(class: &EventClass) -> Builder {
    let mut builder =
        Builder { context: 0, descriptor: 0, payload: 0, slots: Vec::with_capacity(class.fields.len()) };
    for (field, role) in class.fields.iter().zip(class.roles.iter()).take(class.common_count) {
        let place = match *role {
            _ if is_opaque(field) => UNKNOWN,
            Role::EVENT_ID if is_event_id(field) => Place::ClassId,
            _ => Place::Context,
        };
        builder.push(place, stored_size(field.kind, field.size), Transform::None, 0);
    }
    builder
}

/// Storage of a field of unknown kind: none.
const UNKNOWN: Place = Place::Opaque { place: u8::MAX, transform: 0 };

fn is_opaque(field: &Field) -> bool {
    matches!(field.kind, FieldKind::Opaque(_))
}

/// True if the field is the id at the start of every record; the role alone does not make a field that.
fn is_event_id(field: &Field) -> bool {
    field.kind == FieldKind::Scalar && (field.offset, field.size) == (0, 2)
}

/// Arrays are stored as a heap offset of 4 bytes.
fn stored_size(kind: FieldKind, size: u32) -> u32 {
    if kind == FieldKind::Scalar { size } else { 4 }
}

fn repeating(class: &EventClass, index: usize, long_size: usize, compact: bool) -> Shape {
    let mut builder = builder(class);
    let timed = timed_fields(class, long_size);
    let moving = class
        .fields
        .iter()
        .zip(class.roles.iter())
        .position(|(f, r)| r.is_moving() && f.kind == FieldKind::Scalar && f.size as usize <= long_size);
    for (i, field) in class.fields.iter().enumerate().skip(class.common_count) {
        let size = stored_size(field.kind, field.size);
        match timed {
            Some((_, returned)) if i == returned => {
                builder.push(Place::Value, 4, Transform::BeforeTime, 0);
            }
            Some((entry, returned)) if i == entry => {
                builder.push(Place::Value, 4, Transform::BeforeField(returned as u8), 4);
            }
            _ if is_opaque(field) => builder.push(UNKNOWN, 0, Transform::None, 0),
            _ if moving == Some(i) => builder.push(Place::Value, size, Transform::None, 0),
            // Addresses do not fit into 4 bytes on a 64-bit kernel; other longs nearly always do.
            _ if compact && size == 8 && field.kind == FieldKind::Scalar && !is_address(field, class, i) => {
                builder.push(Place::Descriptor, 4, Transform::None, 0);
            }
            _ => builder.push(Place::Descriptor, size, Transform::None, 0),
        }
    }
    builder.finish(index)
}

fn is_address(field: &Field, class: &EventClass, i: usize) -> bool {
    field.is_pointer()
        || class.roles.get(i) == Some(&Role::CALL_SITE)
        || matches!(field.name.as_str(), "ip" | "parent_ip" | "func" | "caller" | "function")
}

/// A function's entry and return time fit into one 8-byte value word, as two differences of 4 bytes.
fn timed_fields(class: &EventClass, long_size: usize) -> Option<(usize, usize)> {
    let entry = class.field_with(Role::ENTRY_TIME)?;
    let returned = class.field_with(Role::RETURN_TIME)?;
    let is_u64 = |f: &Field| f.kind == FieldKind::Scalar && f.size == 8;
    let both_u64 = [entry, returned].iter().all(|&i| class.fields.get(i).is_some_and(is_u64));
    // Common fields are in the context.
    let are_own = entry.min(returned) >= class.common_count;
    (long_size == 8 && both_u64 && are_own && returned < 256).then_some((entry, returned))
}

fn payload(class: &EventClass, index: usize) -> Shape {
    let mut builder = builder(class);
    for field in class.fields.iter().skip(class.common_count) {
        let place = if is_opaque(field) { UNKNOWN } else { Place::Payload };
        builder.push(place, stored_size(field.kind, field.size), Transform::None, 0);
    }
    builder.finish(index)
}
