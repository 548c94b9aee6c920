//! One line: who, where, when, what.

use super::columns::{Stamp, comm_and_pid, event_column, next_word, number, process, stamp};
use super::graph::graph;
use super::line_types::{TextEvent, TextLine};

/// Takes a line apart.
pub fn parse(line: &[u8]) -> TextLine<'_> {
    let line = without_console(line.strip_suffix(b"\r").unwrap_or(line));
    let start = line.trim_ascii_start();
    match start.first() {
        None => return TextLine::Remark,
        Some(b'#') => return remark(start),
        Some(b'=') if start.starts_with(b"=> ") => {
            return TextLine::Frame(start.get(3..).unwrap_or_default());
        }
        _ => {}
    }
    if let Some(lost) = lost(start) {
        return lost;
    }
    if start.starts_with(b"cpus=") || start.starts_with(b"version = ") || is_switch(start) {
        return TextLine::Remark;
    }
    let found = brackets(line).or_else(|| graph(line)).or_else(|| latency(line).map(TextLine::Event));
    found.or_else(|| chain(line)).unwrap_or(TextLine::Other)
}

/// True if a line that is [`TextLine::Other`] looks like a torn event of the allocators.
pub fn could_be_event(line: &[u8]) -> bool {
    const NAMES: [&[u8]; 4] = [b"kmalloc", b"kfree:", b"kmem_cache_", b"mm_page_"];
    let has = |text: &[u8]| line.windows(text.len()).any(|w| w == text);
    !line.trim_ascii_start().starts_with(b"#") && NAMES.iter().any(|name| has(name)) && has(b": ")
}

/// Without what a console puts before a line: `<6>`, `[   12.345690] `.
fn without_console(line: &[u8]) -> &[u8] {
    fn behind(line: &[u8], open: u8, close: u8) -> Option<&[u8]> {
        let inner = line.strip_prefix(&[open])?;
        let end = inner.iter().take(24).position(|&b| b == close)?;
        let digits = inner.get(..end)?.trim_ascii();
        let is_number = !digits.is_empty() && digits.iter().all(|b| b.is_ascii_digit() || *b == b'.');
        inner.get(end + 1..).filter(|_| is_number)
    }
    let rest = behind(line, b'<', b'>').unwrap_or(line);
    behind(rest, b'[', b']').filter(|rest| rest.starts_with(b" ")).unwrap_or(line)
}

/// ` 1)    <idle>-0    =>   kworker-41`, and the lines around it.
fn is_switch(line: &[u8]) -> bool {
    let behind_cpu = || {
        let close = line.iter().take(8).position(|&b| b == b')')?;
        number(line.get(..close)?)?;
        line.windows(4).position(|w| w == b" => ")
    };
    line.trim_ascii_end().iter().all(|&b| b == b'-') || behind_cpu().is_some()
}

/// `ffffffff8149a2b1 kmem_cache_alloc+0x1b1 ([kernel.kallsyms])`.
fn chain(line: &[u8]) -> Option<TextLine<'_>> {
    line.first().filter(|b| b.is_ascii_whitespace())?;
    let mut rest = line;
    let word = next_word(&mut rest)?;
    let is_address = (8..=16).contains(&word.len()) && word.iter().all(u8::is_ascii_hexdigit);
    let address = u64::from_str_radix(std::str::from_utf8(word).ok().filter(|_| is_address)?, 16).ok()?;
    let rest = rest.trim_ascii();
    let (symbol, object) = match rest.iter().rposition(|&b| b == b'(') {
        Some(at) => (rest.get(..at)?.trim_ascii_end(), rest.get(at..)?),
        None => (rest, &b""[..]),
    };
    let is_whole = object.ends_with(b")") || object.is_empty() && !symbol.contains(&b' ');
    let is_user = [&b"([vdso"[..], b"([unknown", b"([stack"].iter().any(|u| object.starts_with(u));
    let is_kernel = object.is_empty() || object.starts_with(b"([") && !is_user;
    let symbol = Some(symbol).filter(|s| !s.is_empty() && !s.starts_with(b"["));
    is_whole.then_some(TextLine::Chain(if is_kernel { address } else { 0 }, symbol))
}

