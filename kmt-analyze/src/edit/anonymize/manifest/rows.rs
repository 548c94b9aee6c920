//! Counts of the contents that were kept, replaced and left out.

use serde::Serialize;

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
