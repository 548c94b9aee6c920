//! `%p` and its extensions (`pointer()`, lib/vsprintf.c 4.4 to 7.2).

use super::env::{PrintEnv, SymbolForm};
use super::printf::padded;
use crate::kernel::ByteOrder;
use crate::print_fmt::Spec;

/// Writes an address: with `nohash-ptr` the kernel prints plain `%p` in full width.
///
/// Returns false for an extension that needs more than the address.
pub(super) fn address(out: &mut Vec<u8>, spec: &Spec, width: usize, value: u64, env: &PrintEnv<'_>) -> bool {
    let form = match spec.extension.first() {
        None | Some(b'x' | b'K') => {
            let digits = if width > 0 { width } else { env.long_size().saturating_mul(2) };
            let text = if spec.left || (width > 0 && !spec.zero) {
                format!("{value:x}")
            } else {
                format!("{value:0digits$x}")
            };
            padded(out, spec.left, width, text.as_bytes());
            return true;
        }
        Some(b'S' | b'F') => SymbolForm::WithOffset,
        Some(b's' | b'f') => SymbolForm::NameOnly,
        Some(b'B') => SymbolForm::Backtrace,
        _ => return false,
    };
    let mut text = Vec::new();
    env.symbol(&mut text, value, form);
    super::printf::text(out, spec, width, None, &text);
    true
}

/// Writes bytes that a pointer points to; returns false for an extension that this library does not know.
pub(super) fn bytes(out: &mut Vec<u8>, spec: &Spec, width: usize, bytes: &[u8], env: &PrintEnv<'_>) -> bool {
    let text = match spec.extension.as_slice() {
        [b'I' | b'i', b'S', options @ ..] => sockaddr(bytes, options, env.order()),
        [case, b'4', ..] if matches!(case, b'I' | b'i') => ipv4(bytes, *case == b'i'),
        [b'I', b'6', b'c', ..] => ipv6_short(bytes),
        [case, b'6', ..] if matches!(case, b'I' | b'i') => ipv6_full(bytes, *case == b'I'),
        [case, rest @ ..] if matches!(case, b'M' | b'm') => mac(bytes, *case == b'M', rest.first().copied()),
        [b'U', rest @ ..] => uuid(bytes, rest.first().copied().unwrap_or(b'b')),
        [b'h', rest @ ..] => {
            let separator: &[u8] = match rest.first() {
                Some(b'C') => b":",
                Some(b'D') => b"-",
                Some(b'N') => b"",
                _ => b" ",
            };
            // The width is the number of bytes, 64 at most.
            let parts = bytes.iter().take(width.clamp(1, 64)).map(|b| format!("{b:02x}"));
            out.extend_from_slice(&joined(parts, separator));
            return true;
        }
        [b'b', b'l', ..] => {
            bitmap_list(out, bytes, width, env.order(), env.long_size());
            return true;
        }
        [b'b', ..] => {
            bitmap_hex(out, bytes, width, env.order(), env.long_size());
            return true;
        }
        _ => None,
    };
    match text {
        Some(text) => {
            padded(out, spec.left, width, &text);
            true
        }
        None => false,
    }
}

fn joined(parts: impl Iterator<Item = String>, separator: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for (i, part) in parts.enumerate() {
        if i > 0 {
            out.extend_from_slice(separator);
        }
        out.extend_from_slice(part.as_bytes());
    }
    out
}

fn ipv4(bytes: &[u8], leading_zeros: bool) -> Option<Vec<u8>> {
    let bytes = bytes.get(..4)?;
    let part = |b: &u8| if leading_zeros { format!("{b:03}") } else { b.to_string() };
    Some(joined(bytes.iter().map(part), b"."))
}

fn ipv6_full(bytes: &[u8], colons: bool) -> Option<Vec<u8>> {
    let words = bytes.get(..16)?.chunks_exact(2).map(|w| format!("{:04x}", ByteOrder::Big.uint(w)));
    Some(joined(words, if colons { b":" } else { b"" }))
}

fn ipv6_short(bytes: &[u8]) -> Option<Vec<u8>> {
    let bytes: [u8; 16] = bytes.get(..16)?.try_into().ok()?;
    Some(core::net::Ipv6Addr::from(bytes).to_string().into_bytes())
}

