//! One line: who, where, when, what.

use super::columns::{number, without_end};
use super::frame::{chain, short_chain};
use super::layout::TextLayout;
use super::line_types::{EntryCounts, Parsed, TextLine};
use super::prefix::without_console;

/// Takes a line of a text with this layout apart.
pub fn parse<'a>(line: &'a [u8], layout: &TextLayout) -> Parsed<'a> {
    let line = without_end(line);
    // Before all else: a task may be called as another kind of line begins.
    if let Some(line) = layout.in_column(line) {
        return Parsed { line, is_ambiguous: false };
    }
    let rest = without_console(layout.part(line));
    if let Some(line) = without_event(rest) {
        return Parsed { line, is_ambiguous: false };
    }
    if layout.has_column() {
        if let Some(line) = chain(rest) {
            return Parsed { line, is_ambiguous: false };
        }
    }
    layout.rightmost(line).unwrap_or_else(|| {
        let line = chain(rest).or_else(|| short_chain(rest)).unwrap_or(TextLine::Other);
        Parsed { line, is_ambiguous: false }
    })
}

/// Lines that begin as no event does, as long as no task is called so.
fn without_event(line: &[u8]) -> Option<TextLine<'_>> {
    let start = line.trim_ascii_start();
    match start.first() {
        None => return Some(TextLine::Remark),
        Some(b'#') => return Some(remark(start)),
        Some(b'=') if start.starts_with(b"=> ") => {
            return Some(TextLine::Frame(start.get(3..).unwrap_or_default()));
        }
        _ => {}
    }
    /// Longer than any name of a task, or not one that is followed by a number.
    const REMARKS: [&[u8]; 4] =
        [b"cpus=", b"version = ", b"Dumping ftrace buffer:", b"(ftrace buffer empty)"];
    let is_remark = REMARKS.iter().any(|remark| start.starts_with(remark)) || is_switch(start);
    lost(start).or_else(|| log_gap(start)).or(is_remark.then_some(TextLine::Remark))
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

fn remark(line: &[u8]) -> TextLine<'_> {
    // "# entries-in-buffer/entries-written: 10458/10458   #P:1"
    const WRITTEN: &[u8] = b"entries-in-buffer/entries-written:";
    let counts = || {
        let at = line.windows(WRITTEN.len()).position(|w| w == WRITTEN)?;
        let counts = line.get(at + WRITTEN.len()..)?.trim_ascii_start();
        let counts = counts.split(|&b| b == b' ').next()?;
        let mut counts = counts.split(|&b| b == b'/').map(number);
        Some(TextLine::Written(EntryCounts { held: counts.next()??, written: counts.next()?? }))
    };
    counts().unwrap_or(TextLine::Remark)
}

/// "** 15 printk messages dropped **" of the kernel's console, and dmesg's like.
fn log_gap(line: &[u8]) -> Option<TextLine<'_>> {
    let inner = line.trim_ascii_end().strip_prefix(b"** ")?.strip_suffix(b"**")?.trim_ascii_end();
    let count = inner.strip_suffix(b" printk messages dropped")?;
    number(count).map(|_| TextLine::LogGap)
}

/// "CPU:2 [LOST 123 EVENTS]", "CPU:2 [LOST EVENTS]", trace-cmd's "CPU:2 [123 EVENTS DROPPED]".
fn lost(line: &[u8]) -> Option<TextLine<'_>> {
    // The name of a file may precede it, where trace-cmd reads several.
    let unnamed = || {
        let at = line.iter().position(|&b| b == b' ')?;
        line.get(..at)?.ends_with(b":").then(|| line.get(at..).unwrap_or_default().trim_ascii_start())
    };
    let rest = line.strip_prefix(b"CPU:").or_else(|| unnamed()?.strip_prefix(b"CPU:"))?;
    let blank = rest.iter().position(|&b| b == b' ')?;
    let cpu = number(rest.get(..blank)?)?;
    let what = rest.get(blank..)?.trim_ascii().strip_prefix(b"[")?.strip_suffix(b"]")?;
    let mut words = what.split(|&b| b == b' ');
    let is_loss = what.starts_with(b"LOST") || what.ends_with(b"DROPPED");
    is_loss.then(|| TextLine::Lost(u32::try_from(cpu).unwrap_or(u32::MAX), words.find_map(number)))
}

#[cfg(test)]
mod tests {
    use super::super::columns::Stamp;
    use super::super::line_types::TextEvent;
    use super::*;

    fn parse(line: &[u8]) -> TextLine<'_> {
        super::parse(line, &TextLayout::default()).line
    }

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
        let counts = EntryCounts { held: 15, written: 20 };
        assert_eq!(parse(b"# entries-in-buffer/entries-written: 15/20   #P:1"), TextLine::Written(counts));
        assert_eq!(parse(b"CPU:2 [LOST 123 EVENTS]"), TextLine::Lost(2, Some(123)));
        assert_eq!(parse(b"CPU:2 [LOST EVENTS]"), TextLine::Lost(2, None));
        assert_eq!(parse(b"CPU:1 [55 EVENTS DROPPED]"), TextLine::Lost(1, Some(55)));
        assert_eq!(parse(b"** 15 printk messages dropped **"), TextLine::LogGap);
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
