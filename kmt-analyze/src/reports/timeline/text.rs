//! The table of steps.

use super::Key;
use super::rows::{LineRow, TimelineRow, TimelineRows};
use crate::render::table::{Align, table};
use crate::render::text::{count, time};
use crate::reports::common::View;

/// The table, and the meaning of its columns.
pub fn of(TimelineRows { timeline }: &TimelineRows, view: &View) -> String {
    let has_least = has_least(timeline);
    let columns = columns(timeline, view, has_least);
    let cells: Vec<Vec<String>> =
        (0..timeline.steps).map(|step| cells(timeline, step, view, has_least)).collect();
    let least = if has_least {
        "at least: of what is of caches and call sites whose frees have events; frees of the rest may have none\n"
    } else {
        ""
    };
    let pages = if timeline.by == Key::Kind {
        "pages hold the slab objects too: slab and pages are not to be added\n"
    } else {
        ""
    };
    let lost = if view.is_lossy {
        "time lost: share of the step, over all CPUs, in which events are missing: what is counted there is too low, and live bytes are too high or too low from there on (?: dropped events, which mark no place)\n"
    } else {
        ""
    };
    format!(
        "{}\nlive bytes at the end of each step, of what was allocated in the trace\n{least}{pages}{lost}",
        table(&columns, &cells),
    )
}

/// Lines of slab objects.
fn slab(timeline: &TimelineRow) -> impl Iterator<Item = &LineRow> {
    timeline.lines.iter().filter(|line| !line.is_pages)
}

/// True if fewer bytes may be live than the lines have.
fn has_least(timeline: &TimelineRow) -> bool {
    slab(timeline).any(|line| {
        let least = line.bytes_live_least.iter().flatten();
        least.zip(&line.bytes_live).any(|(least, live)| least < live)
    })
}

fn columns<'r>(timeline: &'r TimelineRow, view: &View, has_least: bool) -> Vec<(&'r str, Align)> {
    let mut columns = vec!["until"];
    columns.extend(view.is_lossy.then_some("time lost"));
    if timeline.has_slab {
        columns.extend(["allocs", "frees", "live slab bytes"]);
        columns.extend(has_least.then_some("at least"));
    }
    columns.extend(timeline.lines.iter().map(|line| line.name.as_str()));
    columns.into_iter().map(|name| (name, Align::Right)).collect()
}

fn cells(timeline: &TimelineRow, step: usize, view: &View, has_least: bool) -> Vec<String> {
    let mut cells = vec![time(timeline.start_of(step + 1), view.unit)];
    let lost = timeline.lost_percent.get(step).copied().flatten();
    let lost = lost.map_or("?".to_owned(), |percent| format!("{percent:.1}%"));
    cells.extend(view.is_lossy.then_some(lost));
    if timeline.has_slab {
        let counts = |of: fn(&LineRow) -> &[u64]| {
            let numbers = slab(timeline).filter_map(|line| of(line).get(step));
            count(numbers.fold(0, |sum, number| sum.saturating_add(*number)))
        };
        let bytes = |of: fn(&LineRow) -> Option<&[i64]>| {
            let numbers = slab(timeline).filter_map(|line| of(line)?.get(step));
            signed(numbers.fold(0, |sum, number| sum.saturating_add(*number)))
        };
        cells.push(counts(|line| &line.alloc_events));
        cells.push(counts(|line| &line.frees_matched));
        cells.push(bytes(|line| Some(&line.bytes_live)));
        cells.extend(has_least.then(|| bytes(|line| line.bytes_live_least.as_deref())));
    }
    let live = timeline.lines.iter().filter_map(|line| line.bytes_live.get(step));
    cells.extend(live.map(|bytes| signed(*bytes)));
    cells
}

fn signed(number: i64) -> String {
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}{}", count(number.unsigned_abs()))
}
