//! A ring buffer that kept the newest events: where its window begins, and what ended its wait.
//!
//! Sources: the marks of events that were overwritten by design, the keys `record.stopped_by` and `record.stop_seen`, and the
//! file `kmsg` (format-spec/registry.md).

use std::fmt::Write;

use super::date::utc;
use crate::render::words::{count, counted, duration, shown, time};
use crate::trace::oom_log;
use crate::trace::session::Session;

/// Victims of OOM kills that are named.
const NAMED_MAX: usize = 3;

/// Where the window begins; `None`: no event was overwritten by design.
pub fn window(session: &Session<'_>) -> Option<String> {
    let losses = &session.losses;
    let begin = losses.window_begin()?;
    let older = losses.overwritten_events();
    let were = if older == 1 { "older event was" } else { "older events were" };
    let mut text = format!(
        "The window begins at {}: {} {were} overwritten, as a ring buffer keeps the newest.",
        time(begin, session.unit()),
        count(older)
    );
    let earlier = begin.saturating_sub(session.first_time().unwrap_or(begin));
    if earlier > 0 {
        let _ = write!(
            text,
            " Some CPUs have events up to {} before it, which --time .. selects too.",
            duration(earlier, session.unit())
        );
    }
    Some(text)
}

/// Where the CPUs of overwritten events are unknown: the header of a converted text has one number for all of them.
pub fn unknown_cpus(session: &Session<'_>) -> Option<String> {
    (session.losses.overwritten_in_input > 0).then(|| {
        "Which CPUs the overwritten events were of is unknown: the header of the text has one number for all CPUs.".to_owned()
    })
}

/// What ended the wait of a ring buffer, when, and who was killed; `None`: the file is not of one.
pub fn stopped(session: &Session<'_>) -> Option<String> {
    let metadata = session.trace.metadata();
    let cause = metadata.text("record.stopped_by")?;
    let seen: Option<u64> = metadata.text("record.stop_seen").and_then(|seen| seen.parse().ok());
    let last = session.last_time().or(seen);
    let day = last.and_then(|last| session.time_of_day(last)).map(|day| {
        let (date, time) = utc(day);
        format!(" on {date} at {time} UTC")
    });
    let log = metadata.attachment("kmsg").map(String::from_utf8_lossy).unwrap_or_default();
    let victims = oom_log::killed(&log);
    let victims: Vec<String> =
        victims.iter().map(|v| format!("{} (process {})", shown(v.name.as_bytes()), v.pid)).collect();
    let killed = match victims.as_slice() {
        [] => String::new(),
        [one] => format!(": {one} was killed"),
        several => {
            let named: Vec<&str> = several.iter().take(NAMED_MAX).map(String::as_str).collect();
            let more = several.len().saturating_sub(NAMED_MAX) as u64;
            let more =
                if more > 0 { format!(" and {}", counted(more, "other", "others")) } else { String::new() };
            format!(": {}{more} were killed", named.join(", "))
        }
    };
    // Of a buffer that survived the end of the machine.
    let verb = if cause.starts_with("a crash") { "Ended" } else { "Stopped" };
    Some(format!("{verb} by {}{}{killed}.", shown(cause.as_bytes()), day.unwrap_or_default()))
}
