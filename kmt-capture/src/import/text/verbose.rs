//! The latency format with the option `verbose`.
//!
//! Source: `trace_print_lat_context`, `lat_print_timestamp`, kernel/trace/trace_output.c 2.6.31 to 7.0.

use super::columns::{Stamp, event_column, next_word, number};
use super::line_types::{TextEvent, TextLine};

/// `COMM PID CPU FLAGS PREEMPT INDEX [TIME] MILLISECONDSms (+MILLISECONDSms): EVENT: TEXT`, or counts of a clock in place of
/// milliseconds. The offset of the end of the name, and the event.
pub(super) fn verbose(line: &[u8]) -> Option<(usize, TextLine<'_>)> {
    /// Last possible offset of the time.
    const HEAD_LEN: usize = 96;
    let opens = line.iter().take(HEAD_LEN).enumerate().filter(|(_, b)| **b == b'[').map(|(at, _)| at);
    opens.into_iter().find_map(|open| {
        let mut rest = line.get(open..)?;
        let time = next_word(&mut rest)?.strip_prefix(b"[")?.strip_suffix(b"]")?;
        let is_time = matches!(time.len(), 8..=16) && time.iter().all(u8::is_ascii_hexdigit);
        let stamp = stamp(next_word(&mut rest).filter(|_| is_time)?)?;
        next_word(&mut rest)?.strip_prefix(b"(+")?.strip_suffix(b"):")?;
        let (system, name, text) = event_column(rest)?;
        let (end, comm, pid, cpu) = task_and_cpu(line.get(..open)?)?;
        let head = TextEvent { comm, pid, tgid: None, cpu, flags: b"", stamp, system, name, text };
        Some((end, TextLine::Event(head)))
    })
}

/// `1720.415ms`, or a count.
fn stamp(word: &[u8]) -> Option<Stamp> {
    let Some(ms) = word.strip_suffix(b"ms") else { return number(word).map(Stamp::Count) };
    let point = ms.iter().position(|&b| b == b'.')?;
    let (ms, us) = (ms.get(..point)?, ms.get(point + 1..).filter(|us| us.len() == 3)?);
    let us = number(ms)?.checked_mul(1000)?.checked_add(number(us)?)?;
    Some(Stamp::Time(us.checked_mul(1000)?, 6))
}

/// `COMM PID CPU FLAGS PREEMPT INDEX`, from its end: a name has any bytes.
fn task_and_cpu(head: &[u8]) -> Option<(usize, &[u8], i32, u32)> {
    let mut left = head;
    let mut last_word = || {
        left = left.trim_ascii_end();
        let start = left.iter().rposition(|&b| b == b' ')? + 1;
        let word = left.get(start..)?;
        left = left.get(..start)?;
        Some(word)
    };
    let is_hex = |word: &[u8]| word.len() >= 8 && word.iter().all(u8::is_ascii_hexdigit);
    let (index, preempt, flags) = (last_word()?, last_word()?, last_word()?);
    (is_hex(index) && is_hex(preempt) && number(flags).is_some()).then_some(())?;
    let (cpu, pid) = (number(last_word()?)?, number(last_word()?)?);
    // A blank is between name and number.
    let end = left.trim_ascii_end().len();
    let comm = left.get(..end)?.trim_ascii_start();
    (comm.len() <= 15).then_some((end, comm, i32::try_from(pid).ok()?, u32::try_from(cpu).ok()?))
}
