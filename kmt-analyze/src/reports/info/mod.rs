//! `info`: what the file holds, what was lost, and whether the file is sound.

use std::collections::BTreeMap;

use kmt_format::raw::{ChunkKind, chunk_flags, codecs};
use kmt_format::read::{Damage, Trace};
use serde_json::{Map, Value, json};

use crate::failure::{Outcome, Result};
use crate::render::json;
use crate::render::out::{Out, print_json};
use crate::render::table::{Align, table};
use crate::render::text::{count, escaped, time};
use crate::reports::common::trust::title;
use crate::trace::losses::{CpuLosses, LossPlace};
use crate::trace::open::outcome;
use crate::trace::session::Session;

/// Places of losses that the text lists for each CPU; JSON lists all.
const PLACES_SHOWN: usize = 4;

/// Prints what is known of the file.
pub fn run(session: &Session<'_>, as_json: bool) -> Result<Outcome> {
    let (classes, damages) = read_all(session.trace);
    if as_json {
        print_json(document(session, &classes, &damages))?;
    } else {
        let mut out = Out::stdout();
        out.page(&page(session, &classes, &damages))?;
        out.finish()?;
    }
    Ok(outcome(&session.path, session.trace, &damages, session.losses.any()))
}

/// Reads every event chunk: counts events by class, and finds damage.
fn read_all(trace: &Trace<'_>) -> (BTreeMap<usize, u64>, Vec<Damage>) {
    let mut classes: BTreeMap<usize, u64> = BTreeMap::new();
    let mut damages = Vec::new();
    for (chunk, _) in trace.streams().values().flat_map(|s| &s.chunks) {
        match trace.read(chunk) {
            Ok(read) => {
                let mut by_descriptor = vec![0u64; read.descriptor_count()];
                read.records().for_each(|r| {
                    if let Some(n) = by_descriptor.get_mut(usize::from(r.descriptor)) {
                        *n += 1;
                    }
                });
                for (descriptor, n) in by_descriptor.into_iter().enumerate() {
                    let shape = read.shape_of(descriptor).and_then(|s| trace.schema().shape(s));
                    if let Some(shape) = shape {
                        *classes.entry(shape.class).or_default() += n;
                    }
                }
            }
            Err(error) => damages.push(Damage::new(chunk.offset, chunk.total_len, error)),
        }
    }
    (classes, damages)
}

fn bytes_per_event(trace: &Trace<'_>) -> f64 {
    trace.event_bytes() as f64 / trace.event_count().max(1) as f64
}

fn class_name(trace: &Trace<'_>, index: usize) -> String {
    trace.schema().class(index).map_or_else(String::new, |c| format!("{}:{}", c.system, c.name))
}

fn document(session: &Session<'_>, classes: &BTreeMap<usize, u64>, damages: &[Damage]) -> Map<String, Value> {
    let trace = session.trace;
    let header = trace.header();
    let metadata = trace.metadata();
    let mut out = json::head(trace, &session.losses);
    if let Some(Value::Array(per_cpu)) = out.get_mut("trace").and_then(|t| t.get_mut("per_cpu")) {
        for (row, cpu) in per_cpu.iter_mut().zip(&session.losses.cpus) {
            if let Value::Object(row) = row {
                row.append(&mut cpu_json(cpu));
            }
        }
    }
    let text = |key: &str| metadata.value(key).map(json::text);
    out.insert("file_bytes".into(), trace.len_bytes().into());
    out.insert("bytes_per_event".into(), json!(bytes_per_event(trace)));
    out.insert("event_chunk_bytes".into(), trace.event_bytes().into());
    out.insert(
        "format".into(),
        json!({
            "version": format!("{}.{}", header.version_major, header.version_minor),
            "byte_order": header.order.name(),
            "long_size": header.long_size,
            "page_size": header.page_size,
            "uuid": header.trace_uuid.iter().map(|b| format!("{b:02x}")).collect::<String>(),
            "chunks": trace.chunk_count(),
        }),
    );
    out.insert(
        "kernel".into(),
        json!({"uname": text("uname"), "release": text("kernel.release"), "machine": text("kernel.machine")}),
    );
    let meta: Map<String, Value> =
        metadata.pairs.iter().map(|(k, v)| (k.clone().into_owned(), json::text(v))).collect();
    out.insert("meta".into(), meta.into());
    out.insert(
        "events".into(),
        classes.iter().map(|(i, n)| (class_name(trace, *i), json!(n))).collect::<Map<_, _>>().into(),
    );
    out.insert("storage".into(), Storage::of(trace).json());
    out.insert("symbols".into(), json!(trace.symbols().map_or(0, |s| s.len())));
    out.insert("tasks".into(), json!(metadata.tasks.len()));
    let attachments = metadata.attachments.iter().map(|a| json!({"name": a.name, "bytes": a.contents.len()}));
    out.insert("attachments".into(), attachments.collect());
    let all = trace.damages().iter().chain(damages);
    let damages: Vec<Value> = all
        .map(|d| json!({"offset": d.offset, "bytes": d.len, "error": d.error.to_string(), "code": d.error.code()}))
        .collect();
    let missing: u64 = trace.streams().values().fold(0, |sum, s| sum.saturating_add(s.events_missing));
    out.insert(
        "integrity".into(),
        json!({
            "sound": damages.is_empty() && trace.is_finished() && missing == 0,
            "finished": trace.is_finished(),
            "events_missing": missing,
            "damages": damages,
        }),
    );
    out
}

