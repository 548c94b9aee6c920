//! Fields of the current event.

use core::ffi::c_char;
use core::mem::MaybeUninit;

use kmt_format::kernel::{Field, FieldKind};
use kmt_format::read::Event;
use kmt_format::schema::Role;

use super::error::{guarded, unfailing};
use super::events::{Events, put};
use super::text::{fill, string};
use super::trace::given;

/// Type of a field's value.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// There is no such field.
    None = 0,
    /// A number without sign: `kmt_unsigned`.
    Unsigned = 1,
    /// A number with sign: `kmt_signed`.
    Signed = 2,
    /// Text: `kmt_bytes`.
    Text = 3,
    /// Numbers or a structure, in the traced kernel's byte order: `kmt_bytes`.
    Bytes = 4,
}

/// Number of the current event's fields, the common ones first.
#[unsafe(no_mangle)]
pub extern "C" fn kmt_field_count(events: Option<&Events>) -> u32 {
    unfailing(0, || event(events).map_or(0, |e| u32::try_from(e.class().fields.len()).unwrap_or(0)))
}

/// Index of the field of that name, such as "bytes_req"; -1 if the current event has none. The same for all events of
/// a class.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kmt_field_named(events: Option<&Events>, name: *const c_char) -> i32 {
    guarded(-1, || {
        // SAFETY: the caller promises a string.
        let name = unsafe { string(name, "the name")?.to_bytes() };
        let index =
            event(events).and_then(|e| e.class().fields.iter().position(|f| f.name.as_bytes() == name));
        Ok(number(index))
    })
}

/// Index of the first field with that role, such as KMT_ROLE_BYTES_REQ, which does not depend on the kernel version; -1
/// if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn kmt_field_with(events: Option<&Events>, role: u16) -> i32 {
    unfailing(-1, || number(event(events).and_then(|e| e.class().field_with(Role(role)))))
}

/// Writes the name of a field, as `kmt_symbol` writes text; 0 if there is no such field.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kmt_field_name(
    events: Option<&Events>,
    field: i32,
    buffer: *mut c_char,
    size: usize,
) -> usize {
    unfailing(0, || {
        let name = info(events, field).map_or("", |f| &f.name);
        // SAFETY: the caller promises the buffer.
        unsafe { fill(buffer, size, name.as_bytes()) }
    })
}

/// Type of a field's value.
#[unsafe(no_mangle)]
pub extern "C" fn kmt_field_kind(events: Option<&Events>, field: i32) -> Kind {
    unfailing(Kind::None, || match info(events, field) {
        None => Kind::None,
        Some(f) if f.kind == FieldKind::Scalar && f.signed => Kind::Signed,
        Some(f) if f.kind == FieldKind::Scalar => Kind::Unsigned,
        Some(f) if f.is_text() => Kind::Text,
        Some(_) => Kind::Bytes,
    })
}

/// The number in a field: its 64 bits where it has a sign. False, and `value` as it was, if it is not a number, or the
/// index is -1.
#[unsafe(no_mangle)]
pub extern "C" fn kmt_unsigned(
    events: Option<&Events>,
    field: i32,
    value: Option<&mut MaybeUninit<u64>>,
) -> bool {
    unfailing(false, || put(value, uint(events, field)))
}

/// The number in a field, with its sign; likewise.
#[unsafe(no_mangle)]
pub extern "C" fn kmt_signed(
    events: Option<&Events>,
    field: i32,
    value: Option<&mut MaybeUninit<i64>>,
) -> bool {
    unfailing(false, || put(value, uint(events, field).map(|number| number as i64)))
}

/// The bytes of text or an array, and their number; NULL if it is a number, or the index is -1. Valid until `kmt_next`.
/// Text has no NUL at its end.
#[unsafe(no_mangle)]
pub extern "C" fn kmt_bytes(
    events: Option<&Events>,
    field: i32,
    size: Option<&mut MaybeUninit<usize>>,
) -> *const u8 {
    unfailing(core::ptr::null(), || {
        let bytes = usize::try_from(field).ok().and_then(|index| {
            let value = event(events)?.get(index)?;
            if value.field().is_text() { value.as_text().ok() } else { value.as_bytes().ok() }
        });
        given(bytes, size)
    })
}

fn event(events: Option<&Events>) -> Option<&Event<'_>> {
    events?.inner.event()
}

fn uint(events: Option<&Events>, field: i32) -> Option<u64> {
    event(events)?.uint(usize::try_from(field).ok()?)
}

fn info(events: Option<&Events>, field: i32) -> Option<&Field> {
    event(events)?.class().fields.get(usize::try_from(field).ok()?)
}

fn number(index: Option<usize>) -> i32 {
    index.and_then(|index| i32::try_from(index).ok()).unwrap_or(-1)
}
