//! Prefixes of lines: text of a kernel log, a journal, a console, a mail or a list of files before a line. The parts are
//! decided once for a text.
//!
//! Source: `print_prefix`, kernel/printk/printk.c 2.6.31 to 7.0; dmesg of util-linux 2.20 to 2.41; `output_short`,
//! systemd 183 to 257; `android_log_formatLogLine`, Android 4 to 15; `print_handle_file`, trace-cmd 2.2 to 3.3.

use super::columns::number;
use super::prefix_times::{bracketed_time, date};
use super::prefix_words::{split_at_byte, word};

/// One part of a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Part {
    /// `> ` of a mail.
    Quote,
    /// `<6>`.
    Level,
    /// `kern  :warn  : ` of dmesg -x.
    Facility,
    /// `[   37.123456] ` and the other times in brackets.
    Time,
    /// `[    T123] ` and `[    C0] `, and the same of vendors.
    Caller,
    /// `Nov 28 09:00:00 ` and the other times without brackets.
    Date,
    /// `box kernel: `, after a time.
    Sender,
    /// `     0     0 W tag     : ` of logcat, after a time, or `W/tag(    0): `.
    Logcat,
    /// `trs.dat: `, `a/trace.txt:12:`, `name_1  | `.
    File,
}

/// Parts in the order in which they are looked for.
const PARTS: [Part; 9] = [
    Part::Quote,
    Part::Level,
    Part::Facility,
    Part::Time,
    Part::Caller,
    Part::Date,
    Part::Sender,
    Part::Logcat,
    Part::File,
];
/// Most parts of a prefix.
const PARTS_MAX: usize = 8;
/// Longest word, and longest part but names of files.
const WORD_MAX: usize = 64;
/// Longest name of a file.
const FILE_MAX: usize = 255;

/// Parts of a prefix.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Prefix {
    len: u8,
    parts: [Option<Part>; PARTS_MAX],
}

impl Prefix {
    /// True if lines have none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What follows it; `None` if a line has another one.
    pub fn strip<'a>(&self, line: &'a [u8]) -> Option<&'a [u8]> {
        self.parts.iter().flatten().try_fold(line, |rest, part| rest.get(part.len(rest)?..))
    }

    /// All prefixes of a line with the text that follows each, from none to the longest.
    pub fn each<'a>(line: &'a [u8], found: &mut dyn FnMut(Self, &'a [u8])) {
        let (mut prefix, mut rest) = (Self::default(), line);
        found(prefix, rest);
        for at in 0..PARTS_MAX {
            let before = at.checked_sub(1).and_then(|at| prefix.parts.get(at).copied().flatten());
            let mut allowed = PARTS.iter().filter(|part| part.may_follow(before));
            let Some((part, len)) = allowed.find_map(|&part| Some((part, part.len(rest)?))) else { return };
            let (Some(slot), Some(behind)) = (prefix.parts.get_mut(at), rest.get(len..)) else { return };
            *slot = Some(part);
            prefix.len += 1;
            rest = behind;
            found(prefix, rest);
        }
    }
}

/// A line without all that may be a prefix of it.
pub(super) fn without_prefix(line: &[u8]) -> &[u8] {
    let mut last = line;
    Prefix::each(line, &mut |_, rest| last = rest);
    last
}

/// A line without what a console puts before some lines only: `<6>`, `[   12.345690] `, `[    T1] `.
pub(super) fn without_console(line: &[u8]) -> &[u8] {
    [Part::Level, Part::Time, Part::Caller]
        .iter()
        .fold(line, |rest, part| part.len(rest).and_then(|len| rest.get(len..)).unwrap_or(rest))
}

impl Part {
    /// True if it may stand behind another part.
    fn may_follow(self, before: Option<Self>) -> bool {
        match self {
            Self::Sender => matches!(before, Some(Self::Time | Self::Date)),
            Self::File => before != Some(self),
            _ => true,
        }
    }

    /// Length at the begin of a text, with one blank behind it.
    fn len(self, text: &[u8]) -> Option<usize> {
        let rest = match self {
            Self::Quote => return quote(text),
            Self::File if line_number(text).is_some() => return line_number(text),
            Self::Level => return level(text),
            Self::Facility => facility(text)?,
            Self::Time => bracketed_time(text)?,
            Self::Caller => caller(text)?,
            Self::Date => date(text)?,
            Self::Sender => sender(text)?,
            Self::Logcat => logcat(text)?,
            Self::File => file(text)?,
        };
        Some(text.len() - rest.strip_prefix(b" ").unwrap_or(rest).len())
    }
}

