//! Text that comes from files, for terminals and JSON.
//!
//! All output passes two steps: each text from a file is [`escaped`] where a line is made, so that it cannot break
//! that line; and every page, message and document is made harmless as a whole where it is printed, with [`tame`],
//! [`tell`](crate::tell) or [`json_safe`], so that nothing that was forgotten reaches a terminal. The same for length:
//! screens and messages have the beginning of a text ([`shown`]) and of a sentence ([`line()`]); JSON has the whole text.

use std::borrow::Cow;
use std::fmt;
use std::io::Write as _;

/// A number with its noun, in the singular or the plural: `1 event`, `2 events`.
pub fn count(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// Digits in groups of three: `1234567` as `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A size for people: exact below 1 KiB, else three significant digits: `4.81 MiB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1 << 10 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    // From 999.5 on three digits would read 1000.
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = match value {
        value if value >= 99.95 => 0,
        value if value >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.digits$} {}", UNITS[unit])
}

/// Text from the target, which may be hostile: control characters and what is not UTF-8 as `\xNN`, so that it can
/// neither steer a terminal nor break a line.
pub fn escaped(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if is_hostile(c) {
                let mut buffer = [0; 4];
                for byte in c.encode_utf8(&mut buffer).bytes() {
                    out.push_str(&format!("\\x{byte:02x}"));
                }
            } else {
                out.push(c);
            }
        }
        for byte in chunk.invalid() {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
    out
}

/// Bytes of one text of a file in a screen or message.
pub const TEXT_MAX: usize = 1_000;

/// Bytes of one sentence of a screen or message.
pub const LINE_MAX: usize = 4_000;

/// A text of a file in a screen or message: escaped, and cut if it is longer than [`TEXT_MAX`].
pub fn shown(bytes: &[u8]) -> String {
    match bytes.get(..TEXT_MAX) {
        Some(head) if bytes.len() > TEXT_MAX => {
            // A character at the cut is left out as a whole.
            let inside = bytes.iter().skip(TEXT_MAX).take_while(|&&byte| byte & 0xc0 == 0x80).count();
            let end = match inside {
                0 => TEXT_MAX,
                _ => head.iter().rposition(|byte| byte & 0xc0 != 0x80).unwrap_or(TEXT_MAX),
            };
            format!("{}{}", escaped(&head[..end]), rest_of(bytes.len()))
        }
        _ => escaped(bytes),
    }
}

/// A sentence of a message: escaped, and cut if it is longer than [`LINE_MAX`].
pub fn line(text: &str) -> String {
    escaped(cut(text, LINE_MAX).as_bytes())
}

/// The beginning of a text that is longer than `bytes_max`, and its length: `xxx... 5000 bytes in all`.
pub fn cut(text: &str, bytes_max: usize) -> Cow<'_, str> {
    if text.len() <= bytes_max {
        return Cow::Borrowed(text);
    }
    let end = (0..=bytes_max).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    Cow::Owned(format!("{}{}", text.get(..end).unwrap_or_default(), rest_of(text.len())))
}

/// Stands for the rest of a text of that length.
fn rest_of(len: usize) -> String {
    format!("... {len} bytes in all")
}

/// A page of several lines without what steers a terminal; only line breaks and tabs stay.
pub fn tame(page: &str) -> Cow<'_, str> {
    let stays = |c: char| matches!(c, '\n' | '\t') || !is_hostile(c);
    if page.chars().all(stays) {
        return Cow::Borrowed(page);
    }
    let mut out = String::with_capacity(page.len());
    for c in page.chars() {
        match stays(c) {
            true => out.push(c),
            false => out.push_str(&escaped(c.encode_utf8(&mut [0; 4]).as_bytes())),
        }
    }
    Cow::Owned(out)
}

/// A JSON document without characters that control a terminal: these, which only strings hold, as `\uNNNN`.
pub fn json_safe(document: &str) -> Cow<'_, str> {
    let stays = |c: char| c == '\n' || !is_hostile(c);
    if document.chars().all(stays) {
        return Cow::Borrowed(document);
    }
    let mut out = String::with_capacity(document.len());
    for c in document.chars() {
        match stays(c) {
            true => out.push(c),
            // None of them is beyond the first 65,536.
            false => out.push_str(&format!("\\u{:04x}", u32::from(c))),
        }
    }
    Cow::Owned(out)
}

/// Prints one line on standard error, with everything in it escaped; a very long one is cut.
#[macro_export]
macro_rules! tell {
    ($($line:tt)*) => { $crate::message!("{}", $crate::text::line(&format!($($line)*))) };
}

/// Prints a line on standard error, of texts that are escaped already. `eprintln!` panics where standard error cannot be
/// written (a full disk, a closed pipe); here the message is dropped, and the work goes on.
#[macro_export]
macro_rules! message {
    ($($line:tt)*) => { $crate::text::to_stderr(format_args!("{}\n", format_args!($($line)*))) };
}

/// Prints on standard error what can be printed there.
pub fn to_stderr(text: fmt::Arguments<'_>) {
    // In one piece: standard error has no buffer, and lines of several threads stay whole.
    let _ = std::io::stderr().write_all(text.to_string().as_bytes());
}

/// Controls (C0, DEL and C1), separators of lines and paragraphs, and the marks that reorder text.
pub fn is_hostile(c: char) -> bool {
    let reorders =
        matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') || reorders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_keep_their_lines_and_nothing_else_that_steers() {
        assert_eq!(tame("a\tb\n\x1b[2J\u{9b}\r"), "a\tb\n\\x1b[2J\\xc2\\x9b\\x0d");
        assert!(matches!(tame("größe\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn nouns_agree_with_their_number() {
        assert_eq!(
            [count(0, "event"), count(1, "event"), count(2, "CPU")],
            ["0 events", "1 event", "2 CPUs"]
        );
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdefg", 6), "abcdef... 7 bytes in all");
        assert_eq!(cut("größe", 3), "gr... 7 bytes in all");
        let text = "x".repeat(TEXT_MAX);
        assert_eq!(shown(text.as_bytes()), text);
        assert_eq!(shown((text.clone() + "\n").as_bytes()), text.clone() + "... 1001 bytes in all");
        let inside = text[1..].to_owned() + "ö";
        assert_eq!(shown(inside.as_bytes()), text[1..].to_owned() + "... 1001 bytes in all");
        assert_eq!(shown(&[0x80; 2_000]), "\\x80".repeat(TEXT_MAX) + "... 2000 bytes in all");
        let long = "\x1b".repeat(LINE_MAX * 3);
        assert_eq!(line(&long), "\\x1b".repeat(LINE_MAX) + "... 12000 bytes in all");
    }

    #[test]
    fn json_means_the_same() {
        assert_eq!(json_safe("{\"a\": \"\u{202e}\u{7f}ö\"}\n"), "{\"a\": \"\\u202e\\u007fö\"}\n");
    }

    #[test]
    fn hostile_text_is_tamed() {
        assert_eq!(escaped(b"sh"), "sh");
        assert_eq!(escaped(b"\x1b[2J\xff\n"), "\\x1b[2J\\xff\\x0a");
        assert_eq!(escaped("größe\u{202e}".as_bytes()), "größe\\xe2\\x80\\xae");
        assert_eq!(escaped("a\u{2028}b".as_bytes()), "a\\xe2\\x80\\xa8b");
    }
}
