//! Readings of a line: all ways to find the columns of an event in it. Names of tasks hold any bytes, up to 15.

use super::columns::{Stamp, TaskColumn, comm_and_pid, event_column, next_word, number, process, stamp};
use super::frame::without_instruction;
use super::graph::graph;
use super::line_types::{CPUS_MAX, NO_TASK, Style, TextEvent, TextLine};

use super::perf_record::perf_record;
use super::verbose::verbose;

/// One way to read a line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading<'a> {
    /// Order of its columns.
    pub style: Style,
    /// Offsets of the end of the name: the first and the last possible one.
    pub ends: (usize, usize),
    /// The event.
    pub line: TextLine<'a>,
}

impl<'a> Reading<'a> {
    /// True if the name may end there.
    pub fn ends_at(&self, column: usize) -> bool {
        (self.ends.0..=self.ends.1).contains(&column)
    }

    /// This reading with the name up to a column: blanks at the end of the name belong to it.
    pub fn with_end(mut self, line: &'a [u8], column: usize) -> Self {
        if let (Style::Blank, TextLine::Event(event) | TextLine::Function(event, ..)) =
            (self.style, &mut self.line)
        {
            event.comm = line.get(..column).unwrap_or_default().trim_ascii_start();
        }
        self
    }
}

/// All readings, of each style from left to right.
pub(super) fn readings<'a>(line: &'a [u8], found: &mut dyn FnMut(Reading<'a>)) {
    let mut has_task = false;
    // Dash and Blank are read together.
    for style in [Style::Dash, Style::Latency, Style::Verbose, Style::Graph] {
        each(style, line, &mut |reading| {
            has_task = true;
            found(reading);
        });
    }
    // A task may be called as the columns of a line without one.
    if !has_task {
        each(Style::Tid, line, found);
        each(Style::NoTask, line, found);
    }
}

/// Readings of one style.
pub(super) fn readings_of<'a>(style: Style, line: &'a [u8], found: &mut dyn FnMut(Reading<'a>)) {
    each(style, line, &mut |reading| {
        if reading.style == style {
            found(reading);
        }
    });
}

fn each<'a>(style: Style, line: &'a [u8], found: &mut dyn FnMut(Reading<'a>)) {
    let one = |line| Reading { style, ends: (0, 0), line };
    match style {
        Style::Dash | Style::Blank => brackets(line, found),
        Style::Latency => latency(line, found),
        Style::Graph => graph(line).map(one).into_iter().for_each(found),
        Style::NoTask => without_task(line).map(one).into_iter().for_each(found),
        Style::Tid => without_name(line).map(one).into_iter().for_each(found),
        Style::Verbose => {
            let reading = verbose(line).map(|(end, line)| Reading { style, ends: (end, end), line });
            reading.into_iter().for_each(found);
        }
    }
}

/// `[CPU] FLAGS TIME: EVENT: TEXT`.
fn without_task(line: &[u8]) -> Option<TextLine<'_>> {
    let open =
        line.iter().position(|b| !b.is_ascii_whitespace()).filter(|&at| line.get(at) == Some(&b'['))?;
    behind_task(line, open, TextEvent { pid: NO_TASK, comm: b"<...>", ..TextEvent::EMPTY })
}

/// `TID [CPU] TIME: SYSTEM:EVENT: TEXT`, or `PID/TID [CPU] ...`.
fn without_name(line: &[u8]) -> Option<TextLine<'_>> {
    let mut rest = line;
    let word = next_word(&mut rest)?;
    let mut numbers = word.split(|&b| b == b'/').map(|digits| i32::try_from(number(digits)?).ok());
    let (first, second) = (numbers.next()??, numbers.next());
    let (tgid, pid) = match second {
        Some(tid) => (Some(first), tid?),
        None => (None, first),
    };
    let open = line.len() - rest.trim_ascii_start().len();
    let read = behind_task(line, open, TextEvent { pid, tgid, comm: b"<...>", ..TextEvent::EMPTY })?;
    // Only perf prints the system, and can leave the name out.
    matches!(read, TextLine::Event(TextEvent { system: Some(_), .. })).then_some(read)
}

