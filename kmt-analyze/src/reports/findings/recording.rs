//! The recording: losses, length, CPUs, kernel.

use kmt_format::schema::Meaning;
use serde::Serialize;

use crate::render::head::is_minimum;
use crate::render::out::missing_in_input;
use crate::render::words::{count, counted, duration, escaped, share};
use crate::reports::common::lost_before::{lost_before_first, more_before_first};
use crate::reports::common::ring;
use crate::trace::session::Session;

/// The recording: losses, length, kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Recording {
    /// What ended the wait of a ring buffer, when, and which processes were killed; `null`: the recording did not wait.
    pub stopped: Option<String>,
    /// Two sentences, and one on the window of a ring buffer.
    pub sentence: String,
    /// Length, in the clock's unit.
    pub length: u64,
    /// Release of the kernel; `null`: not recorded.
    pub kernel_release: Option<String>,
}

/// The recording of a trace.
pub fn recording(session: &Session<'_>) -> Recording {
    let first = session.losses.window_begin().or_else(|| session.first_time());
    let length = first.zip(session.last_time()).map_or(0, |(a, b)| b.saturating_sub(a));
    let release = session.trace.metadata().text("kernel.release").map(|release| escaped(release.as_bytes()));
    let kernel = release.as_deref().map_or("kernel version unknown".to_owned(), |r| format!("Linux {r}"));
    let window = ring::window(session).map_or(String::new(), |window| format!(" {window}"));
    let sentence = format!(
        "{} {} in {} from {}, {kernel}.{window}",
        losses(session),
        events(session),
        duration(length, session.unit()),
        counted(session.losses.cpus.len() as u64, "CPU", "CPUs"),
    );
    Recording { stopped: ring::stopped(session), sentence, length, kernel_release: release }
}

/// A stack is an event of its own.
fn events(session: &Session<'_>) -> String {
    let has_stacks =
        session.trace.schema().classes().any(|(_, class)| class.meaning == Meaning::KERNEL_STACK);
    let (one, several) =
        if has_stacks { ("event or stack", "events and stacks") } else { ("event", "events") };
    counted(session.trace.event_count(), one, several)
}

fn losses(session: &Session<'_>) -> String {
    let losses = &session.losses;
    let events = session.trace.event_count();
    let before = lost_before_first(losses);
    match (losses.any(), losses.has_all_stats(), losses.lost_since_first()) {
        (false, true, _) => match before {
            None => "Nothing was lost.".to_owned(),
            Some(before) => format!("Nothing was lost since the first event; {before}."),
        },
        (false, false, _) => {
            let since = before.map_or(String::new(), |before| format!(" since the first event ({before})"));
            format!("No loss is marked{since}, but the kernel's loss counters are not recorded.")
        }
        (true, _, 0) if !losses.has_gaps() => "No lost events were counted.".to_owned(),
        (true, _, 0) => "Events were lost, not counted.".to_owned(),
        (true, _, _) if losses.missing_in_input > 0 => missing_in_input(losses, events),
        (true, _, lost) => {
            let least = if is_minimum(losses) { "At least " } else { "" };
            let were = if lost == 1 { "event was" } else { "events were" };
            let all = lost.saturating_add(events);
            let more = more_before_first(losses);
            format!("{least}{} {were} lost, {} of all.{more}", count(lost), share(lost, all))
        }
    }
}