fn cpu_json(cpu: &CpuLosses) -> Map<String, Value> {
    let places: Vec<Value> = cpu
        .places
        .iter()
        .map(|p| {
            json!({
                "after": p.after,
                "before": p.before,
                "lost_events": if p.uncounted && p.counted == 0 { Value::Null } else { p.counted.into() },
                "uncounted": p.uncounted,
                "damaged_input": p.damaged_input,
                "events_missing": p.events_missing,
            })
        })
        .collect();
    let stats = cpu.stats.map(|s| {
        json!({
            "entries": s.entries, "overrun": s.overrun, "commit_overrun": s.commit_overrun,
            "dropped_events": s.dropped, "read_events": s.read,
        })
    });
    let value = json!({
        "stats": stats,
        "lost_events_counted_in_place": cpu.counted(),
        "uncounted_places": cpu.uncounted_places(),
        "lost_events_at_uncounted_places": cpu.lost_at_uncounted_places(),
        "lost_events_unplaced": cpu.unplaced(),
        "losses": places,
    });
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// How the event chunks are stored.
#[derive(Default)]
struct Storage {
    plain: u64,
    lz4: u64,
    zstd: u64,
    verbatim: u64,
    unverified: u64,
}

impl Storage {
    fn of(trace: &Trace<'_>) -> Self {
        let mut out = Self::default();
        for (chunk, _) in trace.streams().values().flat_map(|s| &s.chunks) {
            match chunk.codec & 15 {
                codecs::LZ4 => out.lz4 += 1,
                codecs::ZSTD => out.zstd += 1,
                _ => out.plain += 1,
            }
            out.verbatim += u64::from(chunk.kind == ChunkKind::SUB_BUFFERS);
            out.unverified += u64::from(chunk.flags & chunk_flags::UNVERIFIED != 0);
        }
        out
    }

    fn json(&self) -> Value {
        let Self { plain, lz4, zstd, verbatim, unverified } = self;
        json!({"plain": plain, "lz4": lz4, "zstd": zstd, "verbatim": verbatim, "unverified": unverified})
    }

    fn text(&self) -> String {
        let parts = [
            (self.plain, "event chunks as they are"),
            (self.lz4, "with lz4"),
            (self.zstd, "with zstd"),
            (self.verbatim, "of them verbatim sub-buffers"),
            (self.unverified, "of them from a torn file, without a checksum over what the target wrote"),
        ];
        let parts = parts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{} {what}", count(*n)));
        let text = parts.collect::<Vec<_>>().join(", ");
        if text.is_empty() { "no event chunks".to_owned() } else { text }
    }
}

fn page(session: &Session<'_>, classes: &BTreeMap<usize, u64>, damages: &[Damage]) -> String {
    let trace = session.trace;
    let header = trace.header();
    let metadata = trace.metadata();
    let mut out = format!("{}\n\n", title(session));
    let mut line = |key: &str, value: String| out.push_str(&format!("{key:<14}{value}\n"));
    line(
        "format",
        format!(
            "{}.{}, {}-endian, {}-bit, {} chunks",
            header.version_major,
            header.version_minor,
            header.order.name(),
            header.long_size * 8,
            count(trace.chunk_count())
        ),
    );
    line(
        "file",
        format!("{} bytes; events {:.2} bytes each", count(trace.len_bytes()), bytes_per_event(trace)),
    );
    line("stored", Storage::of(trace).text());
    line("page size", header.page_size.map_or("not told".to_owned(), |s| format!("{} bytes", count(s))));
    line("kernel", metadata.text("uname").map_or("not told".to_owned(), |u| escaped(u.as_bytes())));
    if let Some(command) = metadata.text("record.command") {
        let outcome = metadata.text("record.command_outcome").unwrap_or("not known how it ended");
        line("command", format!("{} ({})", escaped(command.as_bytes()), escaped(outcome.as_bytes())));
    }
    line("symbols", trace.symbols().map_or("none".to_owned(), |s| count(s.len() as u64)));
    line("task names", count(metadata.tasks.len() as u64));
    let names: Vec<String> = metadata
        .attachments
        .iter()
        .map(|a| a.name.as_ref())
        .filter(|n| !n.starts_with("events/"))
        .map(|n| escaped(n.as_bytes()))
        .collect();
    line("attachments", if names.is_empty() { "none".to_owned() } else { names.join(" ") });
    let sound = damages.is_empty() && trace.damage_count() == 0;
    let integrity = match (sound, trace.is_finished()) {
        (true, true) => "sound: every checksum holds, and the file ends as its writer ended it".to_owned(),
        (true, false) => "no damage, but the file has no end: cut off, or still being written".to_owned(),
        (false, _) => format!("damaged in {} places", trace.damage_count() + damages.len() as u64),
    };
    line("integrity", integrity);
    out.push('\n');
    out.push_str(&cpu_table(session));
    out.push_str(&loss_list(session));
    out.push('\n');
    let mut rows: Vec<(String, u64)> = classes.iter().map(|(i, n)| (class_name(trace, *i), *n)).collect();
    rows.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    let rows: Vec<Vec<String>> =
        rows.into_iter().map(|(name, n)| vec![escaped(name.as_bytes()), count(n)]).collect();
    out.push_str(&table(&[("event", Align::Left), ("count", Align::Right)], &rows));
    out
}

fn cpu_table(session: &Session<'_>) -> String {
    use Align::Right;
    let columns = [
        ("CPU", Right),
        ("events", Right),
        ("lost", Right),
        ("overrun", Right),
        ("dropped", Right),
        ("commit overrun", Right),
        ("counted in place", Right),
        ("uncounted places", Right),
    ];
    let told = |n: Option<u64>| n.map_or("not told".to_owned(), count);
    let rows: Vec<Vec<String>> = session
        .losses
        .cpus
        .iter()
        .map(|c| {
            let least = if c.is_minimum() { ">= " } else { "" };
            vec![
                c.cpu.to_string(),
                count(c.events),
                format!("{least}{}", count(c.lost_events())),
                told(c.stats.and_then(|s| s.overrun)),
                told(c.stats.and_then(|s| s.dropped)),
                told(c.stats.and_then(|s| s.commit_overrun)),
                count(c.counted()),
                count(c.uncounted_places() as u64),
            ]
        })
        .collect();
    table(&columns, &rows)
}

fn loss_list(session: &Session<'_>) -> String {
    let mut out = String::new();
    let unit = session.unit();
    let at = |t: Option<u64>, otherwise: &str| t.map_or(otherwise.to_owned(), |t| time(t, unit));
    let what = |p: &LossPlace| {
        let mut parts = Vec::new();
        if p.counted > 0 {
            parts.push(format!("{} lost", count(p.counted)));
        }
        if p.uncounted {
            parts.push("lost, not counted by the kernel".to_owned());
        }
        if p.damaged_input {
            parts.push("input damaged".to_owned());
        }
        if p.events_missing > 0 {
            parts.push(format!("{} missing with their chunks", count(p.events_missing)));
        }
        parts.join(", ")
    };
    for cpu in &session.losses.cpus {
        for place in cpu.places.iter().take(PLACES_SHOWN) {
            let (after, before) = (at(place.after, "the start"), at(place.before, "the end"));
            out.push_str(&format!("CPU {}: between {after} and {before}: {}\n", cpu.cpu, what(place)));
        }
        if cpu.places.len() > PLACES_SHOWN {
            let more = cpu.places.len() - PLACES_SHOWN;
            out.push_str(&format!("CPU {}: {more} more places; --json lists all\n", cpu.cpu));
        }
        if let Some(lost) = cpu.lost_at_uncounted_places() {
            let places = cpu.uncounted_places();
            let together = if places == 1 { "there" } else { "at these places together" };
            out.push_str(&format!(
                "CPU {}: {places} places not counted by the kernel; its overrun counter tells {} lost {together}\n",
                cpu.cpu,
                count(lost)
            ));
        }
        if cpu.unplaced() > 0 {
            out.push_str(&format!(
                "CPU {}: {} lost of which the kernel does not say where (dropped events mark no sub-buffer)\n",
                cpu.cpu,
                count(cpu.unplaced())
            ));
        }
    }
    if out.is_empty() { out } else { format!("\n{out}") }
}