/// `> `, `>> `, `> > `.
fn quote(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    while at < WORD_MAX && text.get(at) == Some(&b'>') {
        at += if text.get(at + 1) == Some(&b' ') { 2 } else { 1 };
    }
    (at > 0).then_some(at)
}

/// `<6>`.
fn level(text: &[u8]) -> Option<usize> {
    let inner = text.strip_prefix(b"<")?;
    let close = inner.iter().take(4).position(|&b| b == b'>')?;
    number(inner.get(..close)?)?;
    Some(close + 2)
}

/// `kern  :warn  :`.
fn facility(text: &[u8]) -> Option<&[u8]> {
    const FACILITIES: [&[u8]; 12] = [
        b"kern",
        b"user",
        b"mail",
        b"daemon",
        b"auth",
        b"syslog",
        b"lpr",
        b"news",
        b"uucp",
        b"cron",
        b"authpriv",
        b"ftp",
    ];
    const LEVELS: [&[u8]; 8] = [b"emerg", b"alert", b"crit", b"err", b"warn", b"notice", b"info", b"debug"];
    let column = |text| split_at_byte(text, b':', 10);
    let (facility, rest) = column(text)?;
    let (level, rest) = column(rest)?;
    let facility = facility.trim_ascii_end();
    let is_facility = FACILITIES.contains(&facility) || facility.starts_with(b"local");
    (is_facility && LEVELS.contains(&level.trim_ascii_end())).then_some(rest)
}

/// `[    T123]`, `[   C0]`; of Samsung `[0:  swapper/0:    0]`; of Mediatek `(0)[1:swapper/0]`.
fn caller(text: &[u8]) -> Option<&[u8]> {
    let text = text.strip_prefix(b" ").unwrap_or(text);
    let text = text.strip_prefix(b" ").unwrap_or(text);
    if let Some(inner) = text.strip_prefix(b"(") {
        let (cpu, rest) = split_at_byte(inner, b')', 4)?;
        let (task, rest) = split_at_byte(rest.strip_prefix(b"[")?, b']', WORD_MAX)?;
        let (pid, _) = split_at_byte(task, b':', 9)?;
        return (number(cpu).is_some() && number(pid).is_some()).then_some(rest);
    }
    let (inner, rest) = split_at_byte(text.strip_prefix(b"[")?, b']', WORD_MAX)?;
    let id = inner.trim_ascii_start();
    if let Some(id) = id.strip_prefix(b"T").or_else(|| id.strip_prefix(b"C")) {
        return number(id).map(|_| rest);
    }
    let (cpu, task) = split_at_byte(inner, b':', 4)?;
    let pid = task.get(task.iter().rposition(|&b| b == b':')? + 1..)?;
    (number(cpu.trim_ascii()).is_some() && number(pid.trim_ascii()).is_some()).then_some(rest)
}

/// `box kernel:`, `box tag[12]:`.
fn sender(text: &[u8]) -> Option<&[u8]> {
    let (host, rest) = word(text, WORD_MAX)?;
    let (tag, rest) = word(rest.strip_prefix(b" ")?, WORD_MAX)?;
    (!host.ends_with(b":") && tag.ends_with(b":")).then_some(rest)
}

/// `  UID   PID   TID W tag     :`, `W/tag     (  12):`, `W/tag:`.
fn logcat(text: &[u8]) -> Option<&[u8]> {
    let is_level = |word: &[u8]| matches!(word, [b'V' | b'D' | b'I' | b'W' | b'E' | b'F' | b'S']);
    let behind_tag = |text| split_at_byte(text, b':', WORD_MAX).map(|(_, rest)| rest);
    if let Some(slash) = text.get(..2).filter(|start| start.ends_with(b"/")) {
        return slash.get(..1).filter(|level| is_level(level)).and_then(|_| behind_tag(text));
    }
    let (mut rest, mut numbers) = (text, 0);
    for at in 0..4 {
        let (column, behind) = word(rest.trim_ascii_start(), WORD_MAX)?;
        match number(column) {
            Some(_) => numbers += 1,
            None if numbers >= 2 && is_level(column) => return behind_tag(behind),
            None => (at == 0).then_some(())?,
        }
        rest = behind;
    }
    None
}

/// `NAME:` and `NAME:LINE:`, which may be aligned on the right, and `NAME   |`.
fn file(text: &[u8]) -> Option<&[u8]> {
    let blanks = text.iter().take(FILE_MAX).take_while(|&&b| b == b' ').count();
    let start = text.get(blanks..)?;
    let (name, rest) = word(start, FILE_MAX)?;
    if let Some(end) = unblanked(name, rest) {
        return start.get(end..);
    }
    if name.ends_with(b":") {
        return (name.len() > 1).then_some(rest);
    }
    let padding = rest.iter().take(FILE_MAX).take_while(|&&b| b == b' ').count();
    let rest = rest.get(padding..)?.strip_prefix(b"|").filter(|_| blanks == 0 && padding > 0)?;
    rest.starts_with(b" ").then_some(rest)
}

