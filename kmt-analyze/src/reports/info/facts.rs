//! Facts about the file and its target, each beside its name.

use kmt_format::kernel::ClockUnit;
use kmt_format::read::Metadata;

use super::chunks::StorageRow;
use super::rows::{InfoRows, IntegrityRow};
use crate::render::words::{count, counted, duration, escaped, shown};
use crate::reports::common::View;
use crate::reports::common::date::utc;
use crate::trace::session::Session;

/// All facts.
pub fn compute(rows: &InfoRows, session: &Session<'_>, view: &View) -> Vec<(&'static str, String)> {
    let (trace, metadata) = (session.trace, session.trace.metadata());
    let mut out = vec![
        ("file", escaped(session.path.as_os_str().as_encoded_bytes())),
        ("size", format!("{}, {:.2} bytes per event", view.bytes(rows.file_bytes), rows.bytes_per_event)),
        ("kernel", metadata.text("uname").map_or(unknown(), |uname| shown(uname.as_bytes()))),
    ];
    out.extend(recorded(session).map(|times| ("recorded", times)));
    out.push(("clock", rows.head.clock.name.as_ref().map_or(unknown(), |name| shown(name.as_bytes()))));
    out.extend(command(metadata).map(|command| ("command", command)));
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
    Some(format!("{total} of CPU for the recorder: {each:.0} ns per event, {share:.1} % of one CPU"))
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
