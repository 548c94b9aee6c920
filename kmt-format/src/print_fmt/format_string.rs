//! The format string of a `print fmt`: literal text and conversions (lib/vsprintf.c 4.4 to 7.2).

/// A width or precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    Fixed(usize),
    /// Taken from the next argument (`*`).
    Argument,
}

/// The size of an argument by its length modifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
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
pub(crate) struct Spec {
    pub left: bool,
    pub plus: bool,
    pub space: bool,
    pub alternate: bool,
    pub zero: bool,
    pub width: Option<Extent>,
    pub precision: Option<Extent>,
    pub length: Length,
    pub conversion: u8,
    /// Letters after `%p`.
    pub extension: Vec<u8>,
}

/// A piece of a format string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    Literal(Vec<u8>),
    Spec(Spec),
}

/// Splits a format string into literals and conversions.
pub(crate) fn pieces(format: &[u8]) -> Vec<Piece> {
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
    /// True for an integer conversion.
    pub fn is_integer(&self) -> bool {
        matches!(self.conversion, b'd' | b'i' | b'u' | b'x' | b'X' | b'o' | b'c')
    }
}