/// Length of `12:` of grep -n, which puts no blank behind it.
fn line_number(text: &[u8]) -> Option<usize> {
    let digits = text.iter().take(WORD_MAX).take_while(|b| b.is_ascii_digit()).count();
    (digits > 0 && text.get(digits) == Some(&b':')).then_some(digits + 1)
}

/// End of a name of a file before a line that begins without a blank:
/// `trace.txt:12:kworker/-7`, `trace.txt:CPU:1`, `trace.txt:# tracer`, `trace.txt:[  100.000100]`, `trace.txt:29389 [000]`.
fn unblanked(word: &[u8], behind: &[u8]) -> Option<usize> {
    let colons = word.iter().enumerate().filter(|(_, b)| **b == b':').map(|(at, _)| at);
    colons.filter(|&at| at > 0).find_map(|at| {
        let rest = word.get(at + 1..)?;
        let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        if digits > 0 && rest.get(digits) == Some(&b':') {
            return Some(at + 1 + digits + 1);
        }
        let is_number = digits > 0 && digits == rest.len() && behind.starts_with(b" [");
        let is_start = [&b"CPU:"[..], b"#", b"["].iter().any(|start| rest.starts_with(start));
        (is_start || is_number).then_some(at + 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A prefix is taken off to its end, and blanks behind it are padding of the name.
    #[test]
    fn each_form_is_found() {
        for prefix in [
            "> ",
            "> > ",
            "<6>",
            "<30>[   37.123456] ",
            "kern  :warn  : [   37.123456] ",
            "[   37.123456][    C0] ",
            "[   37.123456] [    T1] ",
            "[Sat Nov 28 09:00:00 2026] ",
            "[Nov28 09:00] ",
            "[  +0.000012] ",
            "[   37.123456 <    0.000012>] ",
            "2026-11-28T09:00:00,123456+00:00 ",
            "[2026-11-28 09:00:00.123] ",
            "Nov 28 09:00:00 box kernel: ",
            "Nov  8 09:00:00 box kernel: [   37.123456] ",
            "Nov 28 09:00:00.123456 box kernel: ",
            "Sat 2026-11-28 09:00:00 UTC box kernel: ",
            "2026-11-28T09:00:00+0000 box kernel: ",
            "1764320400.123456 box kernel: ",
            "[   37.123456] box kernel: ",
            "Sat Nov 28 09:00:00 2026 kern.warn kernel: [   37.1] ",
            "11-28 09:00:00.123     0     0 W         : ",
            "11-28 09:00:00.123  root     0     0 W tag: ",
            "2026-11-28 09:00:00.123  1000  1000 W tag: ",
            "11-28 09:00:00.123 W/tag     (   12): ",
            "W/        (    0): ",
            "<6>[   37.123456]  [0:   swapper/0:    0] ",
            "<6>[   37.123456]  (0)[1:swapper/0] ",
            "trs.dat: ",
            "     a.dat: ",
            "dir/trace.txt:12: ",
            "guest_1  | [   37.1] ",
        ] {
            let line = format!("{prefix}    sh-12      0d..2. 37111110us : kfree: ptr=1");
            assert_eq!(
                String::from_utf8_lossy(without_prefix(line.as_bytes())),
                line[prefix.len()..],
                "{prefix}"
            );
        }
    }

    #[test]
    fn lines_without_a_prefix() {
        for line in [
            "[002] ....   808.188897: kfree: ptr=1",
            "    sh-12      0d..2. 37111110us : kfree: ptr=1",
            "  9.369102 |   3)     sh-121     |               |  /* kfree: ptr=1 */",
            "            sh 12 [000] 14276.797757: kmem:kfree: ptr=1",
            "<...>-12 [000] 1.5: kfree: ptr=1",
            "sh-12 [000] 1.5: kfree: ptr=1",
        ] {
            assert_eq!(String::from_utf8_lossy(without_prefix(line.as_bytes())), line);
        }
        // Each part has an end.
        for long in ["<", "[", ">", "kern", "Nov 28 ", "a", "9:", " ", "W/"] {
            let line = long.repeat(100_000);
            assert!(line.len() - without_prefix(line.as_bytes()).len() <= PARTS_MAX * (FILE_MAX + WORD_MAX));
        }
    }
}
