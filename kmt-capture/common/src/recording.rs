//! Recordings of other tools: what they are, and the command that makes a .kmt file of them.

use std::path::Path;

use crate::shell;

/// Bytes that are looked at.
const START_LEN: usize = 1 << 20;

/// A recording of another tool that `kmt-capture convert` reads, by its beginning.
pub fn recording(bytes: &[u8]) -> Option<&'static str> {
    let start = bytes.get(..bytes.len().min(START_LEN)).unwrap_or_default();
    let is = |magic: &[u8]| start.starts_with(magic);
    if is(b"\x17\x08\x44tracing") {
        Some("a trace.dat of trace-cmd")
    } else if is(b"PERFILE2") || is(b"2ELIFREP") {
        Some("a perf.data")
    } else if is(b"\x1f\x8b") || is(b"\x28\xb5\x2f\xfd") || is(b"\xfd7zXZ\0") {
        Some("a compressed file")
    } else if !start.contains(&0) && start.split(|&b| b == b'\n').any(is_event) {
        Some("a text with events")
    } else {
        None
    }
}

/// The command that converts an input.
pub fn convert_command(input: &Path) -> String {
    let mut output = if input == Path::new("-") { "trace.kmt".into() } else { input.with_extension("kmt") };
    if output == input {
        output = input.with_extension("converted.kmt");
    }
    format!("kmt-capture convert {} -o {}", shell::path(input), shell::path(&output))
}

/// A time before the name of an event: `1.500000: kfree: `, `12us : kfree: `.
fn is_event(line: &[u8]) -> bool {
    /// Columns before it.
    const HEAD_LEN: usize = 400;
    let head = line.get(..line.len().min(HEAD_LEN)).unwrap_or_default();
    let words: Vec<&[u8]> = head.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
    let is_number = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let is_time = |word: &[u8]| {
        let word = word.strip_suffix(b":").unwrap_or_default();
        let mut parts = word.splitn(2, |&b| b == b'.');
        parts.next().is_some_and(is_number) && parts.next().is_some_and(is_number)
    };
    let is_us = |word: &[u8]| word.strip_suffix(b"us").is_some_and(is_number);
    let is_name = |word: &[u8]| word.len() > 1 && word.ends_with(b":");
    words.windows(2).any(|pair| matches!(pair, [time, name] if is_time(time) && is_name(name)))
        || words.windows(3).any(|three| matches!(three, [time, b":", name] if is_us(time) && is_name(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_are_named() {
        for (start, name) in [
            (&b"\x17\x08\x44tracing6\0"[..], "trace.dat"),
            (b"PERFILE2\x68", "perf.data"),
            (b"\x1f\x8b\x08", "compressed"),
            (b"# tracer: nop\n sh-7 [001] d..1. 1.500000: kfree: ptr=1\n", "text"),
            (b" sh-7       0d..1. 12us : kfree: ptr=1\n", "text"),
            (b" sh 7 [001]  1.500000:       kmem:kfree: ptr=1\n", "text"),
        ] {
            assert!(recording(start).is_some_and(|found| found.contains(name)), "{name}");
        }
        assert_eq!(recording(b"[    1.000000] usb: new device: 3\n"), None);
    }

    #[test]
    fn commands_can_be_copied() {
        for (input, command) in [
            ("a b/trace.dat", "kmt-capture convert 'a b/trace.dat' -o 'a b/trace.kmt'"),
            ("-x.dat", "kmt-capture convert ./-x.dat -o ./-x.kmt"),
            ("-", "kmt-capture convert - -o trace.kmt"),
            ("x.kmt", "kmt-capture convert x.kmt -o x.converted.kmt"),
        ] {
            assert_eq!(convert_command(Path::new(input)), command);
        }
    }
}
