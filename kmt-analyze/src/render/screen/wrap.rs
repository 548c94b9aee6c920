//! Sentences in lines, and the columns of a terminal that a text takes.
//!
//! A wide letter (Chinese, Japanese, Korean, most emoji) takes two columns, a mark on the letter before it none. Each character
//! counts by itself, as in `wcwidth` of a C library.

use unicode_width::UnicodeWidthChar;

/// Breaks a text into lines of at most `width` columns, at blanks; words that are longer are broken where the line
/// ends, so that no line is longer than the terminal. Lines after the first begin with `indent` blanks.
pub fn wrap(text: &str, width: usize, indent: usize) -> Vec<String> {
    let room_min = 8;
    let indent = if width > indent + room_min { indent } else { 0 };
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in words(text) {
        let length = width_of(word);
        let gap = usize::from(used > start(&lines, indent));
        if gap == 1 && used + gap + length > width {
            lines.push(" ".repeat(indent));
            used = indent;
        } else if gap == 1 {
            push(&mut lines, " ");
            used += 1;
        }
        let (mut rest, mut left) = (word, length);
        while used + left > width {
            let (mut head, mut tail) = split_at(rest, width.saturating_sub(used));
            if head.is_empty() && used == start(&lines, indent) {
                // A line has at least one letter, also where it is wider than the terminal.
                (head, tail) = rest.split_at(rest.chars().next().map_or(0, char::len_utf8));
            }
            push(&mut lines, head);
            (rest, left) = (tail, left.saturating_sub(width_of(head)));
            if rest.is_empty() {
                used = width;
                break;
            }
            lines.push(" ".repeat(indent));
            used = indent;
        }
        push(&mut lines, rest);
        used += left;
    }
    lines
}

/// Words; a number and its unit are one.
fn words(text: &str) -> Vec<&str> {
    const UNITS: [&str; 12] = ["s", "ms", "us", "ns", "%", "B", "KiB", "MiB", "GiB", "TiB", "KiB/s", "MiB/s"];
    let mut words: Vec<(usize, usize)> = Vec::new();
    let mut at = 0;
    for word in text.split(' ') {
        let (start, end) = (at, at + word.len());
        at = end + 1;
        let is_unit = UNITS.contains(&word.trim_end_matches(['.', ',', ';', ':', ')']));
        match words.last_mut() {
            _ if word.is_empty() => {}
            Some((first, last)) if is_unit && *last + 1 == start && ends_in_digit(&text[*first..*last]) => {
                *last = end
            }
            _ => words.push((start, end)),
        }
    }
    words.into_iter().filter_map(|(start, end)| text.get(start..end)).collect()
}

fn ends_in_digit(word: &str) -> bool {
    word.ends_with(|c: char| c.is_ascii_digit())
}

/// Columns before the first letter of the last line.
fn start(lines: &[String], indent: usize) -> usize {
    if lines.len() == 1 { 0 } else { indent }
}

fn push(lines: &mut [String], text: &str) {
    if let Some(line) = lines.last_mut() {
        line.push_str(text);
    }
}

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
    fn no_line_is_longer_than_the_terminal() {
        let text =
            "Kernel memory grew by 0.52 MiB/s at a_function_with_a_name_that_is_longer_than_any_line of it.";
        for width in 10..100 {
            let lines = wrap(text, width, 2);
            assert!(lines.iter().all(|line| line.chars().count() <= width), "{width} {lines:?}");
            let joined: String = lines.concat().replace(' ', "");
            assert_eq!(joined, text.replace(' ', ""));
        }
        assert_eq!(wrap(text, usize::MAX, 2), [text]);
    }

    /// The characters of a word are counted once: a few seconds. Counted anew for each line, they take minutes.
    #[test]
    fn a_long_word_is_broken_once() {
        const LEN: usize = 16_000_000;
        let word = "ö".repeat(LEN);
        let start = std::time::Instant::now();
        let lines = wrap(&word, 40, 2);
        assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
        assert_eq!(lines.len(), 1 + (LEN - 40).div_ceil(38));
        assert!(lines.iter().all(|line| line.chars().count() <= 40));
    }

    #[test]
    fn wide_letters_take_two_columns() {
        assert_eq!(wrap("日本 語の task", 7, 0), ["日本", "語の", "task"]);
        assert_eq!(wrap("日本語日本語", 5, 0), ["日本", "語日", "本語"]);
        assert_eq!(wrap("日本", 1, 0), ["日", "本"]);
    }

    #[test]
    fn no_width_has_an_end() {
        assert_eq!(wrap("ab c", 0, 2).concat().replace(' ', ""), "abc");
    }

    #[test]
    fn a_number_keeps_its_unit() {
        assert_eq!(wrap("the worst wait was 144 ms.", 22, 0), ["the worst wait was", "144 ms."]);
    }

    #[test]
    fn later_lines_are_indented() {
        assert_eq!(wrap("one two three four", 11, 2), ["one two", "  three", "  four"]);
    }

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
