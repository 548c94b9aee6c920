//! Facts about the file and its target, each beside its name, and the tables of CPUs and of their losses.
//!
//! All come from the opened file, none from its events.

use std::cmp::Reverse;

use kmt_format::edit::Join;
use kmt_format::kernel::ClockUnit;
use kmt_format::read::Metadata;

use super::rows::{CpuRow, InfoRows, IntegrityRow, LossRow, StatsRow, StorageRow};
use crate::render::screen::{Cell, Column, Table};
use crate::render::words::{count, counted, duration, escaped, shown};
use crate::reports::common::View;
use crate::reports::common::date::utc;
use crate::sort_rows::SortRows;
use crate::trace::session::Session;
use crate::trace::sliced::Sliced;

/// All facts.
pub fn compute(rows: &InfoRows, session: &Session<'_>, view: &View) -> Vec<(&'static str, String)> {
    let (trace, metadata) = (session.trace, session.trace.metadata());
    let mut out = vec![
        ("file", escaped(session.path.as_os_str().as_encoded_bytes())),
        ("size", format!("{}, {:.2} bytes per event", view.bytes(rows.file_bytes), rows.bytes_per_event)),
        ("kernel", metadata.text("uname").map_or(unknown(), |uname| shown(uname.as_bytes()))),
    ];
    let part = metadata.text(Join::PART_KEY).filter(|part| !part.contains('-'));
    out.extend(
        part.map(|part| ("part", format!("{} of a recording in several files", shown(part.as_bytes())))),
    );
    out.extend(recorded(session).map(|times| ("recorded", times)));
    let reason = metadata.text("clock.reason").map(|reason| format!(": {}", shown(reason.as_bytes())));
    let clock = rows.head.clock.name.as_ref().map_or(unknown(), |name| shown(name.as_bytes()));
    out.push(("clock", clock + &reason.unwrap_or_default()));
    out.extend(command(metadata).map(|command| ("command", command)));
    let notes = metadata.pairs.iter().filter(|(key, _)| key == "record.note");
    out.extend(notes.map(|(_, note)| ("note", shown(note))));
    out.extend(recorder(metadata).map(|cost| ("cost", cost)));
    out.push(("page size", rows.format.page_size.map_or(unknown(), |size| counted(size, "byte", "bytes"))));
    out.push(("symbols", trace.symbols().map_or("none".to_owned(), |symbols| count(symbols.len() as u64))));
    out.push(("task names", count(rows.tasks as u64)));
    out.push(("attachments", attachments(rows)));
    out.push(("format", format(rows)));
    out.push(("event chunks", storage(&rows.storage)));
    out.push(("integrity", integrity(&rows.integrity)));
    out
}

fn unknown() -> String {
    "unknown".to_owned()
}

/// Begin and end of the recording.
fn recorded(session: &Session<'_>) -> Option<String> {
    let time = |time: Option<u64>| session.time_of_day(time?);
    let (first, last) = time(session.first_time()).zip(time(session.last_time()))?;
    let ((day, from), (last_day, to)) = (utc(first), utc(last));
    let last_day = if day == last_day { String::new() } else { format!("{last_day} ") };
    Some(format!("{day} {from} to {last_day}{to} UTC"))
}

/// The recorded command and its end.
fn command(metadata: &Metadata<'_>) -> Option<String> {
    let command = metadata.text("record.command")?;
    let outcome = metadata.text("record.command_outcome").unwrap_or("end unknown");
    let [command, outcome] = [command, outcome].map(|text| shown(text.as_bytes()));
    Some(format!("{command} ({outcome})"))
}

/// CPU time of the recorder, by event and by time.
fn recorder(metadata: &Metadata<'_>) -> Option<String> {
    let number = |key: &str| metadata.text(key)?.parse::<u64>().ok();
    let cpu_ns = number("recorder.cpu_ns")?;
    let events = number("recorder.events").filter(|events| *events > 0)?;
    // Begin and end take most of the time of a shorter recording.
    let length_ns = number("recorder.length_ns").filter(|length| *length >= 1_000_000_000)?;
    let (each, share) = (cpu_ns as f64 / events as f64, 100.0 * cpu_ns as f64 / length_ns as f64);
    let total = duration(cpu_ns, ClockUnit::Nanoseconds);
    let of = match Sliced::of(metadata) {
        Some(_) => " (of the recording before it was sliced)",
        None => "",
    };
    Some(format!("{total} of CPU for the recorder: {each:.0} ns per event, {share:.1} % of one CPU{of}"))
}

