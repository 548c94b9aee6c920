//! Records of perf that are not samples, as `perf script --show-task-events --show-lost-events` and its like print them.
//!
//! Source: `perf_event__fprintf`, tools/perf/util/event.c 4.4 to 7.0.

use super::columns::number;
use super::line_types::{Comm, TextEvent, TextLine};

/// `PERF_RECORD_LOST lost 70`, after the columns that all lines have; `None` if it is not a record.
pub(super) fn perf_record<'a>(head: &TextEvent<'_>, text: &'a [u8]) -> Option<TextLine<'a>> {
    let text = text.trim_ascii().strip_prefix(b"PERF_RECORD_")?;
    let end = text.iter().position(|b| !b.is_ascii_alphanumeric() && *b != b'_').unwrap_or(text.len());
    let (kind, rest) = text.split_at_checked(end)?;
    match kind {
        // Throttled events are not counted.
        b"LOST" | b"LOST_SAMPLES" | b"THROTTLE" => {
            let count = rest.split(|&b| b == b' ').filter(|_| kind != b"THROTTLE").find_map(number);
            Some(TextLine::Lost(head.cpu, count))
        }
        b"COMM" => Some(comm(head, rest).map_or(TextLine::Remark, TextLine::Comm)),
        _ => Some(TextLine::Remark),
    }
}

/// ` exec: NAME:PID/TID`.
fn comm<'a>(head: &TextEvent<'_>, rest: &'a [u8]) -> Option<Comm<'a>> {
    let rest = rest.strip_prefix(b" exec").unwrap_or(rest).strip_prefix(b": ")?;
    let colon = rest.iter().rposition(|&b| b == b':')?;
    let mut ids = rest.get(colon + 1..)?.split(|&b| b == b'/').map(|id| i32::try_from(number(id)?).ok());
    let (tgid, pid) = (ids.next()??, ids.next()??);
    let comm = rest.get(..colon).filter(|comm| comm.len() <= 15)?;
    Some(Comm { comm, tgid, pid, stamp: head.stamp })
}
