//! What an anonymized file still holds, for who shares it.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::Options;
use super::fields::{ClassMask, Treatment};
use super::record::Masks;
use crate::failure::Result;
use crate::render::out::{Schema, print_json};
use crate::render::text::count;
use crate::trace::session::Session;

/// Counts of what was kept, replaced and left out.
#[derive(Debug)]
pub struct Manifest {
    /// Events of the new file.
    pub events: u64,
    /// Keys kept, and left out.
    pub pairs: (usize, usize),
    /// Attached files that were kept.
    pub files_kept: Vec<String>,
    /// How many were left out.
    pub files_dropped: usize,
    /// Chunks of kinds that are not known, left out.
    chunks_dropped: u64,
    cpus: usize,
    /// Event classes that are known, and that are not.
    classes: (usize, usize),
    /// Events of those that are not.
    events_emptied: u64,
    /// Fields of known classes that become zero.
    fields_zeroed: usize,
    is_seeded: bool,
    shows_symbols: bool,
}

impl Manifest {
    /// Nothing written yet.
    pub fn new(session: &Session<'_>, plans: &[Option<ClassMask>], options: &Options) -> Self {
        let hidden = plans.iter().flatten().filter(|plan| plan.is_hidden()).count();
        let zeroed = |plan: &ClassMask| plan.treatments.iter().filter(|t| **t == Treatment::Zero).count();
        Self {
            events: 0,
            pairs: (0, 0),
            files_kept: Vec::new(),
            files_dropped: 0,
            chunks_dropped: session.trace.unknown_kinds().values().sum(),
            cpus: session.trace.streams().len(),
            classes: (plans.iter().flatten().count() - hidden, hidden),
            events_emptied: 0,
            fields_zeroed: plans.iter().flatten().map(zeroed).sum(),
            is_seeded: options.seed.is_some(),
            shows_symbols: !options.hide_symbols,
        }
    }

    /// Counts an event.
    pub fn event(&mut self, plan: &ClassMask) {
        self.events_emptied += u64::from(plan.is_hidden());
    }

    /// Prints it: text on standard error, JSON on standard output.
    pub fn print(&self, masks: &Masks, as_json: bool) -> Result<()> {
        if as_json {
            let mut out = Map::new();
            out.insert("anonymize".into(), self.json(masks));
            return print_json(Schema::first("anonymize"), out);
        }
        eprint!("{}", self.text(masks));
        Ok(())
    }

    fn json(&self, masks: &Masks) -> Value {
        let (visible, hidden) = masks.code.functions();
        json!({
            "kept": {
                "events": self.events,
                "event_classes": self.classes.0,
                "cpus": self.cpus,
                "function_names": visible,
                "keys": self.pairs.0,
                "files": self.files_kept,
            },
            "replaced": {
                "functions": hidden,
                "modules": masks.texts.count("module"),
                "cache_names": masks.texts.count("cache"),
                "task_names": masks.texts.count("task"),
                "pids": masks.pids.len(),
                "memory_blocks": masks.memory.blocks(),
                "other_pages": masks.memory.pages(),
            },
            "left_out": {
                "chunks": self.chunks_dropped,
                "keys": self.pairs.1,
                "files": self.files_dropped,
                "event_classes": self.classes.1,
                "events_emptied": self.events_emptied,
                "fields": self.fields_zeroed,
            },
            "seeded": self.is_seeded,
        })
    }

    fn text(&self, masks: &Masks) -> String {
        let (visible, hidden) = masks.code.functions();
        let number = |n: usize, one: &str, many: &str| {
            format!("{} {}", count(n as u64), if n == 1 { one } else { many })
        };
        let mut out = format!(
            "kept:      {}, with sizes, flags, counts and CPU numbers; times from 0 on; {}\n",
            number(self.events as usize, "event", "events"),
            number(visible, "function name", "function names"),
        );
        if !self.files_kept.is_empty() {
            let _ = writeln!(out, "           counts of {}", self.files_kept.join(", "));
        }
        let texts = &masks.texts;
        let _ = writeln!(
            out,
            "replaced:  {}, {}, {}, {}, {}",
            number(texts.count("task"), "task name", "task names"),
            number(masks.pids.len(), "task id", "task ids"),
            number(hidden, "function", "functions"),
            number(texts.count("module"), "module", "modules"),
            number(texts.count("cache"), "cache name", "cache names"),
        );
        let _ = writeln!(
            out,
            "moved:     text, {} of memory, {} of other addresses",
            number(masks.memory.blocks(), "block", "blocks"),
            number(masks.memory.pages(), "page", "pages"),
        );
        let _ = writeln!(
            out,
            "left out:  {}, {}, {}, {}, the fields of {} ({})",
            number(self.files_dropped, "attached file", "attached files"),
            number(self.pairs.1, "key", "keys"),
            number(self.fields_zeroed, "field", "fields"),
            number(self.chunks_dropped as usize, "unknown chunk", "unknown chunks"),
            number(self.classes.1, "unknown event class", "unknown event classes"),
            number(self.events_emptied as usize, "event", "events"),
        );
        if self.shows_symbols && visible > 0 {
            out += "note: names of functions and modules are kept; --hide-symbols replaces them, --for public those of modules outside mainline Linux\n";
        }
        if self.is_seeded {
            out += "note: --seed is for tests: if the number is guessed, all of this can be undone\n";
        }
        out
    }
}
