//! Colours of a terminal in a text: dmesg, journalctl and grep print them.

/// Lines that are looked at.
const LINES: usize = 20_000;
/// Of them one in this number has colours, if the text has them: a name of a task may look so, too.
const SHARE: usize = 8;

/// True if a text has colours.
pub fn are_in(text: &[u8]) -> bool {
    let lines = text.split(|&b| b == b'\n').filter(|line| !line.is_empty()).take(LINES);
    let (mut all, mut coloured) = (0_usize, 0_usize);
    for line in lines {
        all += 1;
        let mut escapes = line.iter().enumerate().filter(|(_, b)| **b == 0x1b);
        coloured +=
            usize::from(escapes.any(|(at, _)| sequence(line.get(at..).unwrap_or_default()).is_some()));
    }
    coloured > 0 && coloured >= all / SHARE
}

/// A text without its colours.
pub fn dropped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.iter().position(|&b| b == 0x1b) {
        let (before, escape) = rest.split_at(at);
        out.extend_from_slice(before);
        let len = sequence(escape).unwrap_or_else(|| {
            out.push(0x1b);
            1
        });
        rest = escape.get(len..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
    out
}

/// Length of a sequence that sets a colour, or that grep puts behind it: `ESC [ 1 ; 31 m`, `ESC [ K`.
fn sequence(text: &[u8]) -> Option<usize> {
    const LEN_MAX: usize = 24;
    let inner = text.strip_prefix(b"\x1b[")?;
    let end = inner.iter().take(LEN_MAX).position(|b| !b.is_ascii_digit() && !b";:".contains(b))?;
    matches!(inner.get(end), Some(b'm' | b'K')).then_some(end + 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_dropped_where_many_lines_have_them() {
        let line = b"\x1b[32m[   37.123456] \x1b[0mkmalloc\x1b[01;31m\x1b[K: \x1b[ \x1b";
        assert!(are_in(line));
        assert_eq!(dropped(line), b"[   37.123456] kmalloc: \x1b[ \x1b");
        let once = [&line[..], &b"\nplain".repeat(20)].concat();
        assert!(!are_in(&once) && !are_in(b"") && !are_in(b"\x1b[1"));
        assert_eq!(dropped(&b"\x1b[".repeat(1000)).len(), 2000);
    }
}
