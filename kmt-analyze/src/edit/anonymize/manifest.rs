//! The manifest of an anonymized file, for the person who shares it.
//!
//! It counts the contents that were kept, replaced and left out. The numbers come from the passes that write the file; they are
//! printed as a screen, or as JSON.

use serde::Serialize;

use super::AnonymizeOptions;
use super::allowed::Treatment;
use super::fields::ClassMask;
use super::record::Masks;
use crate::env::Env;
use crate::failure::Result;
use crate::render::out::{Schema, print_json};
use crate::render::words::counted;
use crate::trace::session::Session;

impl ManifestRow {
    /// What is known before the file is written.
    pub fn new(session: &Session<'_>, plans: &[Option<ClassMask>], options: &AnonymizeOptions) -> Self {
        let hidden = plans.iter().flatten().filter(|plan| plan.is_hidden()).count();
        let zeroed = |plan: &ClassMask| plan.treatments.iter().filter(|t| **t == Treatment::Zero).count();
        Self {
            kept: KeptRow {
                event_classes: plans.iter().flatten().count() - hidden,
                cpus: session.trace.streams().len(),
                ..KeptRow::default()
            },
            replaced: ReplacedRow {
                print_fmts: plans.iter().flatten().filter(|plan| plan.is_reprinted).count(),
                ..ReplacedRow::default()
            },
            left_out: LeftOutRow {
                chunks: session.trace.unknown_kinds().values().sum(),
                event_classes: hidden,
                fields: plans.iter().flatten().map(zeroed).sum(),
                ..LeftOutRow::default()
            },
            seeded: options.seed.is_some(),
            shows_symbols: !options.hide_symbols,
        }
    }

    /// Prints it with what was replaced: text on standard error, JSON on standard output.
    pub fn print(mut self, masks: &Masks, as_json: bool, env: &Env) -> Result<()> {
        (self.kept.function_names, self.replaced.functions) = masks.code.functions();
        self.replaced.modules = masks.texts.count("module");
        self.replaced.cache_names = masks.texts.count("cache");
        self.replaced.task_names = masks.texts.count("task");
        self.replaced.pids = masks.pids.len();
        self.replaced.memory_blocks = masks.memory.blocks();
        self.replaced.other_pages = masks.memory.pages();
        if as_json {
            return print_json(env, Schema::first("anonymize"), &AnonymizeRows { anonymize: self });
        }
        kmt_common::text::to_stderr(format_args!("{}", text(&self)));
        Ok(())
    }
}

/// Rows of the manifest.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AnonymizeRows {
    /// The manifest.
    pub anonymize: ManifestRow,
}

/// Contents of an anonymized file.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ManifestRow {
    /// Contents that were kept.
    pub kept: KeptRow,
    /// Names and values that were replaced.
    pub replaced: ReplacedRow,
    /// Contents that were left out or set to 0.
    pub left_out: LeftOutRow,
    /// True if the random values follow from `--seed`: anyone who guesses the seed can undo the replacement.
    pub seeded: bool,
    /// True if `--hide-symbols` was not given.
    #[serde(skip)]
    pub shows_symbols: bool,
}

/// Counts of the contents that were kept.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct KeptRow {
    /// Number of events.
    pub events: u64,
    /// Number of events that are in sums of objects that died young, and not in `events`.
    pub folded_events: u64,
    /// Number of event classes.
    pub event_classes: usize,
    /// Number of CPUs.
    pub cpus: usize,
    /// Number of functions that keep their names.
    pub function_names: usize,
    /// Number of metadata keys.
    pub keys: usize,
    /// Names of attached files.
    pub files: Vec<String>,
}

/// Counts of the names and values that were replaced.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReplacedRow {
    /// Number of function names.
    pub functions: usize,
    /// Number of module names.
    pub modules: usize,
    /// Number of cache names.
    pub cache_names: usize,
    /// Number of task names.
    pub task_names: usize,
    /// Number of task ids.
    pub pids: usize,
    /// Number of event classes whose print fmt has text that mainline Linux does not have: a new one prints the fields
    /// that are kept.
    pub print_fmts: usize,
    /// Number of blocks of memory that were moved as a whole.
    pub memory_blocks: usize,
    /// Number of other pages that were moved.
    pub other_pages: usize,
}

/// Counts of the contents that were left out or set to 0.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LeftOutRow {
    /// Number of chunks of unknown kinds.
    pub chunks: u64,
    /// Number of metadata keys.
    pub keys: usize,
    /// Number of attached files.
    pub files: usize,
    /// Number of unknown event classes: their events are kept without fields.
    pub event_classes: usize,
    /// Number of events of those classes.
    pub events_emptied: u64,
    /// Number of fields of known event classes that were set to 0, or left out because mainline Linux does not have them.
    pub fields: usize,
}

/// The manifest, with notes on names that are kept and on the seed.
fn text(row: &ManifestRow) -> String {
    let mut out = kept(&row.kept) + &replaced(&row.replaced) + &left_out(&row.left_out);
    if row.shows_symbols && row.kept.function_names > 0 {
        out += "note: names of functions and modules are kept; --hide-symbols replaces them, --for public those of modules outside mainline Linux\n";
    }
    if row.seeded {
        out += "note: --seed is for tests: if the number is guessed, all of this can be undone\n";
    }
    out
}

fn kept(row: &KeptRow) -> String {
    let mut out = format!(
        "kept:      {}, with sizes, flags, counts and CPU numbers; times from 0 on; {}\n",
        counted(row.events, "event", "events"),
        counted(row.function_names as u64, "function name", "function names"),
    );
    if row.folded_events > 0 {
        out += &format!("           sums of {}\n", counted(row.folded_events, "event", "events"));
    }
    if !row.files.is_empty() {
        out += &format!("           counts of {}\n", row.files.join(", "));
    }
    out
}

fn replaced(row: &ReplacedRow) -> String {
    format!(
        "replaced:  {}, {}, {}, {}, {}, {}\nmoved:     text, {} of memory, {} of other addresses\n",
        counted(row.task_names as u64, "task name", "task names"),
        counted(row.pids as u64, "task id", "task ids"),
        counted(row.functions as u64, "function", "functions"),
        counted(row.modules as u64, "module", "modules"),
        counted(row.cache_names as u64, "cache name", "cache names"),
        counted(row.print_fmts as u64, "print fmt", "print fmts"),
        counted(row.memory_blocks as u64, "block", "blocks"),
        counted(row.other_pages as u64, "page", "pages"),
    )
}

fn left_out(row: &LeftOutRow) -> String {
    format!(
        "left out:  {}, {}, {}, {}, the fields of {} ({})\n",
        counted(row.files as u64, "attached file", "attached files"),
        counted(row.keys as u64, "key", "keys"),
        counted(row.fields as u64, "field", "fields"),
        counted(row.chunks, "unknown chunk", "unknown chunks"),
        counted(row.event_classes as u64, "unknown event class", "unknown event classes"),
        counted(row.events_emptied, "event", "events"),
    )
}
