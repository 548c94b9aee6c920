//! `verify`: damage of a file, chunk by chunk and event by event.
//!
//! The checks read the whole file: framing, checksums, tables, and each event. Their results are rows, printed as a screen or as
//! JSON.

use std::collections::{BTreeMap, BTreeSet};

use kmt_format::kernel::FieldKind;
use kmt_format::read::{Damage, Schema as EventSchema, Trace};
use kmt_format::schema::{Place, Transform};
use kmt_format::{Fault, Limits};
use serde::Serialize;

use crate::failure::{Outcome, Result};
use crate::render::out::{Schema, print_json, warn_of_losses};
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::render::words::{counted, escaped};
use crate::reports::document::print_screen;
use crate::reports::output::Output;
use crate::trace::session::Session;
use crate::trace::unknown;

/// Checks everything and prints the result.
pub fn run(session: &Session<'_>, bytes: &[u8], output: &Output) -> Result<Outcome> {
    let rows = compute(session.trace, bytes, session.env.limits.file);
    if output.json {
        print_json(&session.env, Schema::first("verify"), &rows)?;
    } else {
        let file = escaped(session.path.as_os_str().as_encoded_bytes());
        print_screen(session, screen(&file, &rows.verify), &output.show)?;
        warn_of_losses(session);
    }
    // An unfinished file is sound as far as it goes, and may lack events.
    let is_whole = rows.verify.sound && rows.verify.finished;
    Ok(if is_whole { Outcome::Done } else { Outcome::Incomplete })
}

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
    /// Number of events that lack a field which has a value by its definition.
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
fn compute(trace: &Trace<'_>, bytes: &[u8], limits: Limits) -> VerifyRows {
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
    let without_value = fields_without_value(trace.schema());
    for (chunk, _) in trace.streams().values().flat_map(|s| &s.chunks) {
        match trace.read(chunk) {
            Ok(read) => {
                for event in read.events(trace.schema()) {
                    all.count += 1;
                    let class = event.class_index();
                    let mut fields = (0u16..).zip(event.class().fields.iter());
                    let whole = fields.all(|(i, _)| {
                        event.get(usize::from(i)).is_some() || without_value.contains(&(class, i))
                    });
                    all.unreadable += u64::from(!whole);
                }
            }
            Err(error) => all.damages.push(Damage::new(chunk.offset, chunk.total_len, error)),
        }
    }
    for (chunk, _) in trace.folds() {
        if let Err(error) = trace.read_fold(chunk) {
            all.damages.push(Damage::new(chunk.offset, chunk.total_len, error));
        }
    }
    all
}

/// Fields that have no value by their definitions, and so are not damaged, with the indices of their classes: those of a later
/// version of the format, and differences from a field that is an array, a difference itself, or without a value. Spec section
/// "Shapes and slots".
fn fields_without_value(schema: &EventSchema) -> BTreeSet<(usize, u16)> {
    let unknown = schema.unknown_fields();
    let mut all: BTreeSet<_> =
        unknown.iter().flat_map(|(class, fields)| fields.iter().map(|field| (*class, *field))).collect();
    for shape in (0..SHAPES).filter_map(|number| schema.shape(number)) {
        let Some(class) = schema.class(shape.class) else { continue };
        let is_number = |base: u8| {
            let base = usize::from(base);
            let slot =
                shape.slots.get(base).filter(|slot| !matches!(slot.transform, Transform::BeforeField(_)));
            slot.is_some_and(|slot| !matches!(slot.place, Place::Opaque { .. }))
                && class.fields.get(base).is_some_and(|field| field.kind == FieldKind::Scalar)
        };
        let fields = (0u16..).zip(shape.slots.iter());
        let starts_nowhere = fields
            .filter(|(_, slot)| matches!(slot.transform, Transform::BeforeField(base) if !is_number(base)));
        all.extend(starts_nowhere.map(|(field, _)| (shape.class, field)));
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

/// Largest number of shapes of a file: descriptors have their numbers in 2 bytes.
const SHAPES: usize = 1 << 16;

/// Damaged places that are listed.
const PLACES_SHOWN: usize = 20;

/// The screen of a file: sound, unfinished or damaged, and the damage.
fn screen(file: &str, row: &VerifyRow) -> Screen {
    let mut screen = Screen::new(answer(file, row));
    screen.facts(facts(row));
    let shown = row.damages.len().min(PLACES_SHOWN);
    screen.table(
        Table::of_rows("", row.damages.iter().take(shown))
            .column(Column::number("damage at"), |damage| Cell::text(format!("{:#x}", damage.offset)))
            .column(Column::number("length"), |damage| Cell::Bytes(damage.len))
            .column(Column::text("error"), |damage| Cell::text(&damage.error)),
    );
    let left = row.damages_total.saturating_sub(shown as u64);
    if left > 0 {
        screen.note(format!("Not shown: {}.", counted(left, "damaged place", "damaged places")));
    }
    if row.sound && row.finished {
        screen.next("summary", "slab and page memory");
    } else {
        screen.next("recover -o WHOLE.kmt", "a sound file of all that can be read");
    }
    screen
}

fn answer(file: &str, row: &VerifyRow) -> String {
    let events = counted(row.events, "event", "events");
    match (row.sound, row.finished) {
        (true, true) => format!("{file} is sound: all checksums match, and all {events} can be read."),
        (true, false) => format!(
            "{file} is unfinished: {events} can be read, and the end is missing. The writer was interrupted, or the copy was cut."
        ),
        (false, _) => {
            let places = match row.damages_total {
                0 => String::new(),
                places => format!(" in {}", counted(places, "place", "places")),
            };
            let end = if row.finished { "" } else { ", and its end is missing" };
            format!("{file} is damaged{places}{end}: {events} can be read.")
        }
    }
}

fn facts(row: &VerifyRow) -> Vec<(&'static str, String)> {
    let kinds: Vec<String> = row.chunks.iter().map(|(kind, n)| format!("{kind}={n}")).collect();
    let mut facts = vec![("chunks", kinds.join(", "))];
    facts.extend(row.index.map(|index| ("index", index_text(index).to_owned())));
    if row.events_unreadable > 0 {
        let events = counted(row.events_unreadable, "event", "events");
        facts.push(("unreadable", format!("fields of {events}")));
    }
    for unknown in &row.unknown_fields {
        let fields = unknown.fields.join(", ");
        facts.push(("unknown", format!("{fields} of {}: of a later version of the format", unknown.class)));
    }
    facts
}

/// The state of the index; its JSON keeps the words that it always had.
fn index_text(index: &str) -> &str {
    match index {
        "agrees" => "matches the chunks",
        "tells another number of events than the chunks" => {
            "wrong: its number of events is not that of the chunks"
        }
        "cannot be used" => "unusable",
        other => other,
    }
}
