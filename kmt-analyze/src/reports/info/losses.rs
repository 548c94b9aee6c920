//! The table of CPUs, and the list of their losses.

use kmt_format::kernel::ClockUnit;

use super::cpus::{CpuRow, LossRow, StatsRow};
use crate::render::table::{Align, table};
use crate::render::text::{count, time};

/// Places of losses that are listed for each CPU; JSON lists all.
const PLACES_SHOWN: usize = 4;

/// The table of CPUs.
pub fn table_of(cpus: &[CpuRow]) -> String {
    let columns = [
        "CPU",
        "events",
        "lost",
        "overrun",
        "dropped",
        "commit overrun",
        "counted in place",
        "uncounted places",
    ];
    table(&columns.map(|name| (name, Align::Right)), &cpus.iter().map(cells).collect::<Vec<_>>())
}

fn cells(cpu: &CpuRow) -> Vec<String> {
    let least = if cpu.head.lost_events_is_minimum { ">= " } else { "" };
    let counter = |of: fn(&StatsRow) -> Option<u64>| {
        cpu.stats.as_ref().and_then(of).map_or("not told".to_owned(), count)
    };
    vec![
        cpu.head.cpu.to_string(),
        count(cpu.head.events),
        format!("{least}{}", count(cpu.head.lost_events)),
        counter(|stats| stats.overrun),
        counter(|stats| stats.dropped_events),
        counter(|stats| stats.commit_overrun),
        count(cpu.lost_events_counted_in_place),
        count(cpu.uncounted_places as u64),
    ]
}

/// Lines of the losses of each CPU; empty if there are none.
pub fn list_of(cpus: &[CpuRow], unit: ClockUnit) -> String {
    let lines: String = cpus.iter().map(|cpu| losses(cpu, unit)).collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

fn losses(cpu: &CpuRow, unit: ClockUnit) -> String {
    let number = cpu.head.cpu;
    let at = |at: Option<u64>, otherwise: &str| at.map_or(otherwise.to_owned(), |at| time(at, unit));
    let mut out = String::new();
    for loss in cpu.losses.iter().take(PLACES_SHOWN) {
        let (after, before) = (at(loss.after, "the start"), at(loss.before, "the end"));
        out.push_str(&format!("CPU {number}: between {after} and {before}: {}\n", kinds(loss)));
    }
    if cpu.losses.len() > PLACES_SHOWN {
        let more = cpu.losses.len() - PLACES_SHOWN;
        out.push_str(&format!("CPU {number}: {more} more places; --json lists all\n"));
    }
    if let Some(lost) = cpu.lost_events_at_uncounted_places {
        let places = cpu.uncounted_places;
        let together = if places == 1 { "there" } else { "at these places together" };
        out.push_str(&format!(
            "CPU {number}: {places} places not counted by the kernel; its overrun counter tells {} lost {together}\n",
            count(lost)
        ));
    }
    if cpu.lost_events_unplaced > 0 {
        out.push_str(&format!(
            "CPU {number}: {} lost of which the kernel does not say where (dropped events mark no sub-buffer)\n",
            count(cpu.lost_events_unplaced)
        ));
    }
    out
}

/// Kinds of losses at a place.
fn kinds(loss: &LossRow) -> String {
    let counted = loss.lost_events.filter(|lost| *lost > 0);
    let missing = (loss.events_missing > 0).then_some(loss.events_missing);
    let kinds = [
        counted.map(|lost| format!("{} lost", count(lost))),
        loss.uncounted.then(|| "lost, not counted by the kernel".to_owned()),
        loss.damaged_input.then(|| "input damaged".to_owned()),
        missing.map(|events| format!("{} missing with their chunks", count(events))),
    ];
    kinds.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
