//! The screen of long stalls: each with the stalls within it and the events of its task.

use super::intervals::{IntervalLine, LongInterval, LongIntervals};
use super::lead::rounded;
use super::rows::LatencyTables;
use crate::render::screen::{CommandLine, Screen, ScreenPart};
use crate::render::words::{count, counted};
use crate::reports::common::View;

/// Stalls over the threshold.
pub fn screen(latency: &LatencyTables, intervals: &LongIntervals, view: &View) -> Screen {
    let threshold = rounded(latency.threshold.unwrap_or(0), view.unit);
    let all = (latency.intervals.len() as u64).saturating_add(latency.intervals_left_out);
    let Some(longest) = intervals.shown.first() else { return none(latency, &threshold, view) };
    let outer = match intervals.total as u64 {
        outer if outer == all => String::new(),
        outer => format!(" ({} not nested in another)", count(outer)),
    };
    let mut screen = Screen::new(format!("{} over {threshold}{outer}.", counted(all, "stall", "stalls")));
    screen.answer(format!("The longest: {}.", title(longest, view)));
    for interval in &intervals.shown {
        let lines = interval.lines.iter().map(|line| self::line(line, view)).collect();
        screen.parts.push(ScreenPart::Lines { heading: title(interval, view), lines });
    }
    let more = intervals.total.saturating_sub(intervals.shown.len()) as u64;
    if more > 0 {
        let line = format!("not shown: {} (-l 0)", counted(more, "stall", "stalls"));
        screen.lines("", vec![line]);
    }
    screen.note("Events are those of the stalled task; their times are from the begin of the outer stall.");
    screen.note(format!(
        "Events of reclaim and compaction are shown if their own function or stall is over {threshold}."
    ));
    if latency.intervals_left_out > 0 {
        let left = counted(latency.intervals_left_out, "shorter stall is", "shorter stalls are");
        screen.note(format!("{left} over the limit of the list and not shown."));
    }
    let ends = [longest.begin, longest.begin.saturating_add(longest.length)];
    if let [Some(begin), Some(end)] = ends.map(|time| view.time_option(time)) {
        screen.next(
            CommandLine::from("dump").option("--time", format!("{begin}..{end}")),
            "all events during the longest stall",
        );
    }
    screen
}

/// The screen where no stall is over the threshold.
fn none(latency: &LatencyTables, threshold: &str, view: &View) -> Screen {
    let longest = latency.kinds.iter().filter_map(|kind| kind.lengths.max).max();
    let longest = longest
        .map_or(String::new(), |longest| format!("; the longest took {}", rounded(longest, view.unit)));
    let mut screen = Screen::new(format!("No stall over {threshold}{longest}."));
    screen.next("latency", "all stalls by kind and task");
    screen
}

/// `direct reclaim of sh-766, 143.6 ms at +4.567`.
fn title(interval: &LongInterval, view: &View) -> String {
    let length = view.duration(interval.length);
    format!("{} of {}, {length} at {}", interval.name, interval.task, view.time(interval.begin))
}

/// A line of a stall, indented by the stalls around it.
fn line(line: &IntervalLine, view: &View) -> String {
    let indent = " ".repeat(2 * (line.depth + 1));
    match (line.since.map(|since| view.duration(since)), line.length) {
        (None, _) => format!("{indent}{}", line.text),
        (Some(since), None) => format!("{indent}{since}: {}", line.text),
        (Some(since), Some(length)) => format!("{indent}{}, {} at {since}", line.text, view.duration(length)),
    }
}
