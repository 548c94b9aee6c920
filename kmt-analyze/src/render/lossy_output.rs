//! Sentences about lost events, the same on screens, in JSON and on standard error; and standard error beside output that has
//! no place for them: dumps, exports and tables as CSV. Screens, pictures and JSON have them inside.

use kmt_common::tell;

use crate::render::head::is_minimum;
use crate::render::text::count;
use crate::render::words::counted;
use crate::trace::losses::Losses;
use crate::trace::session::Session;

/// Reports on standard error that events were lost.
pub fn warn_of_losses(session: &Session<'_>) {
    if let Some(sentence) = losses(session) {
        warn(session, &sentence);
    }
}

/// Reports on standard error, beside data, a sentence about how far the data can be trusted.
pub fn warn(session: &Session<'_>, sentence: &str) {
    tell!("warning: {}: {sentence}", session.path.display());
}

/// Lost events of a recording, and their effect; `None`: none were lost, as far as is known.
pub fn losses(session: &Session<'_>) -> Option<String> {
    const EFFECT: &str = "event counts are minimums; live figures are uncertain";
    let losses = &session.losses;
    if !losses.any() {
        return None;
    }
    let (lost, events) = (losses.lost_since_first(), session.trace.event_count());
    Some(match lost {
        0 if !losses.has_gaps() => format!("{}: {EFFECT}.", uncounted(losses)),
        0 => format!("Parts of the recording are missing, not counted: {EFFECT}."),
        _ if losses.missing_in_input > 0 => {
            let missing = missing_in_input(losses, events);
            format!("{missing} Event counts are minimums; live figures are uncertain.")
        }
        _ => {
            let were = if lost == 1 { "was" } else { "were" };
            let part = part([lost, events], is_minimum(losses));
            format!("{part} {were} lost: {EFFECT}; `summary` has ranges.")
        }
    })
}

/// Events that the header of a converted text counts and the text does not have, beside `events` that it has.
pub fn missing_in_input(losses: &Losses, events: u64) -> String {
    let (lost, missing) = (losses.lost_since_first(), losses.missing_in_input);
    let are = if lost == 1 { "is" } else { "are" };
    // In a hole of the text they have a time.
    let [theirs, its] = match losses.silence {
        Some(_) => ["CPUs", "CPU"],
        None => ["CPUs and times", "CPU and time"],
    };
    let (of, is) = match missing {
        _ if missing < lost => (format!("{theirs} of {}", count(missing)), "are"),
        1 => (format!("its {its}"), if losses.silence.is_some() { "is" } else { "are" }),
        _ => (format!("their {theirs}"), "are"),
    };
    format!(
        "{} {are} missing: the converted text has not all events that its header counts; {of} {is} unknown.",
        part([lost, events], is_minimum(losses))
    )
}

/// `At least 12 events (3.4 % of all)`.
fn part([lost, events]: [u64; 2], is_minimum: bool) -> String {
    let least = if is_minimum { "At least " } else { "" };
    let share = 100.0 * lost as f64 / (lost as f64 + events as f64).max(1.0);
    format!("{least}{} ({share:.1} % of all)", counted(lost, "event", "events"))
}

/// Events that may be missing although no lost event is counted or marked.
fn uncounted(losses: &Losses) -> String {
    let none = match losses.has_all_stats() {
        true => "The kernel counted no lost events",
        false => "No lost events are marked",
    };
    let but = match losses.ended_early {
        true => "the recording was cut, and events that were still in the ring buffers are unknown",
        false => "another process changed the recording",
    };
    format!("{none}, but {but}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_events_have_one_sentence() {
        let of = |missing, silence| {
            let mut losses = Losses::default();
            (losses.missing_in_input, losses.silence) = (missing, silence);
            losses
        };
        assert_eq!(
            missing_in_input(&of(12, None), 88),
            "12 events (12.0 % of all) are missing: the converted text has not all events that its header counts; their CPUs and times are unknown."
        );
        let one = missing_in_input(&of(1, None), 99);
        assert!(one.starts_with("1 event (1.0 % of all) is missing: "), "{one}");
        assert!(one.ends_with("; its CPU and time are unknown."), "{one}");
        let one = missing_in_input(&of(1, Some((3, 9))), 99);
        assert!(one.ends_with("; its CPU is unknown."), "{one}");
        let several = missing_in_input(&of(3_000, Some((3, 9))), 99);
        assert!(several.ends_with("; their CPUs are unknown."), "{several}");
    }
}
