//! Texts for numbers in events.

use std::cell::RefCell;
use std::collections::HashMap;

use kmt_format::print::{EventText, PrintEnv};
use kmt_format::read::{Event, Metadata};
use kmt_format::schema::Role;

use crate::pass::filter::Names;
use crate::stream::Interner;
use crate::trace::session::Session;

/// Names from a trace.
pub struct TraceNames<'s, 'd> {
    session: &'s Session<'d>,
    env: PrintEnv<'d>,
    gfp: RefCell<HashMap<u64, Vec<u8>>>,
    /// Print formats of event classes, by class_index: parsing one costs far more than using it.
    templates: RefCell<HashMap<usize, EventText>>,
    migratetypes: Vec<String>,
}

impl<'s, 'd> TraceNames<'s, 'd> {
    /// Names of a trace.
    pub fn new(session: &'s Session<'d>) -> Self {
        let migratetypes = migratetypes(session.trace.metadata());
        let (gfp, templates) = Default::default();
        Self { session, env: session.print_env(), gfp, templates, migratetypes }
    }

    fn gfp_text(&self, interner: &Interner, gfp_flags: u64) -> Option<Vec<u8>> {
        let trace = self.session.trace;
        let (chunk, index) = interner.gfp.get(&gfp_flags)?;
        let chunk = trace.read(chunk).ok()?;
        let event = Event::new(trace.schema(), &chunk, *index)?;
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
        let text =
            self.gfp_text(interner, gfp_flags).unwrap_or_else(|| format!("{gfp_flags:#x}").into_bytes());
        self.gfp.borrow_mut().insert(gfp_flags, text.clone());
        text
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
