//! A ring buffer that kept the newest events: where its window begins, and what ended its wait.
//!
//! Sources: the marks of events that were overwritten by design, the keys `record.stopped_by` and `record.stop_seen`, and the
//! file `kmsg` (format-spec/registry.md).

use std::fmt::Write;

use super::date::utc;
use crate::render::words::{count, counted, duration, shown, time};
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
    let victims = metadata.attachment("kmsg").map(victims).unwrap_or_default();
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
    Some(format!("Stopped by {}{}{killed}.", shown(cause.as_bytes()), day.unwrap_or_default()))
}

/// Processes that the kernel's log reports as killed: `Out of memory: Killed process 7 (name) total-vm:…`.
fn victims(log: &[u8]) -> Vec<String> {
    const KILLED: &str = "Killed process ";
    let text = String::from_utf8_lossy(log);
    let victim = |line: &str| {
        let (_, rest) = line.split_once(KILLED)?;
        let (pid, rest) = rest.split_once(" (")?;
        pid.parse::<u32>().ok()?;
        // A name may have parentheses.
        let end = rest.find(") total-vm:").or_else(|| rest.rfind(')')).or_else(|| rest.rfind(','))?;
        Some(format!("{} (process {pid})", shown(rest.get(..end)?.as_bytes())))
    };
    text.lines().filter_map(victim).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn victims_are_in_the_kernel_log() {
        let log = b"[ 51.9] oom-kill:constraint=CONSTRAINT_MEMCG,task=python3,pid=93,uid=0\n\
            [ 51.9] Memory cgroup out of memory: Killed process 93 (python3) total-vm:116020kB, anon-rss:28544kB\n\
            [ 52.0] Out of memory: Killed process 94 (a (b)) total-vm:1kB\n\
            [ 52.0] Killed process x (c)\n\
            [ 52.1] oom_reaper: reaped process 93 (python3)\n";
        assert_eq!(victims(log), ["python3 (process 93)", "a (b) (process 94)"]);
        assert!(victims(b"\xff\nKilled process 5").is_empty());
    }
}
