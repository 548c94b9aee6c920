//! One line: who, where, when, what.

/// A line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line<'a> {
    /// An event.
    Event(Event<'a>),
    /// Events of a CPU were lost before the next one of it; `None` where nobody counted.
    Lost(u32, Option<u64>),
    /// How many events the buffer held and how many were written to it.
    Written(u64, u64),
    /// A frame of the stack that the event before has.
    Frame(&'a [u8]),
    /// A comment, an annotation, an empty line.
    Remark,
    /// None of these.
    Other,
}

/// When.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stamp {
    /// Nanoseconds, and how many digits behind the point were told.
    Time(u64, u8),
    /// A number in the unit of a clock that counts otherwise.
    Count(u64),
}

/// An event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// Name of the task.
    pub comm: &'a [u8],
    /// Thread id.
    pub pid: i32,
    /// Process id, where the text has that column.
    pub tgid: Option<i32>,
    /// CPU.
    pub cpu: u32,
    /// Columns of flags: irqs-off, need-resched, hardirq/softirq, preempt-depth, migrate-disable.
    pub flags: &'a [u8],
    /// When.
    pub stamp: Stamp,
    /// System, where the text tells it.
    pub system: Option<&'a [u8]>,
    /// Name of the event.
    pub name: &'a [u8],
    /// What the event says.
    pub text: &'a [u8],
}

/// Takes a line apart.
pub fn parse(line: &[u8]) -> Line<'_> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let start = line.trim_ascii_start();
    match start.first() {
        None => return Line::Remark,
        Some(b'#') => return remark(start),
        Some(b'=') if start.starts_with(b"=> ") => return Line::Frame(start.get(3..).unwrap_or_default()),
        _ => {}
    }
    if let Some(lost) = lost(start) {
        return lost;
    }
    if start.starts_with(b"cpus=") || start.starts_with(b"version = ") {
        return Line::Remark;
    }
    brackets(line).or_else(|| graph(line)).or_else(|| latency(line)).map_or(Line::Other, Line::Event)
}

fn remark(line: &[u8]) -> Line<'_> {
    // "# entries-in-buffer/entries-written: 10458/10458   #P:1"
    const WRITTEN: &[u8] = b"entries-in-buffer/entries-written:";
    let counts = || {
        let at = line.windows(WRITTEN.len()).position(|w| w == WRITTEN)?;
        let counts = line.get(at + WRITTEN.len()..)?.trim_ascii_start();
        let counts = counts.split(|&b| b == b' ').next()?;
        let mut counts = counts.split(|&b| b == b'/').map(number);
        Some(Line::Written(counts.next()??, counts.next()??))
    };
    counts().unwrap_or(Line::Remark)
}

/// "CPU:2 [LOST 123 EVENTS]", "CPU:2 [LOST EVENTS]", trace-cmd's "CPU:2 [123 EVENTS DROPPED]".
fn lost(line: &[u8]) -> Option<Line<'_>> {
    let rest = line.strip_prefix(b"CPU:")?;
    let blank = rest.iter().position(|&b| b == b' ')?;
    let cpu = number(rest.get(..blank)?)?;
    let what = rest.get(blank..)?.trim_ascii().strip_prefix(b"[")?.strip_suffix(b"]")?;
    let mut words = what.split(|&b| b == b' ');
    let is_loss = what.starts_with(b"LOST") || what.ends_with(b"DROPPED");
    is_loss.then(|| Line::Lost(u32::try_from(cpu).unwrap_or(u32::MAX), words.find_map(number)))
}

/// `COMM-PID (TGID) [CPU] FLAGS TIME: EVENT: TEXT`, without some of the columns.
fn brackets(line: &[u8]) -> Option<Event<'_>> {
    /// Where the CPU stands at the latest: behind a name of 15 bytes and columns of numbers.
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

/// An event whose CPU stands in the brackets that open there.
fn around(line: &[u8], open: usize) -> Option<Event<'_>> {
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
    let (system, name, text) = what(text)?;
    Some(Event { comm, pid, tgid, cpu, flags, stamp, system, name, text })
}

