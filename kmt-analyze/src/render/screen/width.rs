//! Columns of a terminal that a text takes: two for a wide letter (Chinese, Japanese, Korean, most emoji), none for a mark
//! on the letter before it. As `wcwidth` of a C library does: each character by itself.

use unicode_width::UnicodeWidthChar;

/// Columns of a character.
fn of(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// Columns of a text.
pub fn width_of(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().map(of).sum() }
}

/// The longest beginning of a text that takes at most `room` columns, and the rest.
pub fn split_at(text: &str, room: usize) -> (&str, &str) {
    let mut used = 0;
    let end = text.char_indices().find(|(_, c)| {
        used += of(*c);
        used > room
    });
    text.split_at(end.map_or(text.len(), |(at, _)| at))
}

/// The longest end of a text that takes at most `room` columns; it does not begin with a mark.
pub fn tail(text: &str, room: usize) -> &str {
    let (mut used, mut start) = (0, text.len());
    for (at, c) in text.char_indices().rev() {
        used += of(c);
        if used > room {
            break;
        }
        if of(c) > 0 {
            start = at;
        }
    }
    text.get(start..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_letters_take_two_columns_and_marks_none() {
        for (text, expected) in
            [("", 0), ("kfree", 5), ("日本語", 6), ("한", 2), ("🦀", 2), ("e\u{301}", 1), ("█▌…é", 4)]
        {
            assert_eq!(width_of(text), expected, "{text}");
        }
    }

    #[test]
    fn texts_are_split_between_letters() {
        assert_eq!(split_at("日本語", 5), ("日本", "語"));
        assert_eq!(split_at("e\u{301}a", 1), ("e\u{301}", "a"));
        assert_eq!((split_at("日", 1), split_at("日", 2)), (("", "日"), ("日", "")));
        assert_eq!((tail("日本語", 5), tail("日本", 1), tail("ab", 9)), ("本語", "", "ab"));
        assert_eq!(tail("ae\u{301}", 1), "e\u{301}");
    }
}
