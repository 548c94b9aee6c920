//! Tokens of a `print fmt`.

/// One token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token {
    Name(String),
    /// Value, size in bytes by the suffix (0: as small as fits from int on), unsigned by suffix.
    Number {
        value: u64,
        long: u8,
        unsigned: bool,
        decimal: bool,
    },
    Text(Vec<u8>),
    /// An operator or bracket.
    Sign(&'static str),
}

const SIGNS: [&str; 41] = [
    "<<=", ">>=", "->", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "++", "--", "+=", "-=", "*=", "/=",
    "|=", "&=", "^=", "(", ")", "[", "]", "{", "}", ",", "?", ":", "+", "-", "*", "/", "%", "<", ">", "=",
    "!", "&", "|", "^",
];

/// Splits text into tokens; `None` at a character that no token starts with, or an open string.
pub(crate) fn tokens(text: &str) -> Option<Vec<Token>> {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if byte.is_ascii_whitespace() || (byte == b'\\' && bytes.get(at.saturating_add(1)) == Some(&b'\n')) {
            at = at.saturating_add(1);
        } else if byte.is_ascii_alphabetic() || byte == b'_' {
            let end = end_of(bytes, at, |b| b.is_ascii_alphanumeric() || b == b'_');
            out.push(Token::Name(text.get(at..end)?.to_owned()));
            at = end;
        } else if byte.is_ascii_digit() {
            let end = end_of(bytes, at, |b| b.is_ascii_alphanumeric());
            out.push(number(text.get(at..end)?)?);
            at = end;
        } else if byte == b'"' {
            let (value, end) = quoted(bytes, at.saturating_add(1), b'"')?;
            // Neighbouring literals are one.
            if let Some(Token::Text(last)) = out.last_mut() {
                last.extend(value);
            } else {
                out.push(Token::Text(value));
            }
            at = end;
        } else if byte == b'\'' {
            let (value, end) = quoted(bytes, at.saturating_add(1), b'\'')?;
            let value = u64::from(*value.first()?);
            out.push(Token::Number { value, long: 0, unsigned: false, decimal: true });
            at = end;
        } else {
            let rest = text.get(at..)?;
            // The first byte decides mostly; comparing it costs less than comparing text.
            let sign =
                SIGNS.iter().find(|s| s.as_bytes().first() == Some(&byte) && rest.starts_with(**s)).copied();
            let sign = sign.or_else(|| ["~", ".", ";"].into_iter().find(|s| rest.starts_with(s)))?;
            out.push(Token::Sign(sign));
            at = at.saturating_add(sign.len());
        }
    }
    Some(out)
}

fn end_of(bytes: &[u8], from: usize, belongs: impl Fn(u8) -> bool) -> usize {
    bytes.iter().skip(from).position(|&b| !belongs(b)).map_or(bytes.len(), |n| from.saturating_add(n))
}

fn number(text: &str) -> Option<Token> {
    let lower = text.to_ascii_lowercase();
    let digits = lower.trim_end_matches(['u', 'l']);
    let suffix = lower.get(digits.len()..)?;
    let (value, decimal) = if let Some(hex) = digits.strip_prefix("0x") {
        (u64::from_str_radix(hex, 16).ok()?, false)
    } else if digits.len() > 1 && digits.starts_with('0') {
        (u64::from_str_radix(digits, 8).ok()?, false)
    } else {
        (digits.parse().ok()?, true)
    };
    let long = suffix.matches('l').count() as u8;
    Some(Token::Number { value, long, unsigned: suffix.contains('u'), decimal })
}

/// The contents of a literal, escapes resolved, and the position after it.
fn quoted(bytes: &[u8], mut at: usize, quote: u8) -> Option<(Vec<u8>, usize)> {
    let mut out = Vec::new();
    loop {
        let byte = *bytes.get(at)?;
        at = at.saturating_add(1);
        if byte == quote {
            return Some((out, at));
        }
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let escape = *bytes.get(at)?;
        at = at.saturating_add(1);
        match escape {
            b'n' => out.push(b'\n'),
            b't' => out.push(b'\t'),
            b'r' => out.push(b'\r'),
            b'a' => out.push(7),
            b'b' => out.push(8),
            b'e' => out.push(27),
            b'f' => out.push(12),
            b'v' => out.push(11),
            b'x' => {
                let end = end_of(bytes, at, |b| b.is_ascii_hexdigit());
                let digits = core::str::from_utf8(bytes.get(at..end)?).ok()?;
                out.push(u8::from_str_radix(digits.get(digits.len().saturating_sub(2)..)?, 16).ok()?);
                at = end;
            }
            b'0'..=b'7' => {
                let mut value = u32::from(escape.saturating_sub(b'0'));
                for _ in 0..2 {
                    match bytes.get(at) {
                        Some(d @ b'0'..=b'7') => {
                            value = value.saturating_mul(8).saturating_add(u32::from(d.saturating_sub(b'0')))
                        }
                        _ => break,
                    }
                    at = at.saturating_add(1);
                }
                out.push(value as u8);
            }
            other => out.push(other),
        }
    }
}
