//! The kernel's printf: numbers and strings (lib/vsprintf.c 4.4 to 7.2).

use crate::print_fmt::{Int, Spec};

/// Writes `value`, which is cut to the conversion's own size first, as va_arg would read it.
pub(super) fn integer(
    out: &mut Vec<u8>,
    spec: &Spec,
    width: usize,
    precision: Option<usize>,
    value: u64,
    long_size: u8,
) {
    let signed = matches!(spec.conversion, b'd' | b'i');
    let value = Int::new(spec.length.size(long_size), signed).wrap(value);
    if spec.conversion == b'c' {
        padded(out, spec.left, width, &[value as u8]);
        return;
    }
    let negative = signed && (value as i64) < 0;
    let magnitude = if negative { value.wrapping_neg() } else { value };
    let mut digits = [0u8; 22];
    let (base, letters): (u64, &[u8; 16]) = match spec.conversion {
        b'x' => (16, b"0123456789abcdef"),
        b'X' => (16, b"0123456789ABCDEF"),
        b'o' => (8, b"0123456789abcdef"),
        _ => (10, b"0123456789abcdef"),
    };
    let digits = to_digits(&mut digits, magnitude, base, letters);
    let sign: &[u8] = match (negative, signed && spec.plus, signed && spec.space) {
        (true, _, _) => b"-",
        (_, true, _) => b"+",
        (_, _, true) => b" ",
        _ => b"",
    };
    let prefix: &[u8] = match (spec.alternate, spec.conversion) {
        (true, b'x') => b"0x",
        (true, b'X') => b"0X",
        (true, b'o') if magnitude != 0 => b"0",
        _ => b"",
    };
    if width == 0 && precision.is_none() {
        out.extend_from_slice(sign);
        out.extend_from_slice(prefix);
        out.extend_from_slice(digits);
        return;
    }
    let zeros = precision.unwrap_or(0).saturating_sub(digits.len());
    let len = sign.len().saturating_add(prefix.len().saturating_add(zeros).saturating_add(digits.len()));
    let fill = width.saturating_sub(len);
    let zero_fill = spec.zero && !spec.left;
    if !spec.left && !zero_fill {
        out.resize(out.len().saturating_add(fill), b' ');
    }
    out.extend_from_slice(sign);
    out.extend_from_slice(prefix);
    out.resize(out.len().saturating_add(zeros).saturating_add(if zero_fill { fill } else { 0 }), b'0');
    out.extend_from_slice(digits);
    if spec.left {
        out.resize(out.len().saturating_add(fill), b' ');
    }
}

fn to_digits<'b>(buffer: &'b mut [u8; 22], mut value: u64, base: u64, letters: &[u8; 16]) -> &'b [u8] {
    let mut used = 0usize;
    for slot in buffer.iter_mut().rev() {
        *slot = letters.get(value.checked_rem(base).unwrap_or(0) as usize).copied().unwrap_or(b'0');
        used = used.saturating_add(1);
        value = value.checked_div(base).unwrap_or(0);
        if value == 0 {
            break;
        }
    }
    buffer.get(buffer.len().saturating_sub(used)..).unwrap_or_default()
}

/// Writes text, cut to the precision and filled up to the width.
pub(super) fn text(out: &mut Vec<u8>, spec: &Spec, width: usize, precision: Option<usize>, text: &[u8]) {
    let text = text.split(|&b| b == 0).next().unwrap_or_default();
    let text = text.get(..precision.unwrap_or(usize::MAX).min(text.len())).unwrap_or(text);
    padded(out, spec.left, width, text);
}

pub(super) fn padded(out: &mut Vec<u8>, left: bool, width: usize, text: &[u8]) {
    let fill = width.saturating_sub(text.len());
    if !left {
        out.resize(out.len().saturating_add(fill), b' ');
    }
    out.extend_from_slice(text);
    if left {
        out.resize(out.len().saturating_add(fill), b' ');
    }
}
