//! `anonymize`: a trace that can be shared. Names of tasks, host, command line, files and all other text of the target
//! go; addresses move, all of one kind by the same unknown distance, so that layout stays what it was.

mod places;
mod texts;

use kmt_format::kernel::FieldKind;
use kmt_format::read::Event;
use kmt_format::schema::Role;

use self::places::Places;
use self::texts::Texts;
use super::copy::{Compress, Copy, failed, random};
use crate::commands::session::Session;
use crate::export::output::Target;
use crate::failure::{Outcome, Result};
use crate::open::outcome;

/// What to hide, and how.
#[derive(Debug)]
pub struct Options {
    /// Where to.
    pub target: Target,
    /// Names of functions and modules too.
    pub hide_symbols: bool,
    /// Names of caches too.
    pub hide_caches: bool,
    /// The same number moves addresses by the same distances, for several traces of one boot.
    pub seed: Option<u64>,
    /// How the file is stored.
    pub compress: Compress,
}

/// Keys of the file's facts that tell nothing of who or where.
const KEPT_PAIRS: [&str; 14] = [
    "writer",
    "source",
    "sub_buffer_size",
    "kernel.release",
    "kernel.machine",
    "page_size.source",
    "pointers",
    "slice",
    "tracefs/trace_clock",
    "tracefs/trace_options",
    "tracefs/current_tracer",
    "tracefs/tracing_thresh",
    "tracefs/timestamp_mode",
    "recorder.pid",
];
/// Files of the target that hold counts only. Lines of caches are looked at.
const KEPT_FILES: [&str; 6] = ["slabinfo", "buddyinfo", "pagetypeinfo", "zoneinfo", "meminfo", "vmstat"];

/// Writes the trace without names and addresses.
pub fn run(session: &Session<'_>, options: &Options) -> Result<Outcome> {
    let trace = session.trace;
    let seed = options.seed.unwrap_or_else(|| {
        let bytes = random();
        bytes.iter().take(8).fold(0, |sum, &b| sum << 8 | u64::from(b))
    });
    let places = Places::of(session, seed)?;
    let mut texts = Texts::default();
    let mut copy = Copy::new(session, &options.target, random(), options.compress)?;
    copy.clock(session)?;
    facts(session, &mut copy)?;
    files(session, options, &mut texts, &mut copy)?;
    copy.tasks(session, |comm| texts.task(comm))?;
    copy.counters(session, |_| true)?;
    copy.symbols(
        session,
        |address, name, owner| {
            let hidden =
                |text: &[u8], kind| if options.hide_symbols { texts.name(text, kind) } else { text.to_vec() };
            let mut hidden = hidden;
            let owner = owner.map(|o| hidden(o, "module"));
            (places.moved(address), hidden(name, "function"), owner)
        },
        false,
    )?;
    let mut merge = trace.merge();
    let mut record = Vec::new();
    while let Some(run) = merge.next_run() {
        if let Some(gap) = run.gap.as_ref().filter(|gap| !gap.is_empty()) {
            copy.gap(run.cpu, gap)?;
        }
        for index in run.range {
            let Some(event) = Event::new(trace.schema(), run.chunk, index) else { continue };
            event.to_record(&mut record);
            hide(&event, &mut record, &places, &mut texts, options);
            copy.event(run.cpu, event.time(), &record)?;
        }
    }
    let damages = merge.damages().to_vec();
    let events = copy.finish()?;
    eprintln!("{events} events; {} names of tasks and other texts replaced", texts.len());
    if !options.hide_symbols {
        eprintln!("note: names of functions and modules are kept; --hide-symbols replaces them");
    }
    Ok(outcome(&session.path, trace, &damages, session.losses.any()))
}