fn sockaddr(bytes: &[u8], options: &[u8], order: ByteOrder) -> Option<Vec<u8>> {
    let port = ByteOrder::Big.uint(bytes.get(2..4)?);
    let with_port = options.contains(&b'p');
    let mut out = match order.uint(bytes.get(..2)?) {
        2 => ipv4(bytes.get(4..8)?, false)?,
        10 => {
            let address = ipv6_short(bytes.get(8..24)?)?;
            if with_port { [b"[", address.as_slice(), b"]"].concat() } else { address }
        }
        _ => return None,
    };
    if with_port {
        out.extend_from_slice(format!(":{port}").as_bytes());
    }
    Some(out)
}

fn mac(bytes: &[u8], colons: bool, option: Option<u8>) -> Option<Vec<u8>> {
    let bytes = bytes.get(..6)?;
    let separator: &[u8] = match (colons, option) {
        (false, _) => b"",
        (true, Some(b'F')) => b"-",
        (true, _) => b":",
    };
    let part = |b: &u8| format!("{b:02x}");
    Some(match option {
        Some(b'R') => joined(bytes.iter().rev().map(part), separator),
        _ => joined(bytes.iter().map(part), separator),
    })
}

fn uuid(bytes: &[u8], form: u8) -> Option<Vec<u8>> {
    const LITTLE: [usize; 16] = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
    let bytes = bytes.get(..16)?;
    let mut out = String::new();
    for (i, &little) in LITTLE.iter().enumerate() {
        let index = if matches!(form, b'l' | b'L') { little } else { i };
        out.push_str(&format!("{:02x}", bytes.get(index)?));
        if matches!(i, 3 | 5 | 7 | 9) {
            out.push('-');
        }
    }
    Some(if matches!(form, b'B' | b'L') { out.to_uppercase() } else { out }.into_bytes())
}

/// Bit `n` of a bitmap, which is an array of the kernel's longs.
fn bit(bytes: &[u8], n: usize, order: ByteOrder, long_size: usize) -> bool {
    let bits = long_size.saturating_mul(8);
    let word = order
        .uint_at(bytes, n.checked_div(bits).unwrap_or(0).saturating_mul(long_size), long_size)
        .unwrap_or(0);
    word >> n.checked_rem(bits).unwrap_or(0) & 1 == 1
}

/// `%*pb`: groups of 32 bits in hex, the highest first.
pub(super) fn bitmap_hex(out: &mut Vec<u8>, bytes: &[u8], bits: usize, order: ByteOrder, long_size: usize) {
    let bits = bits.min(bytes.len().saturating_mul(8));
    let mut first = true;
    for group in (0..bits.div_ceil(32)).rev() {
        let group_bits = bits.saturating_sub(group.saturating_mul(32)).min(32);
        let value = (0..group_bits).rev().fold(0u64, |v, i| {
            v << 1 | u64::from(bit(bytes, group.saturating_mul(32).saturating_add(i), order, long_size))
        });
        let digits = group_bits.div_ceil(4);
        let text = format!("{}{value:0digits$x}", if first { "" } else { "," });
        out.extend_from_slice(text.as_bytes());
        first = false;
    }
}

/// `%*pbl`: ranges of set bits.
fn bitmap_list(out: &mut Vec<u8>, bytes: &[u8], bits: usize, order: ByteOrder, long_size: usize) {
    let bits = bits.min(bytes.len().saturating_mul(8));
    let mut at = 0;
    let mut first = true;
    while at < bits {
        if !bit(bytes, at, order, long_size) {
            at = at.saturating_add(1);
            continue;
        }
        let start = at;
        while at < bits && bit(bytes, at, order, long_size) {
            at = at.saturating_add(1);
        }
        let separator = if first { "" } else { "," };
        first = false;
        let text = if at.saturating_sub(start) == 1 {
            format!("{separator}{start}")
        } else {
            format!("{separator}{start}-{}", at.saturating_sub(1))
        };
        out.extend_from_slice(text.as_bytes());
    }
}
