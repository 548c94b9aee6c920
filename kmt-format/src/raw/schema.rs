//! The body of a schema chunk. Spec section "SCHM".

use zerocopy::{ByteOrder, FromBytes, Immutable, IntoBytes, KnownLayout, U16, U32, Unaligned};

/// Head of a schema chunk: four tables and a heap, one after the other.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct SchemaHead<O: ByteOrder> {
    /// Length of this head in bytes; a later minor version may append fields.
    pub head_len: U32<O>,
    /// Index of the first class in `classes`, counted over the whole file.
    pub first_class: U32<O>,
    /// Index of the first shape in `shapes`, counted over the whole file.
    pub first_shape: U32<O>,
    /// Number of classes.
    pub class_count: U32<O>,
    /// Number of fields.
    pub field_count: U32<O>,
    /// Number of shapes.
    pub shape_count: U32<O>,
    /// Number of slots.
    pub slot_count: U32<O>,
    /// Length of the heap in bytes.
    pub heap_len: U32<O>,
    /// Bytes from one class to the next; a later minor version may append fields to the rows.
    pub class_len: U16<O>,
    /// Bytes from one field to the next; a later minor version may append fields to the rows.
    pub field_len: U16<O>,
    /// Bytes from one shape to the next; a later minor version may append fields to the rows.
    pub shape_len: U16<O>,
    /// Bytes from one slot to the next; a later minor version may append fields to the rows.
    pub slot_len: U16<O>,
}

/// A string in the heap of the same chunk.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct StringRef<O: ByteOrder> {
    /// Offset from the start of the heap, in bytes.
    pub offset: U32<O>,
    /// Length in bytes.
    pub len: U32<O>,
}

/// An event class: one tracepoint as the traced kernel described it.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct ClassRow<O: ByteOrder> {
    /// `common_type` of its records.
    pub id: U16<O>,
    /// Meaning of the event; see the registry.
    pub meaning: U16<O>,
    /// Number of fields.
    pub field_count: U16<O>,
    /// Number of fields that are common to all events; they come first.
    pub common_count: U16<O>,
    /// Index of the first field in this chunk's fields.
    pub first_field: U32<O>,
    /// System, such as `kmem`.
    pub system: StringRef<O>,
    /// Name, such as `kmalloc`.
    pub name: StringRef<O>,
    /// The kernel's whole `format` file.
    pub format_text: StringRef<O>,
    /// The text after `print fmt: `; is within `format_text`.
    pub print_fmt: StringRef<O>,
}

/// A field of an event class.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct FieldRow<O: ByteOrder> {
    /// Name.
    pub name: StringRef<O>,
    /// C type as the kernel prints it.
    pub type_text: StringRef<O>,
    /// Offset in the kernel's record, in bytes.
    pub offset: U32<O>,
    /// Size in the kernel's record, in bytes.
    pub size: U32<O>,
    /// 0 scalar, 1 fixed array, 2 `__data_loc`, 3 `__rel_loc`, 4 array to the end of the record.
    pub kind: u8,
    /// 1 if (the elements are) signed.
    pub signed: u8,
    /// Size of one element, in bytes.
    pub element_size: u8,
    /// Written as 0, ignored by readers.
    pub reserved: u8,
    /// Meaning of the field; see the registry.
    pub role: U16<O>,
    /// Written as 0, ignored by readers.
    pub reserved_b: U16<O>,
}

/// A way to store the fields of one class: a slot for each of its fields, in order.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct ShapeRow<O: ByteOrder> {
    /// Index of the class, counted over the whole file.
    pub class: U32<O>,
    /// Index of the first slot in this chunk's slots.
    pub first_slot: U32<O>,
    /// Bytes of descriptor data.
    pub descriptor_len: U32<O>,
    /// Bytes of payload in the heap; 0 if `value` is not an offset of a payload.
    pub payload_len: U32<O>,
}

/// Storage of one field of a shape.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct SlotRow<O: ByteOrder> {
    /// 0 the class id, 1 context, 2 descriptor, 3 value word, 4 payload.
    pub place: u8,
    /// Bytes stored: 1, 2, 4 or 8; 4 for the heap offset of an array.
    pub stored: u8,
    /// 0 none, 1 time of the record minus stored, 2 field `base` minus stored.
    pub transform: u8,
    /// Index of the field that transform 2 starts from.
    pub base: u8,
    /// Bytes from the start of the place; in the value word, from its least significant byte.
    pub offset: U32<O>,
}

const _: () = assert!(size_of::<SchemaHead<zerocopy::LE>>() == 40);
const _: () = assert!(size_of::<ClassRow<zerocopy::LE>>() == 44);
const _: () = assert!(size_of::<FieldRow<zerocopy::LE>>() == 32);
const _: () = assert!(size_of::<ShapeRow<zerocopy::LE>>() == 16);
const _: () = assert!(size_of::<SlotRow<zerocopy::LE>>() == 8);
