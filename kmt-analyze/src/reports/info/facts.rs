//! Facts about the file and its target, each beside its name.

use kmt_format::kernel::ClockUnit;

use super::chunks::StorageRow;
use super::date::utc;
use super::rows::{CostRow, InfoRows, IntegrityRow};
use crate::render::text::{count, duration, escaped};
use crate::render::words::counted;
use crate::reports::common::View;

/// All facts.
pub fn of(rows: &InfoRows, view: &View) -> Vec<(&'static str, String)> {
    let mut out = vec![
        ("file", rows.file.clone()),
        ("size", format!("{}, {:.2} bytes per event", view.bytes(rows.file_bytes), rows.bytes_per_event)),
        ("kernel", kernel(rows)),
    ];
    out.extend(rows.recorded.map(|times| ("recorded", recorded(times))));
    out.push(("clock", rows.head.clock.name.as_ref().map_or(unknown(), |name| escaped(name.as_bytes()))));
    out.extend(command(rows).map(|command| ("command", command)));
    out.extend(rows.cost.map(|cost| ("cost", recorder(cost))));
    out.push(("page size", rows.format.page_size.map_or(unknown(), |size| counted(size, "byte", "bytes"))));
    out.push(("symbols", if rows.has_symbols { count(rows.symbols as u64) } else { "none".to_owned() }));
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

fn kernel(rows: &InfoRows) -> String {
    rows.kernel.uname_line.as_ref().map_or(unknown(), |uname| escaped(uname.as_bytes()))
}

/// Begin and end of the recording.
fn recorded([first, last]: [i64; 2]) -> String {
    let ((day, from), (last_day, to)) = (utc(first), utc(last));
    if day == last_day {
        format!("{day} {from} to {to} UTC")
    } else {
        format!("{day} {from} to {last_day} {to} UTC")
    }
}

/// The recorded command and its end.
fn command(rows: &InfoRows) -> Option<String> {
    let command = rows.command.as_ref()?;
    let outcome = command.outcome.as_deref().unwrap_or("end unknown");
    let [command, outcome] = [&command.command, outcome].map(|text| escaped(text.as_bytes()));
    Some(format!("{command} ({outcome})"))
}

/// CPU time of the recorder, by event and by time.
fn recorder(CostRow { cpu_ns, events, length_ns }: CostRow) -> String {
    let (each, share) = (cpu_ns as f64 / events as f64, 100.0 * cpu_ns as f64 / length_ns as f64);
    let total = duration(cpu_ns, ClockUnit::Nanoseconds);
    format!("{total} of CPU for the recorder: {each:.0} ns per event, {share:.1} % of one CPU")
}

fn attachments(rows: &InfoRows) -> String {
    let names = rows.attachments.iter().map(|attachment| &attachment.name);
    let names: Vec<String> =
        names.filter(|name| !name.starts_with("events/")).map(|name| escaped(name.as_bytes())).collect();
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
    match (integrity.damage_count, integrity.finished) {
        (0, true) if integrity.events_missing > 0 => {
            format!("chunks with {} are missing", counted(integrity.events_missing, "event", "events"))
        }
        (0, true) => "sound: all checksums match and the file has its end".to_owned(),
        (0, false) => "no damage, but the file has no end: cut off, or still being written".to_owned(),
        (damages, _) => format!("damaged in {}", counted(damages, "place", "places")),
    }
}