fn remark(line: &[u8]) -> TextLine<'_> {
    // "# entries-in-buffer/entries-written: 10458/10458   #P:1"
    const WRITTEN: &[u8] = b"entries-in-buffer/entries-written:";
    let counts = || {
        let at = line.windows(WRITTEN.len()).position(|w| w == WRITTEN)?;
        let counts = line.get(at + WRITTEN.len()..)?.trim_ascii_start();
        let counts = counts.split(|&b| b == b' ').next()?;
        let mut counts = counts.split(|&b| b == b'/').map(number);
        Some(TextLine::Written(counts.next()??, counts.next()??))
    };
    counts().unwrap_or(TextLine::Remark)
}

/// "CPU:2 [LOST 123 EVENTS]", "CPU:2 [LOST EVENTS]", trace-cmd's "CPU:2 [123 EVENTS DROPPED]".
fn lost(line: &[u8]) -> Option<TextLine<'_>> {
    let rest = line.strip_prefix(b"CPU:")?;
    let blank = rest.iter().position(|&b| b == b' ')?;
    let cpu = number(rest.get(..blank)?)?;
    let what = rest.get(blank..)?.trim_ascii().strip_prefix(b"[")?.strip_suffix(b"]")?;
    let mut words = what.split(|&b| b == b' ');
    let is_loss = what.starts_with(b"LOST") || what.ends_with(b"DROPPED");
    is_loss.then(|| TextLine::Lost(u32::try_from(cpu).unwrap_or(u32::MAX), words.find_map(number)))
}

/// `COMM-PID (TGID) [CPU] FLAGS TIME: EVENT: TEXT`, without some of the columns.
fn brackets(line: &[u8]) -> Option<TextLine<'_>> {
    /// Last possible offset of the CPU: after a name of 15 bytes and columns of numbers.
    const HEAD_LEN: usize = 256;
    let head = line.get(..line.len().min(HEAD_LEN))?;
    let mut from = 0;
    while let Some(open) = head.get(from..)?.iter().position(|&b| b == b'[').map(|at| from + at) {
        if let Some(event) = around(line, open) {
            return Some(event);
        }
        from = open + 1;
    }
    None
}

/// An event whose CPU is in the brackets that open there.
fn around(line: &[u8], open: usize) -> Option<TextLine<'_>> {
    let left = line.get(..open)?;
    if !left.ends_with(b" ") && !left.ends_with(b"\t") {
        return None;
    }
    let right = line.get(open + 1..)?;
    let close = right.iter().take(8).position(|&b| b == b']')?;
    let cpu = u32::try_from(number(right.get(..close)?)?).ok()?;
    let mut rest = right.get(close + 1..)?;
    let (task, tgid) = process(left.trim_ascii_end());
    let (comm, pid) = comm_and_pid(task)?;
    let mut word = next_word(&mut rest)?;
    let mut flags: &[u8] = b"";
    if stamp(word).is_none() {
        flags = word;
        word = next_word(&mut rest)?;
        // A latency trace with -v has a second column of times; trace-cmd may print the flags in two parts.
        if stamp(word).is_none() {
            word = next_word(&mut rest)?;
        }
    }
    let (stamp, behind) = stamp(word)?;
    // Some clocks leave no blank between the time and the event.
    let text = if behind.is_empty() { rest } else { line.get(line.len() - rest.len() - behind.len()..)? };
    let head = TextEvent { comm, pid, tgid, cpu, flags, stamp, system: None, name: b"", text: b"" };
    behind_columns(head, text)
}

/// The event, or the function, after the columns that all lines have.
fn behind_columns<'a>(head: TextEvent<'a>, text: &'a [u8]) -> Option<TextLine<'a>> {
    if let Some((system, name, text)) = event_column(text) {
        return Some(TextLine::Event(TextEvent { system, name, text, ..head }));
    }
    let text = text.trim_ascii();
    let at = text.windows(3).position(|w| w == b" <-")?;
    let (function, caller) = (text.get(..at)?, text.get(at + 3..)?);
    let event = TextEvent { system: Some(b"ftrace"), name: b"function", text: b"", ..head };
    (!function.is_empty()).then_some(TextLine::Function(event, function, caller))
}

/// The latency format: `COMM-PID CPUFLAGS TIMEus: EVENT: TEXT`; trace-cmd has seconds there.
fn latency(line: &[u8]) -> Option<TextEvent<'_>> {
    /// Last possible offset of the time.
    const HEAD_LEN: usize = 96;
    let head = line.get(..line.len().min(HEAD_LEN))?;
    // A task may be called dbus-daemon: of several places the first that is a time.
    let mut places = head.windows(2).enumerate().filter(|(_, w)| *w == b"us").map(|(at, _)| at);
    places.find_map(|us| latency_at(line, us)).or_else(|| latency_in_seconds(line, head))
}

