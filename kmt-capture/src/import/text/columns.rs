//! Columns that lines of different tools share: task, time, event.

/// When.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stamp {
    /// Nanoseconds, and number of digits after the point.
    Time(u64, u8),
    /// A number in the unit of a clock that counts otherwise.
    Count(u64),
}

/// System where the text has it, name of the event, text.
pub(super) type EventColumn<'a> = (Option<&'a [u8]>, &'a [u8], &'a [u8]);

/// `EVENT: TEXT`, or `SYSTEM:EVENT: TEXT`.
pub(super) fn event_column(text: &[u8]) -> Option<EventColumn<'_>> {
    let text = text.trim_ascii_start();
    if text.starts_with(b"<stack trace>") {
        return Some((None, b"kernel_stack", b""));
    }
    if text.starts_with(b"<user stack trace>") {
        return Some((None, b"user_stack", b""));
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

/// Without what stands behind a line: a carriage return; in a page of HTML of old systrace, the end of a line of a script.
pub(super) fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    line.strip_suffix(b"\\n\\").unwrap_or(line)
}

/// Takes `(TGID)` off the end.
pub(super) fn process(left: &[u8]) -> (&[u8], Option<i32>) {
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

/// Longest name of a task: `TASK_COMM_LEN` (include/linux/sched.h) with the zero at its end.
const COMM_MAX: usize = 15;

/// A task.
#[derive(Debug, Clone, Copy)]
pub(super) struct TaskColumn<'a> {
    /// Name of the task.
    pub comm: &'a [u8],
    /// Thread id.
    pub pid: i32,
    /// True if a `-` follows the name; else blanks.
    pub has_dash: bool,
    /// Offsets of the end of the name: the first and the last possible one.
    pub ends: (usize, usize),
}

/// Task of an event that perf read when its task was gone: `:-1 -1`, or `:-1 -1/-1` (perf_event_pid_type,
/// kernel/events/core.c). Its number is -1, that of an unknown task.
fn without_id(task: &[u8]) -> Option<TaskColumn<'_>> {
    let left = task.strip_suffix(b"-1")?;
    let left = left.strip_suffix(b"-1/").unwrap_or(left);
    let comm = left.trim_ascii();
    let ends = (left.trim_ascii_end().len(), left.len().checked_sub(1)?);
    let is_apart = left.ends_with(b" ") || left.ends_with(b"\t");
    (comm == b":-1" && is_apart).then_some(TaskColumn { comm, pid: -1, has_dash: false, ends })
}

/// `COMM-PID`, or perf's `COMM PID` and `COMM PID/TID`. Blanks before a name are padding.
pub(super) fn comm_and_pid(task: &[u8]) -> Option<TaskColumn<'_>> {
    if let Some(unknown) = without_id(task) {
        return Some(unknown);
    }
    let without_digits =
        |text: &[u8]| text.len() - text.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    let mut at = without_digits(task);
    let pid = i32::try_from(number(task.get(at..)?)?).ok()?;
    let has_dash = task.get(..at)?.ends_with(b"-");
    if has_dash {
        at -= 1;
    } else if task.get(..at)?.ends_with(b"/") {
        let end = at - 1;
        at = without_digits(task.get(..end)?);
        (at < end).then_some(())?;
    }
    let name = task.get(..at)?;
    let ends = if has_dash { (at, at) } else { (name.trim_ascii_end().len(), at.checked_sub(1)?) };
    (ends.0 <= ends.1).then_some(())?;
    let comm = task.get(..ends.0)?.trim_ascii_start();
    (comm.len() <= COMM_MAX).then_some(TaskColumn { comm, pid, has_dash, ends })
}

/// The next word; `rest` begins after it.
pub(super) fn next_word<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let start = rest.trim_ascii_start();
    let end = start.iter().position(|b| b.is_ascii_whitespace()).unwrap_or(start.len());
    let word = start.get(..end).filter(|w| !w.is_empty())?;
    *rest = start.get(end..)?;
    Some(word)
}

/// `12.345678:` or `123456:`, and what follows the colon.
pub(super) fn stamp(word: &[u8]) -> Option<(Stamp, &[u8])> {
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
pub(super) fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |sum, &b| {
        let digit = b.checked_sub(b'0').filter(|&d| d < 10)?;
        sum.checked_mul(10)?.checked_add(digit.into())
    })
}
