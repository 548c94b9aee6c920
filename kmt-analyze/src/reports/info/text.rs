//! The page: a line for each subject, then the tables of CPUs and events.

use kmt_format::kernel::ClockUnit;

use super::chunks::StorageRow;
use super::losses;
use super::rows::{InfoRows, IntegrityRow};
use crate::render::table::{Align, table};
use crate::render::text::{count, escaped};

/// The page, behind its heading.
pub fn of(rows: &InfoRows, unit: ClockUnit) -> String {
    let cpus = &rows.head.trace.per_cpu;
    let tables = [losses::table_of(cpus), losses::list_of(cpus, unit)].concat();
    format!("{}\n{tables}\n{}", subjects(rows), events(&rows.events))
}

fn subjects(rows: &InfoRows) -> String {
    let mut out = String::new();
    let mut line = |key: &str, value: String| out.push_str(&format!("{key:<14}{value}\n"));
    line("format", format_text(rows));
    line("file", format!("{} bytes; events {:.2} bytes each", count(rows.file_bytes), rows.bytes_per_event));
    line("stored", storage(&rows.storage));
    let page_size = rows.format.page_size;
    line("page size", page_size.map_or("not told".to_owned(), |size| format!("{} bytes", count(size))));
    let uname = rows.kernel.uname_line.as_ref();
    line("kernel", uname.map_or("not told".to_owned(), |uname| escaped(uname.as_bytes())));
    if let Some(command) = &rows.command {
        let outcome = command.outcome.as_deref().unwrap_or("not known how it ended");
        let [command, outcome] = [&command.command, outcome].map(|text| escaped(text.as_bytes()));
        line("command", format!("{command} ({outcome})"));
    }
    line("symbols", if rows.has_symbols { count(rows.symbols as u64) } else { "none".to_owned() });
    line("task names", count(rows.tasks as u64));
    line("attachments", attachments(rows));
    line("integrity", integrity(&rows.integrity));
    out
}

fn format_text(rows: &InfoRows) -> String {
    let format = &rows.format;
    format!(
        "{}, {}-endian, {}-bit, {} chunks",
        format.version,
        format.byte_order,
        format.long_size * 8,
        count(format.chunks)
    )
}

fn storage(storage: &StorageRow) -> String {
    let counts = [
        (storage.plain, "event chunks as they are"),
        (storage.lz4, "with lz4"),
        (storage.zstd, "with zstd"),
        (storage.verbatim, "of them verbatim sub-buffers"),
        (storage.unverified, "of them from a torn file, without a checksum over what the target wrote"),
    ];
    let counts = counts.iter().filter(|(chunks, _)| *chunks > 0);
    let text =
        counts.map(|(chunks, kind)| format!("{} {kind}", count(*chunks))).collect::<Vec<_>>().join(", ");
    if text.is_empty() { "no event chunks".to_owned() } else { text }
}

fn attachments(rows: &InfoRows) -> String {
    let names = rows.attachments.iter().map(|attachment| &attachment.name);
    let names: Vec<String> =
        names.filter(|name| !name.starts_with("events/")).map(|name| escaped(name.as_bytes())).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(" ") }
}

fn integrity(integrity: &IntegrityRow) -> String {
    match (integrity.damage_count, integrity.finished) {
        (0, true) => "sound: every checksum holds, and the file ends as its writer ended it".to_owned(),
        (0, false) => "no damage, but the file has no end: cut off, or still being written".to_owned(),
        (damages, _) => format!("damaged in {damages} places"),
    }
}

fn events(events: &[(String, u64)]) -> String {
    let mut events: Vec<&(String, u64)> = events.iter().collect();
    events.sort_by(|(a, of_a), (b, of_b)| of_b.cmp(of_a).then(a.cmp(b)));
    let cells = events.into_iter().map(|(name, events)| vec![escaped(name.as_bytes()), count(*events)]);
    table(&[("event", Align::Left), ("count", Align::Right)], &cells.collect::<Vec<_>>())
}
