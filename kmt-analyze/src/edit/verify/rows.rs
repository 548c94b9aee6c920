//! Results of all checks of a file.

use std::collections::BTreeMap;

use kmt_format::Fault;
use kmt_format::read::{Damage, Trace};
use serde::Serialize;

use crate::render::text::escaped;
use crate::trace::unknown;
use kmt_format::Limits;

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct VerifyRows {
    /// Results of all checks.
    pub verify: VerifyRow,
}

/// Results of all checks.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct VerifyRow {
    /// True if nothing in the file is damaged.
    pub sound: bool,
    /// True if the file has its end; without it events may be missing.
    pub finished: bool,
    /// Length of the file in bytes.
    pub file_bytes: usize,
    /// Number of chunks by kind.
    pub chunks: BTreeMap<String, u64>,
    /// Number of events that were read.
    pub events: u64,
    /// Number of events that lack a field.
    pub events_unreadable: u64,
    /// Event classes with fields of a later version of the format, at most 16: no damage, but their values are unknown.
    pub unknown_fields: Vec<UnknownRow>,
    /// Result of the check of the index: `agrees`, or the fault; `null`: the file has no index.
    pub index: Option<&'static str>,
    /// Number of damaged places, including those beyond the limit of the list.
    pub damages_total: u64,
    /// Damaged places; of those found on opening the file, at most as many as the limit `damages`.
    pub damages: Vec<VerifyDamageRow>,
}

/// An event class with fields of a later version of the format.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UnknownRow {
    /// `system:event`.
    pub class: String,
    /// Names of the fields, at most 16.
    pub fields: Vec<String>,
}

/// A damaged place of the file.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct VerifyDamageRow {
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Length in bytes; 0 if no byte range applies.
    pub len: u64,
    /// Code of the error.
    pub code: &'static str,
    /// `input`: the bytes are wrong; `unsupported`: this version cannot read them; `other`.
    pub fault: &'static str,
    /// The error.
    pub what: String,
    /// The error with its offset.
    #[serde(skip)]
    pub error: String,
}

impl From<&Damage> for VerifyDamageRow {
    fn from(damage: &Damage) -> Self {
        let fault = match damage.error.fault() {
            Fault::Input => "input",
            Fault::Unsupported => "unsupported",
            _ => "other",
        };
        Self {
            offset: damage.offset,
            len: damage.len,
            code: damage.error.code(),
            fault,
            what: damage.error.kind().to_string(),
            error: damage.error.to_string(),
        }
    }
}

/// Rows of a file.
pub fn compute(trace: &Trace<'_>, bytes: &[u8], limits: Limits) -> VerifyRows {
    let mut chunks = BTreeMap::new();
    for chunk in trace.chunks() {
        *chunks.entry(escaped(&chunk.kind.0)).or_default() += 1;
    }
    let events = read(trace);
    let damages_total = trace.damage_count() + events.damages.len() as u64;
    let index = index(trace, bytes, limits, damages_total > 0);
    let unknown = unknown::fields(trace.schema()).into_iter();
    let is_index_sound = index.is_none_or(|index| index == "agrees");
    VerifyRows {
        verify: VerifyRow {
            sound: damages_total == 0 && events.unreadable == 0 && is_index_sound,
            finished: trace.is_finished(),
            file_bytes: bytes.len(),
            chunks,
            events: events.count,
            events_unreadable: events.unreadable,
            unknown_fields: unknown.map(|u| UnknownRow { class: u.class, fields: u.fields }).collect(),
            index,
            damages_total,
            damages: trace.damages().iter().chain(&events.damages).map(VerifyDamageRow::from).collect(),
        },
    }
}

/// Results of reading all events.
#[derive(Default)]
struct EventTally {
    count: u64,
    /// Events that lack a field.
    unreadable: u64,
    /// Damaged chunks.
    damages: Vec<Damage>,
}

fn read(trace: &Trace<'_>) -> EventTally {
    let mut all = EventTally::default();
    // Fields of a later version of the format have no value here, and are no damage.
    let later = trace.schema().unknown_fields();
    for (chunk, _) in trace.streams().values().flat_map(|s| &s.chunks) {
        match trace.read(chunk) {
            Ok(read) => {
                for event in read.events(trace.schema()) {
                    all.count += 1;
                    let unknown = later.get(&event.class_index()).map_or(&[][..], Vec::as_slice);
                    let mut fields = (0u16..).zip(event.class().fields.iter());
                    let whole =
                        fields.all(|(i, _)| event.get(usize::from(i)).is_some() || unknown.contains(&i));
                    all.unreadable += u64::from(!whole);
                }
            }
            Err(error) => all.damages.push(Damage::new(chunk.offset, chunk.total_len, error)),
        }
    }
    all
}

/// Compares the index with the chunks; `None`: the file has no index.
fn index(trace: &Trace<'_>, bytes: &[u8], limits: Limits, is_damaged: bool) -> Option<&'static str> {
    trace.metadata().trailer.filter(|t| t.index_offset.is_some())?;
    if is_damaged {
        // A damaged chunk is not what the index says of it, and that is not the fault of the index.
        return Some("not compared: chunks are damaged");
    }
    Some(match Trace::open_indexed(bytes, limits) {
        Ok(Some(indexed)) if indexed.event_count() == trace.event_count() => "agrees",
        Ok(Some(_)) => "tells another number of events than the chunks",
        Ok(None) | Err(_) => "cannot be used",
    })
}