/// `COMM-PID (TGID) [CPU] FLAGS TIME: EVENT: TEXT`, without some of the columns.
fn brackets<'a>(line: &'a [u8], found: &mut dyn FnMut(Reading<'a>)) {
    /// Last possible offset of the CPU: after a name of 15 bytes and columns of numbers.
    const HEAD_LEN: usize = 256;
    for (open, _) in line.iter().take(HEAD_LEN).enumerate().filter(|(_, b)| **b == b'[') {
        if let Some(reading) = around(line, open) {
            found(reading);
        }
    }
}

/// An event whose CPU is in the brackets that open there.
fn around(line: &[u8], open: usize) -> Option<Reading<'_>> {
    let left = line.get(..open)?;
    if !left.ends_with(b" ") && !left.ends_with(b"\t") {
        return None;
    }
    let (task, tgid) = process(left.trim_ascii_end());
    let TaskColumn { comm, pid, has_dash, ends } = comm_and_pid(task)?;
    // A name of no letters is 16 blanks; fewer are those of a number that stands alone.
    const NAME_AND_NUMBER: usize = 20;
    if comm.is_empty() && !has_dash && open < NAME_AND_NUMBER {
        return None;
    }
    let style = if has_dash { Style::Dash } else { Style::Blank };
    let line = behind_task(line, open, TextEvent { comm, pid, tgid, ..TextEvent::EMPTY })?;
    Some(Reading { style, ends, line })
}

/// The rest of a line from the brackets on that have the CPU.
fn behind_task<'a>(line: &'a [u8], open: usize, head: TextEvent<'a>) -> Option<TextLine<'a>> {
    let right = line.get(open..)?.strip_prefix(b"[")?;
    let close = right.iter().take(8).position(|&b| b == b']')?;
    let cpu = u32::try_from(number(right.get(..close)?)?).ok()?;
    let mut rest = right.get(close + 1..)?;
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
    behind_columns(TextEvent { cpu, flags, stamp, ..head }, text)
}

/// The event, or the function, after the columns that all lines have.
fn behind_columns<'a>(head: TextEvent<'a>, text: &'a [u8]) -> Option<TextLine<'a>> {
    if let Some(record) = perf_record(&head, text) {
        return Some(record);
    }
    if let Some((system, name, text)) = event_column(text)
        .or_else(|| event_column(behind_number(text)?))
        .or_else(|| event_column(behind_branch(text)?))
    {
        // Of all tools only perf prints the system.
        let text = if system.is_some() { without_instruction(text) } else { text };
        return Some(TextLine::Event(TextEvent { system, name, text, ..head }));
    }
    let text = text.trim_ascii();
    let at = text.windows(3).position(|w| w == b" <-")?;
    let (function, caller) = (text.get(..at)?, text.get(at + 3..)?);
    let event = TextEvent { system: Some(b"ftrace"), name: b"function", text: b"", ..head };
    (!function.is_empty()).then_some(TextLine::Function(event, function, caller))
}

/// What follows a column of numbers between time and event: `(+123)` of trace-cmd's --ts-diff, a period of perf.
fn behind_number(text: &[u8]) -> Option<&[u8]> {
    let mut rest = text;
    let word = next_word(&mut rest)?;
    let inner = word.strip_prefix(b"(").and_then(|inner| inner.strip_suffix(b")")).unwrap_or(word);
    let digits = inner.strip_prefix(b"+").or_else(|| inner.strip_prefix(b"-")).unwrap_or(inner);
    number(digits).map(|_| rest)
}

