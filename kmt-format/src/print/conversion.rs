//! One conversion of a format string, with its value.

use super::env::PrintEnv;
use super::eval::Evaluated;
use super::pointer;
use super::printf::{integer, padded, text};
use crate::print_fmt::Spec;

/// Longest text of one event in bytes: two of the largest pages, which is what a kernel has room for (`TRACE_SEQ_SIZE`,
/// include/linux/trace_seq.h). Widths of a hostile `print fmt` multiply its length otherwise.
pub(super) const TEXT_MAX: usize = 128 << 10;

/// Writes a value by its conversion.
pub(super) fn conversion(
    out: &mut Vec<u8>,
    spec: &Spec,
    width: Option<i32>,
    precision: Option<i32>,
    value: &Evaluated<'_>,
    env: &PrintEnv<'_>,
) {
    // A negative width from an argument means left-aligned.
    let mut spec = std::borrow::Cow::Borrowed(spec);
    if width.is_some_and(|w| w < 0) {
        spec.to_mut().left = true;
    }
    let width = width.map_or(0, |w| w.unsigned_abs() as usize).min(1 << 16);
    let precision = precision.and_then(|p| usize::try_from(p).ok()).map(|p| p.min(1 << 16));
    let done = match (spec.conversion, value) {
        (b'p', Evaluated::Int(value, _)) => pointer::address(out, &spec, width, *value, env),
        (b'p', Evaluated::Null) => pointer::address(out, &spec, width, 0, env),
        (b'p', Evaluated::Bytes(bytes)) => pointer::bytes(out, &spec, width, bytes, env),
        (b's', Evaluated::Bytes(bytes)) => {
            text(out, &spec, width, precision, bytes);
            true
        }
        (b's', Evaluated::Null) => {
            text(out, &spec, width, precision, b"(null)");
            true
        }
        // A string outside the event: the kernel lists constant ones.
        (b's', Evaluated::Int(address, _)) => match env.printk_formats.get(address) {
            Some(found) => {
                text(out, &spec, width, precision, found);
                true
            }
            None => false,
        },
        (_, Evaluated::Int(value, _)) if spec.is_integer() => {
            integer(out, &spec, width, precision, *value, env.long_size as u8);
            true
        }
        (_, Evaluated::Null) if spec.is_integer() => {
            integer(out, &spec, width, precision, 0, env.long_size as u8);
            true
        }
        _ => false,
    };
    if !done {
        match value {
            Evaluated::Unknown(what) => env.add_unresolved(what),
            _ => env.add_unresolved(&format!(
                "%{}{} of a value that is not in the event",
                spec.conversion as char,
                String::from_utf8_lossy(&spec.extension)
            )),
        }
        padded(out, spec.left, width, b"?");
    }
}
