//! Warnings about a damaged or unfinished .kmt file, on standard error.

use std::path::Path;

use kmt_format::edit::Recovery;
use kmt_format::read::Damage;

use crate::failure::Outcome;
use crate::tell;

/// Damaged parts that are reported one by one.
const REPORTED_MAX: usize = 5;

/// Reports a file that was written anew: what is damaged or missing, and the number of events unless `is_quiet`.
/// `list_hint` follows the number of damaged parts that are not listed.
pub fn report(file: &Path, recovery: &Recovery, list_hint: &str, is_quiet: bool) -> Outcome {
    let name = file.display();
    warn_of_damages(file, recovery.damages.iter(), recovery.damage_count, "left out", list_hint);
    if recovery.events_missing > 0 {
        let least = if recovery.missing_is_exact { "" } else { "at least " };
        tell!("warning: {name}: {least}{} events that it once held are missing", recovery.events_missing);
    }
    if !recovery.was_finished {
        warn_of_missing_end(file);
    }
    if recovery.events_unverified > 0 {
        let count = recovery.events_unverified;
        tell!("warning: {name}: {count} events come from a torn chunk, without a checksum over them");
    }
    if recovery.unknown_left_out > 0 {
        let count = recovery.unknown_left_out;
        tell!("note: {name}: {count} chunks of unknown kinds that are not marked safe to copy are left out");
    }
    if !is_quiet {
        tell!("{} events", recovery.events);
    }
    if recovery.is_sound() { Outcome::Done } else { Outcome::Incomplete }
}

/// Warns of the first damaged parts of a file one by one, and of the number of others; `count` is the number of all.
pub fn warn_of_damages<'d>(
    file: &Path,
    damages: impl Iterator<Item = &'d Damage>,
    count: u64,
    effect: &str,
    list_hint: &str,
) {
    let name = file.display();
    for damage in damages.take(REPORTED_MAX) {
        tell!("warning: {name}: {} ({} bytes {effect})", damage.error, damage.len);
    }
    let more = count.saturating_sub(REPORTED_MAX as u64);
    if more > 0 {
        tell!("warning: {name}: {more} more damaged places{list_hint}");
    }
}

/// Warns that a file has no end.
pub fn warn_of_missing_end(file: &Path) {
    tell!("warning: {} has no end: its writer was interrupted, or the copy was cut", file.display());
}
