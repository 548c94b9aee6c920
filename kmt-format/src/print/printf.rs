//! The kernel's printf: parsing of conversions, numbers and strings (lib/vsprintf.c 4.4 to 7.2).

use super::expr::Int;

/// A width or precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    Fixed(usize),
    /// Taken from the next argument (`*`).
    Argument,
}

/// The size of an argument as the length modifier tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    Char,
    Short,
    Int,
    Long,
    LongLong,
}

impl Length {
    pub fn size(self, long_size: u8) -> u8 {
        match self {
            Self::Char => 1,
            Self::Short => 2,
            Self::Int => 4,
            Self::Long => long_size,
            Self::LongLong => 8,
        }
    }
}

/// One conversion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spec {
    pub left: bool,
    pub plus: bool,
    pub space: bool,
    pub alternate: bool,
    pub zero: bool,
    pub width: Option<Extent>,
    pub precision: Option<Extent>,
    pub length: Length,
    pub conversion: u8,
    /// Letters behind `%p`.
    pub extension: Vec<u8>,
}

/// A piece of a format string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Literal(Vec<u8>),
    Spec(Spec),
}

/// Splits a format string into literals and conversions.
pub(super) fn pieces(format: &[u8]) -> Vec<Piece> {
    let mut out = Vec::new();
    let mut literal = Vec::new();
    let mut at = 0;
    while let Some(&byte) = format.get(at) {
        at = at.saturating_add(1);
        if byte != b'%' {
            literal.push(byte);
            continue;
        }
        if format.get(at) == Some(&b'%') {
            literal.push(b'%');
            at = at.saturating_add(1);
            continue;
        }
        let (spec, end) = spec(format, at);
        if !literal.is_empty() {
            out.push(Piece::Literal(core::mem::take(&mut literal)));
        }
        out.push(Piece::Spec(spec));
        at = end;
    }
    if !literal.is_empty() {
        out.push(Piece::Literal(literal));
    }
    out
}

fn spec(format: &[u8], mut at: usize) -> (Spec, usize) {
    let mut spec = Spec {
        left: false,
        plus: false,
        space: false,
        alternate: false,
        zero: false,
        width: None,
        precision: None,
        length: Length::Int,
        conversion: 0,
        extension: Vec::new(),
    };
    loop {
        match format.get(at) {
            Some(b'-') => spec.left = true,
            Some(b'+') => spec.plus = true,
            Some(b' ') => spec.space = true,
            Some(b'#') => spec.alternate = true,
            Some(b'0') => spec.zero = true,
            _ => break,
        }
        at = at.saturating_add(1);
    }
    spec.width = extent(format, &mut at);
    if format.get(at) == Some(&b'.') {
        at = at.saturating_add(1);
        spec.precision = Some(extent(format, &mut at).unwrap_or(Extent::Fixed(0)));
    }
    let two = format.get(at..at.saturating_add(2)).unwrap_or_default();
    let (length, used) = match (two, format.get(at)) {
        (b"hh", _) => (Length::Char, 2),
        (b"ll", _) => (Length::LongLong, 2),
        (_, Some(b'h')) => (Length::Short, 1),
        (_, Some(b'l' | b'z' | b'Z' | b't')) => (Length::Long, 1),
        (_, Some(b'j' | b'q' | b'L')) => (Length::LongLong, 1),
        _ => (Length::Int, 0),
    };
    spec.length = length;
    at = at.saturating_add(used);
    spec.conversion = format.get(at).copied().unwrap_or(b'%');
    at = at.saturating_add(1);
    if spec.conversion == b'p' {
        let letters = format.iter().skip(at).take_while(|b| b.is_ascii_alphanumeric()).count();
        spec.extension = format.get(at..at.saturating_add(letters)).unwrap_or_default().to_vec();
        at = at.saturating_add(letters);
    }
    (spec, at.min(format.len()))
}

fn extent(format: &[u8], at: &mut usize) -> Option<Extent> {
    if format.get(*at) == Some(&b'*') {
        *at = (*at).saturating_add(1);
        return Some(Extent::Argument);
    }
    let digits = format.iter().skip(*at).take_while(|b| b.is_ascii_digit()).count();
    let text = core::str::from_utf8(format.get(*at..(*at).saturating_add(digits))?).ok()?;
    *at = (*at).saturating_add(digits);
    // A width from a hostile file must not make a line of gigabytes.
    text.parse().ok().map(|n: usize| Extent::Fixed(n.min(4096)))
}

impl Spec {
    /// Whether an integer conversion.
    pub fn is_integer(&self) -> bool {
        matches!(self.conversion, b'd' | b'i' | b'u' | b'x' | b'X' | b'o' | b'c')
    }
}

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