fn facts(session: &Session<'_>, copy: &mut Copy) -> Result<()> {
    let metadata = session.trace.metadata();
    let is_kept = |key: &str| KEPT_PAIRS.contains(&key) || key.starts_with("node") && key.ends_with(".cpus");
    let mut pairs: Vec<(&str, &[u8])> = metadata
        .pairs
        .iter()
        .filter(|(key, _)| is_kept(key))
        .map(|(key, value)| (key.as_ref(), value.as_ref()))
        .collect();
    pairs.push(("anonymized", b"yes"));
    copy.writer.meta(&pairs).map_err(|e| failed(&e))
}

fn files(session: &Session<'_>, options: &Options, texts: &mut Texts, copy: &mut Copy) -> Result<()> {
    for file in &session.trace.metadata().attachments {
        let stem = file.name.split('.').next().unwrap_or_default();
        if !KEPT_FILES.contains(&stem) {
            continue;
        }
        let contents = if stem == "slabinfo" {
            slabinfo(&file.contents, options, texts)
        } else {
            file.contents.to_vec()
        };
        copy.writer.file(&file.name, &contents).map_err(|e| failed(&e))?;
    }
    Ok(())
}

/// Names of caches at the start of lines: those of memory cgroups name containers.
fn slabinfo(text: &[u8], options: &Options, texts: &mut Texts) -> Vec<u8> {
    let mut out = Vec::new();
    for (number, line) in text.split_inclusive(|&b| b == b'\n').enumerate() {
        let end = line.iter().position(|b| b.is_ascii_whitespace()).unwrap_or(line.len());
        let (name, rest) = line.split_at(end);
        // Two lines of heading.
        if number < 2 || name.is_empty() || name.starts_with(b"#") {
            out.extend_from_slice(line);
            continue;
        }
        out.extend_from_slice(&texts.cache(name, options.hide_caches));
        out.extend_from_slice(rest);
    }
    out
}

/// Replaces what a record tells of the target, in place; texts keep their lengths or become shorter.
fn hide(event: &Event<'_>, record: &mut [u8], places: &Places, texts: &mut Texts, options: &Options) {
    let class = event.class();
    let order = event.order();
    for (index, field) in class.fields.iter().enumerate().skip(class.common_count) {
        let role = class.roles.get(index).copied().unwrap_or(Role::NONE);
        let (offset, size) = (field.offset as usize, field.size as usize);
        match field.kind {
            FieldKind::Scalar => {
                let value = order.uint_at(record, offset, size.min(8)).unwrap_or(0);
                let moved = places.field(field, role, value);
                if moved != value {
                    let mut bytes = Vec::with_capacity(8);
                    order.push(&mut bytes, moved, size.min(8));
                    overwrite(record, offset, &bytes);
                }
            }
            _ => {
                let Some((start, len)) = extent(event, index, record) else { continue };
                let Some(bytes) = record.get(start..start + len).map(<[u8]>::to_vec) else { continue };
                let hidden = if role == Role::STACK {
                    places.words(&bytes, field.element_size as usize, order)
                } else if role == Role::CACHE_NAME {
                    texts.fitting(&bytes, |texts, name| texts.cache(name, options.hide_caches))
                } else if field.is_text() {
                    texts.fitting(&bytes, Texts::task)
                } else {
                    // Raw bytes may be anything.
                    vec![0; len]
                };
                overwrite(record, start, &hidden);
            }
        }
    }
}

/// Where an array stands in the record that was made of the event.
fn extent(event: &Event<'_>, index: usize, record: &[u8]) -> Option<(usize, usize)> {
    let field = event.field(index)?;
    let len = event.bytes(index)?.len();
    let offset = field.offset as usize;
    let start = match field.kind {
        FieldKind::DataLoc => event.order().uint_at(record, offset, 4)? as usize & 0xffff,
        FieldKind::RelLoc => (event.order().uint_at(record, offset, 4)? as usize & 0xffff) + offset + 4,
        _ => offset,
    };
    Some((start, len))
}

fn overwrite(record: &mut [u8], offset: usize, bytes: &[u8]) {
    if let Some(place) = record.get_mut(offset..offset + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}
