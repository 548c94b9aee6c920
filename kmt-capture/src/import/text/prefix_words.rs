//! Words of a prefix, of a bounded length.

/// A word of at most `most` bytes at the begin of a text, and what follows it.
pub(super) fn word(text: &[u8], most: usize) -> Option<(&[u8], &[u8])> {
    let start = text.get(..text.len().min(most + 1))?;
    let end = start.iter().position(u8::is_ascii_whitespace).or((text.len() <= most).then_some(text.len()))?;
    (end > 0).then_some(())?;
    text.split_at_checked(end)
}

/// Text before a byte within the first `most`, and text behind it.
pub(super) fn split_at_byte(text: &[u8], byte: u8, most: usize) -> Option<(&[u8], &[u8])> {
    let at = text.iter().take(most).position(|&b| b == byte)?;
    Some((text.get(..at)?, text.get(at + 1..)?))
}
