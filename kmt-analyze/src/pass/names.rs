//! Texts for numbers in events.

use std::cell::RefCell;
use std::collections::HashMap;

use kmt_format::print::{EventText, PrintEnv};
use kmt_format::read::{Event, EventChunk, Metadata};
use kmt_format::schema::Role;

use crate::pass::filter::Names;
use crate::stream::Interner;
use crate::trace::session::Session;

/// Names from a trace.
pub struct TraceNames<'s, 'd> {
    session: &'s Session<'d>,
    env: PrintEnv<'d>,
    gfp: RefCell<HashMap<u64, Vec<u8>>>,
    flags: RefCell<FlagEvents>,
    /// The chunk that was read last, with its offset: flags that are new come in the order of the events.
    last: RefCell<Option<(u64, EventChunk<'d>)>>,
    /// Print formats of event classes, by class_index: parsing one costs far more than using it.
    templates: RefCell<HashMap<usize, EventText>>,
    migratetypes: Vec<String>,
}

/// Flags by the offset of the chunk that has an event with them: a chunk is read once for all of its flags.
#[derive(Default)]
struct FlagEvents {
    by_chunk: HashMap<u64, Vec<(u64, usize)>>,
    /// Number of flags that were put in order.
    known: usize,
}

impl FlagEvents {
    /// Flags of a chunk, with the indices of their events. During a pass, flags are put in order when they have doubled.
    fn take(&mut self, interner: &Interner, chunk: u64) -> Vec<(u64, usize)> {
        if interner.gfp.len() >= 2 * self.known.max(1) || self.known == 0 {
            self.known = interner.gfp.len();
            self.by_chunk.clear();
            for (flags, (chunk, index)) in &interner.gfp {
                self.by_chunk.entry(chunk.offset).or_default().push((*flags, *index));
            }
        }
        self.by_chunk.remove(&chunk).unwrap_or_default()
    }
}

impl<'s, 'd> TraceNames<'s, 'd> {
    /// Names of a trace.
    pub fn new(session: &'s Session<'d>) -> Self {
        let migratetypes = migratetypes(session.trace.metadata());
        let (gfp, flags, last, templates) = Default::default();
        Self { session, env: session.print_env(), gfp, flags, last, templates, migratetypes }
    }

    /// Reads the texts of these flags, and of all others that are in the same chunk.
    fn read_gfp(&self, interner: &Interner, gfp_flags: u64) -> Option<()> {
        let (chunk, index) = interner.gfp.get(&gfp_flags)?;
        let mut last = self.last.borrow_mut();
        if last.as_ref().is_none_or(|(offset, _)| *offset != chunk.offset) {
            *last = Some((chunk.offset, self.session.trace.read(chunk).ok()?));
        }
        let (offset, chunk) = last.as_ref()?;
        let others = self.flags.borrow_mut().take(interner, *offset);
        let mut found = self.gfp.borrow_mut();
        for (flags, index) in others.into_iter().chain([(gfp_flags, *index)]) {
            if let Some(text) = self.gfp_text(chunk, index) {
                found.insert(flags, text);
            }
        }
        Some(())
    }

    fn gfp_text(&self, chunk: &EventChunk<'_>, index: usize) -> Option<Vec<u8>> {
        let trace = self.session.trace;
        let event = Event::new(trace.schema(), chunk, index)?;
        let field = event.class().field_with(Role::GFP_FLAGS)?;
        let mut templates = self.templates.borrow_mut();
        let template =
            templates.entry(event.class_index()).or_insert_with(|| EventText::new(event.class(), &self.env));
        template.field_text(field, &event, &self.env)
    }
}

impl Names for TraceNames<'_, '_> {
    fn symbol(&self, address: u64) -> Vec<u8> {
        self.env.symbol_with_offset(address)
    }

    fn gfp(&self, interner: &Interner, gfp_flags: u64) -> Vec<u8> {
        if let Some(found) = self.gfp.borrow().get(&gfp_flags) {
            return found.clone();
        }
        self.read_gfp(interner, gfp_flags);
        let mut found = self.gfp.borrow_mut();
        found.entry(gfp_flags).or_insert_with(|| format!("{gfp_flags:#x}").into_bytes()).clone()
    }

    fn migratetype(&self, number: i32) -> String {
        let found = usize::try_from(number).ok().and_then(|n| self.migratetypes.get(n));
        found.cloned().unwrap_or_else(|| number.to_string())
    }
}

/// Names of migrate types in the order of their numbers: /proc/pagetypeinfo lists the types of each zone in this order.
/// Without it, the four of all kernels since 4.4 (enum migratetype, include/linux/mmzone.h).
pub fn migratetypes(metadata: &Metadata<'_>) -> Vec<String> {
    let files = ["pagetypeinfo.before", "pagetypeinfo.after", "pagetypeinfo"];
    let text = files.iter().find_map(|n| metadata.attachment(n)).unwrap_or_default();
    let mut names: Vec<String> = Vec::new();
    for line in String::from_utf8_lossy(text).lines() {
        // Node    0, zone      DMA, type    Unmovable      1 ...
        let Some(name) = line.split_once(", type").and_then(|(_, rest)| rest.split_whitespace().next())
        else {
            continue;
        };
        if names.iter().any(|n| n == name) {
            break;
        }
        names.push(name.to_owned());
    }
    if names.is_empty() {
        names = ["Unmovable", "Movable", "Reclaimable", "HighAtomic"].map(str::to_owned).to_vec();
    }
    names
}