/// `COMM-PID CPUFLAGS SECONDS.FRACTION: EVENT: TEXT`, as `trace-cmd report -l` prints it.
fn latency_in_seconds<'a>(line: &'a [u8], head: &[u8]) -> Option<TextEvent<'a>> {
    let colon = head.windows(2).position(|w| w == b": ")?;
    let start = line.get(..colon)?.iter().rposition(|&b| b == b' ')? + 1;
    let (stamp, _) = stamp(line.get(start..=colon)?)?;
    latency_event(line.get(..start)?.trim_ascii_end(), stamp, line.get(colon + 1..)?)
}

fn latency_at(line: &[u8], us: usize) -> Option<TextEvent<'_>> {
    let head = line.get(..us)?;
    let colon = line.get(us..)?.iter().take(6).position(|&b| b == b':')? + us;
    let digits = head.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    let time = number(head.get(head.len() - digits..)?)?;
    let head = head.get(..head.len() - digits)?.trim_ascii_end();
    let stamp = Stamp::Time(time.checked_mul(1000)?, 6);
    latency_event(head, stamp, line.get(colon + 1..)?)
}

/// `COMM-PID CPUFLAGS`, when, and `EVENT: TEXT`.
fn latency_event<'a>(mut head: &'a [u8], stamp: Stamp, text: &'a [u8]) -> Option<TextEvent<'a>> {
    let last = head.iter().rposition(|&b| b == b' ')? + 1;
    let word = head.get(last..)?;
    let cpu_len = word.iter().take_while(|b| b.is_ascii_digit()).count();
    let cpu = u32::try_from(number(word.get(..cpu_len)?)?).ok()?;
    let flags = word.get(cpu_len..)?;
    head = head.get(..last)?.trim_ascii_end();
    let (comm, pid) = comm_and_pid(head)?;
    let (system, name, text) = event_column(text)?;
    Some(TextEvent { comm, pid, tgid: None, cpu, flags, stamp, system, name, text })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(line: &str) -> TextEvent<'_> {
        match parse(line.as_bytes()) {
            TextLine::Event(event) => event,
            other => panic!("{line:?}: {other:?}"),
        }
    }

    #[test]
    fn columns_of_all_times() {
        for (line, comm, pid, cpu, flags, stamp) in [
            (
                "            init-1     [000] .N..     0.150000: kfree: ptr=1",
                "init",
                1,
                0,
                ".N..",
                Stamp::Time(150_000_000, 6),
            ),
            (
                "            bash-1234  [001]  1234.567890: kfree: ptr=1",
                "bash",
                1234,
                1,
                "",
                Stamp::Time(1_234_567_890_000, 6),
            ),
            (
                "     kworker/1:1-43      [001] d..3.    11.162526: kfree: ptr=1",
                "kworker/1:1",
                43,
                1,
                "d..3.",
                Stamp::Time(11_162_526_000, 6),
            ),
            (
                "     a b-7 [0]-9 (   12) [003] ....1     1.000001: kfree: ptr=1",
                "a b-7 [0]",
                9,
                3,
                "....1",
                Stamp::Time(1_000_001_000, 6),
            ),
            (
                "          <idle>-0       (-------) [001] ..s..     6.080585: kfree: ptr=1",
                "<idle>",
                0,
                1,
                "..s..",
                Stamp::Time(6_080_585_000, 6),
            ),
            (
                "              sh-121   [002]     8.702993123: kfree:    ptr=1",
                "sh",
                121,
                2,
                "",
                Stamp::Time(8_702_993_123, 9),
            ),
            (
                "            perf 21289 [000] 14276.797757:          kmem:kfree: ptr=1",
                "perf",
                21289,
                0,
                "",
                Stamp::Time(14_276_797_757_000, 6),
            ),
            (
                "            perf 7/8 [000] 14276.797757: kmem:kfree: ptr=1",
                "perf",
                8,
                0,
                "",
                Stamp::Time(14_276_797_757_000, 6),
            ),
            (
                "              sh-121   [002] d..1. 123456789: kfree: ptr=1",
                "sh",
                121,
                2,
                "d..1.",
                Stamp::Count(123_456_789),
            ),
            (
                "     9.369102 |   3)     sh-121     |               |  /* kfree: ptr=1 */",
                "sh",
                121,
                3,
                "",
                Stamp::Time(9_369_102_000, 6),
            ),
            ("      sh-121     2d..1  123us : kfree: ptr=1", "sh", 121, 2, "d..1", Stamp::Time(123_000, 6)),
            ("      sh-121     2d..1. 45us+: kfree: ptr=1", "sh", 121, 2, "d..1.", Stamp::Time(45_000, 6)),
        ] {
            let found = event(line);
            let columns = (found.comm, found.pid, found.cpu, found.flags, found.stamp);
            assert_eq!(columns, (comm.as_bytes(), pid, cpu, flags.as_bytes(), stamp), "{line}");
            assert_eq!((found.name, found.text), (&b"kfree"[..], &b"ptr=1"[..]), "{line}");
        }
        assert_eq!(event("            perf 1 [000] 1.5: kmem:kfree: ptr=1").system, Some(&b"kmem"[..]));
        assert_eq!(event("     a-9 (   12) [003] ....1     1.000001: kfree: ptr=1").tgid, Some(12));
    }

    #[test]
    fn lines_that_are_no_events() {
        assert_eq!(parse(b""), TextLine::Remark);
        assert_eq!(parse(b"# tracer: nop"), TextLine::Remark);
        assert_eq!(parse(b"# entries-in-buffer/entries-written: 15/20   #P:1"), TextLine::Written(15, 20));
        assert_eq!(parse(b"CPU:2 [LOST 123 EVENTS]"), TextLine::Lost(2, Some(123)));
        assert_eq!(parse(b"CPU:2 [LOST EVENTS]"), TextLine::Lost(2, None));
        assert_eq!(parse(b"CPU:1 [55 EVENTS DROPPED]"), TextLine::Lost(1, Some(55)));
        assert_eq!(parse(b" => do_sys_open"), TextLine::Frame(b"do_sys_open"));
        assert_eq!(parse(b"some words"), TextLine::Other);
        assert_eq!(parse(b" ------------------------------------------"), TextLine::Remark);
        assert_eq!(parse(b" 1)    <idle>-0    =>   kworker-41  "), TextLine::Remark);
        let TextLine::Function(event, function, caller) =
            parse(b"      sh-121   [002] d..1. 1.5: schedule <-do_idle")
        else {
            panic!("no function");
        };
        assert_eq!((event.pid, function, caller), (121, &b"schedule"[..], &b"do_idle"[..]));
    }

    #[test]
    fn frames_of_perf() {
        let chain = |line: &str| match parse(line.as_bytes()) {
            TextLine::Chain(address, symbol) => {
                (address, symbol.map(|s| String::from_utf8_lossy(s).into_owned()))
            }
            other => panic!("{line:?}: {other:?}"),
        };
        assert_eq!(
            chain("        ffffffff8149a2b1 kmem_cache_alloc+0x1b1 ([kernel.kallsyms])"),
            (0xffff_ffff_8149_a2b1, Some("kmem_cache_alloc+0x1b1".to_owned()))
        );
        assert_eq!(chain("            7f22d0da3b0b [unknown] (/usr/lib/libc.so.6)").0, 0);
        assert_eq!(chain("        ffffffffc0123456 [unknown] ([ext4])"), (0xffff_ffff_c012_3456, None));
    }

    #[test]
    fn tasks_and_consoles_that_look_like_columns() {
        for line in [
            "  dbus-daemon-121     2d..1. 45us+: kfree: ptr=1",
            "[   12.345690]  dbus-daemon-121     2d..1. 45us+: kfree: ptr=1",
            "<6>[   12.345690]  dbus-daemon-121     2d..1. 45us+: kfree: ptr=1",
        ] {
            let found = event(line);
            let columns = (found.comm, found.pid, found.cpu, found.flags, found.stamp);
            assert_eq!(
                columns,
                (&b"dbus-daemon"[..], 121, 2, &b"d..1."[..], Stamp::Time(45_000, 6)),
                "{line}"
            );
        }
        assert_eq!(
            event("      sh-121     2d..1. 1234.500000: kfree: ptr=1").stamp,
            Stamp::Time(1_234_500_000_000, 6)
        );
    }
}