/// The latency format: `COMM-PID CPU FLAGS TIMEus: EVENT: TEXT`.
fn latency(line: &[u8]) -> Option<Event<'_>> {
    let us = line.windows(2).take(80).position(|w| w == b"us")?;
    let head = line.get(..us)?;
    let colon = line.get(us..)?.iter().take(6).position(|&b| b == b':')? + us;
    let digits = head.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    let time = number(head.get(head.len() - digits..)?)?;
    let mut head = head.get(..head.len() - digits)?.trim_ascii_end();
    let last = head.iter().rposition(|&b| b == b' ')? + 1;
    let word = head.get(last..)?;
    let cpu_len = word.iter().take_while(|b| b.is_ascii_digit()).count();
    let cpu = u32::try_from(number(word.get(..cpu_len)?)?).ok()?;
    let flags = word.get(cpu_len..)?;
    head = head.get(..last)?.trim_ascii_end();
    let (comm, pid) = comm_and_pid(head)?;
    let (system, name, text) = what(line.get(colon + 1..)?)?;
    let stamp = Stamp::Time(time.checked_mul(1000)?, 6);
    Some(Event { comm, pid, tgid: None, cpu, flags, stamp, system, name, text })
}

/// The function graph tracer, with times and tasks: `TIME |  CPU)  COMM-PID  FLAGS |  DURATION |  /* EVENT: TEXT */`.
fn graph(line: &[u8]) -> Option<Event<'_>> {
    let open = line.windows(3).take(512).position(|w| w == b"/* ")?;
    let text = line.get(open + 3..)?.trim_ascii_end().strip_suffix(b"*/")?.trim_ascii_end();
    let mut columns = line.get(..open)?.split(|&b| b == b'|');
    let (stamp, _) = stamp(&[columns.next()?.trim_ascii(), b":"].concat()).map(|(s, _)| (s, ()))?;
    let mut rest = columns.next()?;
    let cpu = next_word(&mut rest)?.strip_suffix(b")")?;
    let cpu = u32::try_from(number(cpu)?).ok()?;
    let (comm, pid) = comm_and_pid(rest.trim_ascii())?;
    let flags = columns.next().map(|c| c.trim_ascii()).filter(|c| !c.is_empty() && !c.ends_with(b"us"));
    let (system, name, text) = what(text)?;
    Some(Event { comm, pid, tgid: None, cpu, flags: flags.unwrap_or_default(), stamp, system, name, text })
}

/// System if told, event, text.
type What<'a> = (Option<&'a [u8]>, &'a [u8], &'a [u8]);

/// `EVENT: TEXT`, or `SYSTEM:EVENT: TEXT`.
fn what(text: &[u8]) -> Option<What<'_>> {
    let text = text.trim_ascii_start();
    if text.starts_with(b"<stack trace>") {
        return Some((None, b"kernel_stack", b""));
    }
    let is_name = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'.' || b == b'-';
    let end = text.iter().position(|&b| !is_name(b))?;
    let (mut system, mut name) = (None, text.get(..end)?);
    let mut rest = text.get(end..)?.strip_prefix(b":")?;
    // "kmem:kmalloc:", while "x:1" after an event's name is its text.
    if let Some(end) = rest.iter().position(|&b| !is_name(b)).filter(|&end| end > 0) {
        if rest.get(end) == Some(&b':') {
            (system, name) = (Some(name), rest.get(..end)?);
            rest = rest.get(end + 1..)?;
        }
    }
    (!name.is_empty()).then(|| (system, name, rest.trim_ascii_start()))
}

/// Takes `(TGID)` off the end.
fn process(left: &[u8]) -> (&[u8], Option<i32>) {
    let inner = || {
        let open = left.strip_suffix(b")")?;
        let at = open.iter().rposition(|&b| b == b'(')?;
        let inner = open.get(at + 1..)?.trim_ascii();
        let is_tgid = !inner.is_empty() && inner.iter().all(|b| b.is_ascii_digit() || *b == b'-');
        is_tgid.then(|| (left.get(..at).unwrap_or_default().trim_ascii_end(), number(inner)))
    };
    match inner() {
        Some((left, tgid)) => (left, tgid.and_then(|n| i32::try_from(n).ok())),
        None => (left, None),
    }
}

