//! `verify`: whether a file is whole, chunk by chunk and event by event.

use std::collections::BTreeMap;

use crate::limits;
use kmt_format::Fault;
use kmt_format::read::{Damage, Trace};
use serde_json::{Map, json};

use crate::failure::{Outcome, Result};
use crate::render::out::{Out, Schema, print_json};
use crate::render::text::{count, escaped};
use crate::trace::session::Session;
use crate::trace::unknown::{self, UnknownFields};

/// What was found.
struct Found {
    chunks: BTreeMap<String, u64>,
    events: u64,
    damages: Vec<Damage>,
    /// Events that have no fields.
    unreadable: u64,
    /// The index at the end tells something else than the chunks.
    index: Option<&'static str>,
}

/// Checks everything and says what was found.
pub fn run(session: &Session<'_>, bytes: &[u8], as_json: bool) -> Result<Outcome> {
    let trace = session.trace;
    let found = look(trace, bytes);
    let is_sound = found.damages.is_empty()
        && trace.damage_count() == 0
        && found.unreadable == 0
        && found.index.is_none_or(|i| i == "agrees");
    if as_json {
        let mut out = Map::new();
        let damages: Vec<_> = damages(trace, &found)
            .map(|d| {
                let fault = match d.error.fault() {
                    Fault::Input => "input",
                    Fault::Unsupported => "unsupported",
                    _ => "other",
                };
                json!({"offset": d.offset, "len": d.len, "code": d.error.code(), "fault": fault, "what": d.error.kind().to_string()})
            })
            .collect();
        out.insert(
            "verify".into(),
            json!({
                "sound": is_sound,
                "finished": trace.is_finished(),
                "file_bytes": bytes.len(),
                "chunks": found.chunks,
                "events": found.events,
                "events_unreadable": found.unreadable,
                "unknown_fields": unknown::fields(trace.schema()).iter().map(|u| json!({"class": u.class, "fields": u.fields})).collect::<Vec<_>>(),
                "index": found.index,
                "damages_total": trace.damage_count() + found.damages.len() as u64,
                "damages": damages,
            }),
        );
        print_json(Schema::first("verify"), out)?;
    } else {
        let mut out = Out::stdout();
        out.page(&page(session, &found, is_sound))?;
        out.finish()?;
    }
    // An unfinished file is sound as far as it goes, and may lack events.
    Ok(if is_sound && trace.is_finished() { Outcome::Done } else { Outcome::Incomplete })
}

/// Damage that opening found, and that reading events found.
fn damages<'a>(trace: &'a Trace<'_>, found: &'a Found) -> impl Iterator<Item = &'a Damage> {
    trace.damages().iter().chain(&found.damages)
}

fn look(trace: &Trace<'_>, bytes: &[u8]) -> Found {
    let mut found =
        Found { chunks: BTreeMap::new(), events: 0, damages: Vec::new(), unreadable: 0, index: None };
    for chunk in trace.chunks() {
        *found.chunks.entry(escaped(&chunk.kind.0)).or_default() += 1;
    }
    // Fields of a later version of the format have no value here, and are no damage.
    let later = trace.schema().unknown_fields();
    for (chunk, _) in trace.streams().values().flat_map(|s| &s.chunks) {
        match trace.read(chunk) {
            Ok(read) => {
                for event in read.events(trace.schema()) {
                    found.events += 1;
                    let unknown = later.get(&event.class_index()).map_or(&[][..], Vec::as_slice);
                    let mut fields = (0u16..).zip(event.class().fields.iter());
                    let whole =
                        fields.all(|(i, _)| event.get(usize::from(i)).is_some() || unknown.contains(&i));
                    found.unreadable += u64::from(!whole);
                }
            }
            Err(error) => found.damages.push(Damage::new(chunk.offset, chunk.total_len, error)),
        }
    }
    let has_index = trace.metadata().trailer.is_some_and(|t| t.index_offset.is_some());
    if has_index && (trace.damage_count() > 0 || !found.damages.is_empty()) {
        // A damaged chunk is not what the index says of it, and that is not the fault of the index.
        found.index = Some("not compared: chunks are damaged");
    } else if has_index {
        let indexed = Trace::open_indexed(bytes, limits::of_file());
        found.index = Some(match indexed {
            Ok(Some(indexed)) if indexed.event_count() == trace.event_count() => "agrees",
            Ok(Some(_)) => "tells another number of events than the chunks",
            Ok(None) | Err(_) => "cannot be used",
        });
    }
    found
}

fn page(session: &Session<'_>, found: &Found, is_sound: bool) -> String {
    const TOLD: usize = 20;
    let trace = session.trace;
    let verdict = match (is_sound, trace.is_finished()) {
        (true, true) => "sound",
        (true, false) => "unfinished",
        (false, _) => "damaged",
    };
    let mut out = format!("{}: {verdict}\n", session.path.display());
    let kinds: Vec<String> = found.chunks.iter().map(|(kind, n)| format!("{n} {kind}")).collect();
    out.push_str(&format!("chunks    {}\n", kinds.join(", ")));
    out.push_str(&format!("events    {}, every one read, every checksum compared\n", count(found.events)));
    if let Some(index) = found.index {
        out.push_str(&format!("index     {index}\n"));
    }
    for UnknownFields { class, fields, .. } in unknown::fields(trace.schema()) {
        out.push_str(&format!(
            "unknown   {} of {class}: of a later version of the format\n",
            fields.join(", ")
        ));
    }
    if !trace.is_finished() {
        out.push_str("end       missing: the writer was interrupted, or the copy was cut\n");
    }
    if found.unreadable > 0 {
        out.push_str(&format!("unread    {} events whose fields cannot be found\n", count(found.unreadable)));
    }
    for damage in damages(trace, found).take(TOLD) {
        out.push_str(&format!("damage    {} bytes: {}\n", damage.len, damage.error));
    }
    let all = trace.damage_count() + found.damages.len() as u64;
    if all > TOLD as u64 {
        out.push_str(&format!("damage    {} more places\n", all - TOLD as u64));
    }
    if !is_sound || !trace.is_finished() {
        out.push_str("remedy    kmt-analyze recover FILE -o WHOLE.kmt keeps what can be read\n");
    }
    out
}