fn attachments(rows: &InfoRows) -> String {
    let names = rows.attachments.iter().map(|attachment| &attachment.name);
    let names: Vec<String> =
        names.filter(|name| !name.starts_with("events/")).map(|name| shown(name.as_bytes())).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(" ") }
}

fn format(rows: &InfoRows) -> String {
    let format = &rows.format;
    format!(
        "{}, {}-endian, {}-bit, {}",
        format.version,
        format.byte_order,
        format.long_size * 8,
        counted(format.chunks, "chunk", "chunks")
    )
}

fn storage(storage: &StorageRow) -> String {
    let counts = [
        (storage.plain, "uncompressed"),
        (storage.lz4, "lz4"),
        (storage.zstd, "zstd"),
        (storage.verbatim, "of verbatim sub-buffers"),
        (storage.unverified, "unverified (from a torn file, without a checksum over the target's data)"),
    ];
    let counts = counts.iter().filter(|(chunks, _)| *chunks > 0);
    let text =
        counts.map(|(chunks, kind)| format!("{} {kind}", count(*chunks))).collect::<Vec<_>>().join(", ");
    if text.is_empty() { "none".to_owned() } else { text }
}

fn integrity(integrity: &IntegrityRow) -> String {
    match (integrity.damages_total, integrity.finished) {
        (0, true) if integrity.events_missing > 0 => {
            format!("chunks with {} are missing", counted(integrity.events_missing, "event", "events"))
        }
        (0, true) => "sound: all checksums match and the file has its end".to_owned(),
        (0, false) => "no damage, but the file has no end: cut off, or still being written".to_owned(),
        (damages, _) => format!("damaged in {}", counted(damages, "place", "places")),
    }
}

/// Counts of each CPU, those with most losses first, and the number of CPUs that are left out.
pub fn cpus(rows: &InfoRows, limit: usize) -> (Table, usize) {
    let mut cpus: Vec<&CpuRow> = rows.head.trace.per_cpu.iter().collect();
    cpus.sort_rows_by_key(|cpu| (Reverse(cpu.head.lost_events), cpu.head.cpu));
    let left = cpus.len().saturating_sub(limit);
    cpus.truncate(limit);
    let known = |number: Option<u64>| number.map_or(Cell::Empty, Cell::Count);
    let counter = |cpu: &CpuRow, of: fn(&StatsRow) -> Option<u64>| known(cpu.stats.as_ref().and_then(of));
    let lost = |cpu: &CpuRow| match (cpu.head.lost_events, cpu.head.lost_events_is_minimum) {
        (0, _) if is_unknown(cpu) => Cell::text("unknown"),
        (lost, true) => Cell::text(format!(">= {}", count(lost))),
        (lost, false) => Cell::Count(lost),
    };
    let lost_share = |cpu: &CpuRow| match cpu.head.lost_events {
        0 if is_unknown(cpu) => Cell::Empty,
        lost => Cell::share(lost, cpu.head.events.saturating_add(lost)),
    };
    let unplaced = |cpu: &CpuRow| cpu.stats.as_ref().map(|_| cpu.lost_events_unplaced);
    let table = Table::of_rows("", cpus)
        .column(Column::number("CPU"), |cpu| Cell::Count(cpu.head.cpu.into()))
        .column(Column::number("events"), |cpu| Cell::Count(cpu.head.events))
        .column(Column::number("lost"), |cpu| lost(cpu))
        .column(Column::number("lost %").leaves(1), |cpu| lost_share(cpu))
        .column(Column::number("overrun").leaves(2), |cpu| counter(cpu, |stats| stats.overrun))
        .column(Column::number("dropped").leaves(2), |cpu| counter(cpu, |stats| stats.dropped_events))
        .column(Column::number("commit overrun").leaves(3), |cpu| counter(cpu, |stats| stats.commit_overrun))
        .column(Column::number("counted").leaves(4), |cpu| Cell::Count(cpu.lost_events_counted_in_place))
        .column(Column::number("uncounted gaps").leaves(5), |cpu| Cell::Count(cpu.uncounted_places as u64))
        .column(Column::number("lost in gaps").leaves(6), |cpu| known(cpu.lost_events_at_uncounted_places))
        .column(Column::number("without time").leaves(6), |cpu| known(unplaced(cpu)))
        .explain(
            "overrun",
            "Overrun, dropped, commit overrun: the kernel's counters of events that were overwritten before they were read, refused by a full buffer, lost in nested interrupts.",
        )
        .explain("counted", "Counted: lost events that sub-buffers count.")
        .explain("lost in gaps", "Lost in gaps: overrun events beyond those counted, in all uncounted gaps.")
        .explain("without time", "Without time: lost events that mark no sub-buffer.");
    (table.into(), left)
}

