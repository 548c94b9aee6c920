//! Text of an event: `key=value` pairs, and the text between them.

/// One pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arg<'a> {
    /// Text before the key, from the end of the value before.
    pub before: &'a [u8],
    /// Key; empty for a value without one.
    pub key: &'a [u8],
    /// Name of the field: that of the key, mostly.
    pub name: &'a [u8],
    /// Value, without blanks around it.
    pub value: &'a [u8],
}

/// The first `most` pairs of a text, and whether that is all. A value reaches to the blank before the next key. What precedes the first key belongs to it.
pub fn args<'a>(text: &'a [u8], most: usize, out: &mut Vec<Arg<'a>>) -> bool {
    out.clear();
    let text = text.trim_ascii_end();
    let mut key = next_key(text, 0);
    let mut end = 0;
    while let Some((start, equals)) = key {
        if out.len() >= most {
            return false;
        }
        let following = next_key(text, equals + 1);
        let value_end = following.map_or(text.len(), |(start, _)| start);
        let value = text.get(equals + 1..value_end).unwrap_or_default().trim_ascii();
        let before = text.get(end..start).unwrap_or_default();
        let word = text.get(start..equals).unwrap_or_default();
        out.push(Arg { before, key: word, name: word, value });
        // Between values is one blank, for any padding.
        end = value_end.saturating_sub(usize::from(following.is_some()));
        key = following;
    }
    true
}

/// Offsets of the next key and of its equals sign: a word of letters at the start of the text or after a blank.
fn next_key(text: &[u8], from: usize) -> Option<(usize, usize)> {
    let mut at = from;
    loop {
        let equals = at + text.get(at..)?.iter().position(|&b| b == b'=')?;
        let word = text
            .get(from..equals)?
            .iter()
            .rev()
            .take_while(|b| b.is_ascii_alphanumeric() || **b == b'_')
            .count();
        let start = equals - word;
        let is_word = text.get(start).is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_') && word > 0;
        let is_apart = start == 0 || text.get(start - 1).is_some_and(|b| b.is_ascii_whitespace());
        if is_word && is_apart && (start > from || from == 0) {
            return Some((start, equals));
        }
        at = equals + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs_of(text: &str) -> Vec<(String, String, String)> {
        let mut out = Vec::new();
        args(text.as_bytes(), 64, &mut out);
        let string = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
        out.iter().map(|a| (string(a.before), string(a.key), string(a.value))).collect()
    }

    #[test]
    fn pairs() {
        let pair = |b: &str, k: &str, v: &str| (b.to_owned(), k.to_owned(), v.to_owned());
        assert_eq!(
            pairs_of("a=1 b=x y c=3"),
            [pair("", "a", "1"), pair(" ", "b", "x y"), pair(" ", "c", "3")]
        );
        assert_eq!(
            pairs_of("(f+0x1) call_site=f+0x1 ptr=  (null)"),
            [pair("(f+0x1) ", "call_site", "f+0x1"), pair(" ", "ptr", "(null)")]
        );
        assert_eq!(pairs_of("a==1"), [pair("", "a", "=1")]);
        assert_eq!(pairs_of("no pairs"), []);
        assert_eq!(pairs_of("=1 2=3"), []);
    }
}