/// What follows the kind of a branch, which perf script prints with -F +flags: `tr strt jmp`, `int`, `call (x)`; a period may
/// stand before or behind it.
///
/// Source: `perf_sample__fprintf_flags` and `sample_flags`, tools/perf 4.0 to 7.0.
fn behind_branch(text: &[u8]) -> Option<&[u8]> {
    const KINDS: [&[u8]; 18] = [
        b"call", b"return", b"jcc", b"jmp", b"int", b"iret", b"syscall", b"sysret", b"async", b"hw", b"tx",
        b"abrt", b"tr", b"strt", b"start", b"end", b"vmentry", b"vmexit",
    ];
    let is_kind = |word: &[u8]| {
        KINDS.contains(&word) || word.starts_with(b"(") && word.ends_with(b")") && word.len() <= 6
    };
    let mut rest = behind_number(text).unwrap_or(text);
    let mut count = 0;
    loop {
        let mut behind = rest;
        if !next_word(&mut behind).is_some_and(is_kind) {
            break;
        }
        (rest, count) = (behind, count + 1);
    }
    (1..=5).contains(&count).then(|| behind_number(rest).unwrap_or(rest))
}

/// The latency format: `COMM-PID CPUFLAGS TIMEus: EVENT: TEXT`; trace-cmd has `SECONDS.FRACTION` there.
fn latency<'a>(line: &'a [u8], found: &mut dyn FnMut(Reading<'a>)) {
    /// Last possible offset of the time.
    const HEAD_LEN: usize = 96;
    for at in 0..line.len().min(HEAD_LEN) {
        let reading = match line.get(at..at + 2) {
            Some(b"us") => latency_at(line, at),
            Some(b": ") => latency_in_seconds(line, at),
            _ => None,
        };
        reading.into_iter().for_each(&mut *found);
    }
}

/// Seconds before a colon.
fn latency_in_seconds(line: &[u8], colon: usize) -> Option<Reading<'_>> {
    let start = line.get(..colon)?.iter().rposition(|&b| b == b' ')? + 1;
    let (stamp, _) = stamp(line.get(start..=colon)?).filter(|(stamp, _)| matches!(stamp, Stamp::Time(..)))?;
    latency_event(line.get(..start)?.trim_ascii_end(), stamp, line.get(colon + 1..)?)
}

/// Microseconds before `us`.
fn latency_at(line: &[u8], us: usize) -> Option<Reading<'_>> {
    let head = line.get(..us)?;
    let colon = line.get(us..)?.iter().take(6).position(|&b| b == b':')? + us;
    let digits = head.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    let time = number(head.get(head.len() - digits..)?)?;
    let head = head.get(..head.len() - digits)?.trim_ascii_end();
    latency_event(head, Stamp::Time(time.checked_mul(1000)?, 6), line.get(colon + 1..)?)
}

/// `COMM-PID CPUFLAGS`, when, and `EVENT: TEXT`.
fn latency_event<'a>(mut head: &'a [u8], stamp: Stamp, text: &'a [u8]) -> Option<Reading<'a>> {
    let last = head.iter().rposition(|&b| b == b' ')? + 1;
    let word = head.get(last..)?;
    let cpu_len = word.iter().take_while(|b| b.is_ascii_digit()).count();
    // Where the column of the CPU is missing, that of a thread id stands there.
    let cpu = u32::try_from(number(word.get(..cpu_len)?)?).ok().filter(|cpu| *cpu < CPUS_MAX)?;
    let flags = word.get(cpu_len..)?;
    head = head.get(..last)?.trim_ascii_end();
    let TaskColumn { comm, pid, ends, .. } = comm_and_pid(head)?;
    let (system, name, text) = event_column(text)?;
    let text = if system.is_some() { without_instruction(text) } else { text };
    let event = TextEvent { comm, pid, tgid: None, cpu, flags, stamp, system, name, text };
    Some(Reading { style: Style::Latency, ends, line: TextLine::Event(event) })
}