/// True if 0 lost events are only those that are known: there are no counters, or the recording was cut or changed.
fn is_unknown(cpu: &CpuRow) -> bool {
    let has_counters = cpu
        .stats
        .as_ref()
        .is_some_and(|s| s.overrun.is_some() || s.dropped_events.is_some() || s.commit_overrun.is_some());
    cpu.head.lost_events_is_minimum || !has_counters
}

/// Gaps in the streams, uncounted ones and the largest first, and the number of gaps that are left out.
pub fn places(rows: &InfoRows, view: &View) -> (Table, usize) {
    let cpus = rows.head.trace.per_cpu.iter();
    let mut places: Vec<(u32, &LossRow)> =
        cpus.flat_map(|cpu| cpu.losses.iter().map(|loss| (cpu.head.cpu, loss))).collect();
    places.sort_rows_by_key(|(_, loss)| {
        (Reverse(loss.uncounted), Reverse(loss.lost_events.unwrap_or(0).max(loss.events_missing)))
    });
    let left = places.len().saturating_sub(view.limit);
    let at = |time: Option<u64>, end| time.map_or(Cell::text(end), |time| Cell::text(view.time(time)));
    let table = Table::of_rows("Gaps", places.into_iter().take(view.limit))
        .column(Column::number("CPU"), |(cpu, _)| Cell::Count((*cpu).into()))
        .column(Column::number("after"), |(_, loss)| at(loss.after, "start"))
        .column(Column::number("before"), |(_, loss)| at(loss.before, "end"))
        .column(Column::number("lost"), |(_, loss)| lost(loss))
        .column(Column::number("in missing chunks").leaves(1), |(_, loss)| Cell::Count(loss.events_missing))
        .column(Column::text("remark").leaves(2), |(_, loss)| Cell::text(remark(loss)));
    (table.into(), left)
}

/// Settings that other processes wrote.
pub fn changes(rows: &InfoRows, view: &View) -> Table {
    let value = |value: &str| Cell::text(escaped(value.as_bytes()));
    Table::of_rows("Changes by other processes", rows.changes.iter().take(view.limit))
        .column(Column::number("after"), |row| Cell::text(view.time(row.from)))
        .column(Column::number("before"), |row| Cell::text(view.time(row.to)))
        .column(Column::name("file"), |row| value(&row.file))
        .column(Column::text("old value"), |row| value(&row.old_value))
        .column(Column::text("new value"), |row| value(&row.new_value))
        .into()
}

/// Events lost in a gap, as far as the kernel counted them.
fn lost(loss: &LossRow) -> Cell {
    match loss.lost_events.filter(|lost| *lost > 0) {
        None => Cell::Empty,
        Some(lost) if loss.uncounted => Cell::text(format!(">= {}", count(lost))),
        Some(lost) => Cell::Count(lost),
    }
}

/// Reasons why the number of lost events is not exact.
fn remark(loss: &LossRow) -> &'static str {
    if loss.early_end {
        return "ended unexpectedly; unknown what was unread";
    }
    match (loss.uncounted, loss.damaged_input) {
        (true, _) if loss.before_first => "before the recorded time, not counted",
        (false, _) if loss.before_first => "before the recorded time",
        (true, true) => "not counted by the kernel; input damaged",
        (true, false) => "not counted by the kernel",
        (false, true) => "input damaged",
        (false, false) => "",
    }
}
