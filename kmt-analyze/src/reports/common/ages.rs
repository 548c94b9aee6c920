//! Objects of unknown age in words: those of a boot that were allocated before the trace clock ran.
//!
//! Lengths of lives are computed by `trace::ages` alone; reports count what has none apart, under the JSON key `unknown_age`.

use crate::render::words::counted;

/// The sentence on objects of unknown age; `None`: there are none.
pub fn unknown_age_note(objects: u64) -> Option<String> {
    let objects_text = counted(objects, "object", "objects");
    let their_age = if objects == 1 { "its age is" } else { "their age is" };
    (objects > 0).then(|| format!("{objects_text} allocated before the clock ran: {their_age} unknown."))
}
