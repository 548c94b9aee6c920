//! Times that logs print before a line.

use super::prefix_words::{split_at_byte, word};

/// Longest text in brackets, and longest word of a date.
const LEN_MAX: usize = 48;

/// `[   37.123456]`, `[Sat Nov 28 09:00:00 2026]`, `[Nov28 09:00]`, `[  +0.000012]`, `[   37.1 <    0.1>]`: what follows.
pub(super) fn bracketed_time(text: &[u8]) -> Option<&[u8]> {
    let (inner, rest) = split_at_byte(text.strip_prefix(b"[")?, b']', LEN_MAX)?;
    let mut has_time = false;
    for word in inner.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
        let is_number = word.iter().all(|b| b.is_ascii_digit() || b"+-.,:<>TZ".contains(b));
        // [001] is a CPU.
        has_time |=
            is_number && word.iter().any(u8::is_ascii_digit) && word.iter().any(|b| b".:".contains(b));
        let letters = word.iter().take_while(|b| b.is_ascii_alphabetic() || !b.is_ascii()).count();
        let is_name = matches!(letters, 2..=6) && word.iter().skip(letters).all(u8::is_ascii_digit);
        (is_number || is_name).then_some(())?;
    }
    has_time.then_some(rest)
}

/// `Nov 28 09:00:00`, `2026-11-28T09:00:00+0000`, `Sat 2026-11-28 09:00:00 UTC`, `11-28 09:00:00.123`, `1764320400.123456`:
/// what follows.
pub(super) fn date(text: &[u8]) -> Option<&[u8]> {
    let (mut rest, mut has_month, mut has_date) = (text, false, false);
    for at in 0..4 {
        let start = if at == 0 { rest } else { rest.trim_ascii_start() };
        let (part, behind) = word(start, LEN_MAX)?;
        rest = behind;
        if is_clock(part) {
            return Some(behind_zone(rest, has_month, has_date));
        }
        let is_name = part.len() == 3 && part.iter().all(u8::is_ascii_alphabetic);
        let is_number = part.len() <= 10 && part.iter().all(|b| b.is_ascii_digit() || b"-./".contains(b));
        (is_name || is_number && part.iter().any(u8::is_ascii_digit)).then_some(())?;
        has_month |= is_name;
        has_date |= part.len() == 10;
    }
    None
}

/// Without the year behind the day of a month, or the zone behind a date.
fn behind_zone(rest: &[u8], has_month: bool, has_date: bool) -> &[u8] {
    let after = rest.strip_prefix(b" ").and_then(|rest| word(rest, LEN_MAX));
    let is_year = |word: &[u8]| word.len() == 4 && word.iter().all(u8::is_ascii_digit);
    let is_zone = |word: &[u8]| match word {
        [b'+' | b'-', digits @ ..] => matches!(digits.len(), 4 | 5),
        _ => matches!(word.len(), 2..=5) && word.iter().all(u8::is_ascii_uppercase),
    };
    match after {
        Some((word, after)) if has_date && is_zone(word) || has_month && !has_date && is_year(word) => after,
        _ => rest,
    }
}

/// `09:00:00` with a fraction, a date or a zone, or seconds of Unix.
fn is_clock(word: &[u8]) -> bool {
    let digits = word.iter().take_while(|b| b.is_ascii_digit()).count();
    if digits == 10 && word.get(digits) == Some(&b'.') {
        return word.len() > 11 && word.iter().skip(11).all(u8::is_ascii_digit);
    }
    let is_clock = word.windows(8).any(|w| {
        let pattern = b"00:00:00";
        w.iter().zip(pattern).all(|(b, p)| if *p == b':' { b == p } else { b.is_ascii_digit() })
    });
    let is_number = word.iter().all(|b| b.is_ascii_digit() || b"+-.,:TZ".contains(b));
    digits > 0 && is_clock && is_number && !word.ends_with(b":")
}
