//! The manifest for people.

use super::rows::{KeptRow, LeftOutRow, ManifestRow, ReplacedRow};
use crate::render::words::counted;

/// The manifest, with notes on names that are kept and on the seed.
pub fn text(row: &ManifestRow) -> String {
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
