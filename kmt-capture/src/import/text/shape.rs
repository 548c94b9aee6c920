//! Layouts of records that are made of text.

use super::known::Names;

/// How a value is written, and so how a field holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A function, `FUNCTION+0x1/0x2`.
    Function,
    /// A hexadecimal number, with 0x or without.
    Hex { prefixed: bool },
    /// A pointer.
    Pointer,
    /// A decimal number, maybe with B for bytes behind it.
    Decimal { bytes: bool },
    /// Allocation flags by name.
    Gfp,
    /// true or false.
    Truth,
    /// A function without an offset.
    Name,
    /// One of some names, or several of them.
    Names(&'static Names),
    /// Anything else.
    Text,
}

/// One field.
#[derive(Debug)]
pub(super) struct Field {
    /// Its name in the kernel.
    pub(super) key: Vec<u8>,
    /// Its name in the file: unique within the event, and not that of a common field.
    pub(super) name: String,
    /// How its values are written.
    pub(super) form: Form,
    /// Offset in bytes.
    pub(super) offset: usize,
    /// Size in bytes.
    pub(super) size: usize,
}

/// One layout of one event.
#[derive(Debug)]
pub(super) struct Shape {
    /// `common_type` of its records.
    pub(super) id: u16,
    /// Its fields, in the order of the text.
    pub(super) fields: Vec<Field>,
    /// Size in bytes without dynamic data.
    pub(super) fixed_len: usize,
}
