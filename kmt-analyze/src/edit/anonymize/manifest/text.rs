//! The manifest for people.

use super::rows::{KeptRow, LeftOutRow, ManifestRow, ReplacedRow};
use crate::render::text::count;

/// The manifest, with notes on names that are kept and on the seed.
pub fn of(row: &ManifestRow) -> String {
    let mut out = kept(&row.kept) + &replaced(&row.replaced) + &left_out(&row.left_out);
    if row.shows_symbols && row.kept.function_names > 0 {
        out += "note: names of functions and modules are kept; --hide-symbols replaces them, --for public those of modules outside mainline Linux\n";
    }
    if row.seeded {
        out += "note: --seed is for tests: if the number is guessed, all of this can be undone\n";
    }
    out
}

/// A number with its noun.
fn number(n: usize, one: &str, many: &str) -> String {
    format!("{} {}", count(n as u64), if n == 1 { one } else { many })
}

fn kept(row: &KeptRow) -> String {
    let mut out = format!(
        "kept:      {}, with sizes, flags, counts and CPU numbers; times from 0 on; {}\n",
        number(row.events as usize, "event", "events"),
        number(row.function_names, "function name", "function names"),
    );
    if !row.files.is_empty() {
        out += &format!("           counts of {}\n", row.files.join(", "));
    }
    out
}

fn replaced(row: &ReplacedRow) -> String {
    format!(
        "replaced:  {}, {}, {}, {}, {}, {}\nmoved:     text, {} of memory, {} of other addresses\n",
        number(row.task_names, "task name", "task names"),
        number(row.pids, "task id", "task ids"),
        number(row.functions, "function", "functions"),
        number(row.modules, "module", "modules"),
        number(row.cache_names, "cache name", "cache names"),
        number(row.print_fmts, "print fmt", "print fmts"),
        number(row.memory_blocks, "block", "blocks"),
        number(row.other_pages, "page", "pages"),
    )
}

fn left_out(row: &LeftOutRow) -> String {
    format!(
        "left out:  {}, {}, {}, {}, the fields of {} ({})\n",
        number(row.files, "attached file", "attached files"),
        number(row.keys, "key", "keys"),
        number(row.fields, "field", "fields"),
        number(row.chunks as usize, "unknown chunk", "unknown chunks"),
        number(row.event_classes, "unknown event class", "unknown event classes"),
        number(row.events_emptied as usize, "event", "events"),
    )
}
