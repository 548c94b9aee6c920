//! Values of fields as numbers.

use super::columns;
use super::notation::Notation;

/// A number as kernels print it where the option `fields` is set (6.4 and later): `0x40 (64)`, `(1)`, `'A'(65)`.
pub(super) fn of_option_fields(value: &[u8]) -> Option<u64> {
    let open = value.iter().rposition(|&b| b == b'(')?;
    let (first, rest) = value.split_at_checked(open)?;
    let inner = rest.strip_prefix(b"(")?.strip_suffix(b")")?;
    match first {
        [] | [b'\'', _, b'\''] => decimal(inner),
        _ => hex(first.strip_suffix(b" ")?, true),
    }
}

/// A hexadecimal number, with 0x or without.
pub(super) fn hex(value: &[u8], prefixed: bool) -> Option<u64> {
    let digits = if prefixed { value.strip_prefix(b"0x")? } else { value };
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    digits.iter().try_fold(0u64, |sum, &b| Some(sum << 4 | u64::from((b as char).to_digit(16)?)))
}

/// A decimal number; of a negative one, its two's complement.
pub(super) fn decimal(value: &[u8]) -> Option<u64> {
    match value.strip_prefix(b"-") {
        Some(digits) => columns::number(digits).map(u64::wrapping_neg),
        None => columns::number(value),
    }
}

/// A pointer.
pub(super) fn pointer(value: &[u8], notation: Notation) -> Option<u64> {
    match value {
        b"(null)" | b"(nil)" | b"null" => Some(0),
        _ => hex(value, true).or_else(|| match notation {
            Notation::Decimal => decimal(value),
            _ => hex(value, false),
        }),
    }
}

/// True if the number is one of a field of that size.
pub(in super::super) fn has_size(number: u64, size: usize) -> bool {
    let bits = 8 * u32::try_from(size).unwrap_or(8);
    bits >= 64 || number >> bits == 0 || (number as i64) >> (bits - 1) == -1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_option_fields() {
        assert_eq!(of_option_fields(b"0x40 (64)"), Some(64));
        assert_eq!(of_option_fields(b"(1)"), Some(1));
        assert_eq!(of_option_fields(b"'('(40)"), Some(40));
        assert_eq!(of_option_fields(b"(null)"), None);
        assert_eq!(of_option_fields(b"f+0x1/0x20 (-2124362512)"), None);
        assert_eq!(of_option_fields(b"40 (64)"), None);
    }

    #[test]
    fn sizes() {
        assert!(has_size(u64::MAX, 4) && has_size(0xffff_ffff, 4) && has_size(u64::MAX, 8) && has_size(1, 1));
        assert!(!has_size(0x1_0000_0000, 4) && !has_size(0xffff_ffff_0000_0000, 4) && !has_size(256, 1));
    }
}