/// `COMM-PID`, or perf's `COMM PID` and `COMM PID/TID`.
fn comm_and_pid(task: &[u8]) -> Option<(&[u8], i32)> {
    let digits = task.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    let at = task.len() - digits;
    let pid = i32::try_from(number(task.get(at..)?)?).ok()?;
    let mut comm = task.get(..at)?;
    match comm.last()? {
        b'/' => {
            comm = comm.strip_suffix(b"/")?;
            let digits = comm.iter().rev().take_while(|b| b.is_ascii_digit()).count();
            comm = comm.get(..comm.len() - digits)?;
            comm.ends_with(b" ").then_some(())?;
        }
        b'-' => comm = comm.strip_suffix(b"-")?,
        b' ' | b'\t' => {}
        _ => return None,
    }
    Some((comm.trim_ascii(), pid))
}

fn next_word<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let start = rest.trim_ascii_start();
    let end = start.iter().position(|b| b.is_ascii_whitespace()).unwrap_or(start.len());
    let word = start.get(..end).filter(|w| !w.is_empty())?;
    *rest = start.get(end..)?;
    Some(word)
}

/// `12.345678:` or `123456:`, and what follows the colon.
fn stamp(word: &[u8]) -> Option<(Stamp, &[u8])> {
    let colon = word.iter().position(|&b| b == b':')?;
    let (time, behind) = (word.get(..colon)?, word.get(colon + 1..)?);
    let Some(point) = time.iter().position(|&b| b == b'.') else {
        return Some((Stamp::Count(number(time)?), behind));
    };
    let (seconds, fraction) = (number(time.get(..point)?)?, time.get(point + 1..)?);
    let digits = u32::try_from(fraction.len()).ok().filter(|d| (1..=9).contains(d))?;
    let ns = number(fraction)?.checked_mul(10u64.pow(9 - digits))?;
    let time = seconds.checked_mul(1_000_000_000)?.checked_add(ns)?;
    Some((Stamp::Time(time, digits as u8), behind))
}

/// A decimal number and nothing else.
fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |sum, &b| {
        let digit = b.checked_sub(b'0').filter(|&d| d < 10)?;
        sum.checked_mul(10)?.checked_add(digit.into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(line: &str) -> Event<'_> {
        match parse(line.as_bytes()) {
            Line::Event(event) => event,
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
            let told = (found.comm, found.pid, found.cpu, found.flags, found.stamp);
            assert_eq!(told, (comm.as_bytes(), pid, cpu, flags.as_bytes(), stamp), "{line}");
            assert_eq!((found.name, found.text), (&b"kfree"[..], &b"ptr=1"[..]), "{line}");
        }
        assert_eq!(event("            perf 1 [000] 1.5: kmem:kfree: ptr=1").system, Some(&b"kmem"[..]));
        assert_eq!(event("     a-9 (   12) [003] ....1     1.000001: kfree: ptr=1").tgid, Some(12));
    }

    #[test]
    fn lines_that_are_no_events() {
        assert_eq!(parse(b""), Line::Remark);
        assert_eq!(parse(b"# tracer: nop"), Line::Remark);
        assert_eq!(parse(b"# entries-in-buffer/entries-written: 15/20   #P:1"), Line::Written(15, 20));
        assert_eq!(parse(b"CPU:2 [LOST 123 EVENTS]"), Line::Lost(2, Some(123)));
        assert_eq!(parse(b"CPU:2 [LOST EVENTS]"), Line::Lost(2, None));
        assert_eq!(parse(b"CPU:1 [55 EVENTS DROPPED]"), Line::Lost(1, Some(55)));
        assert_eq!(parse(b" => do_sys_open"), Line::Frame(b"do_sys_open"));
        assert_eq!(parse(b"some words"), Line::Other);
        assert_eq!(parse(b"      sh-121   [002] 1.5: schedule <-do_idle"), Line::Other);
    }
}
