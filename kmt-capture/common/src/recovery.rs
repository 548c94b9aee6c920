//! Warnings about a damaged or unfinished .kmt file, on standard error.

use std::path::Path;

use kmt_format::edit::Recovery;
use kmt_format::read::Damage;

use crate::failure::Outcome;
use crate::tell;
use crate::text::count;

/// Damaged parts that are reported one by one.
const REPORTED_MAX: usize = 5;

/// Reports on a rewritten file: damaged and missing parts, and the number of events unless `is_quiet`.
/// `list_hint` follows the number of damaged parts that are not listed.
pub fn report(file: &Path, recovery: &Recovery, list_hint: &str, is_quiet: bool) -> Outcome {
    let name = file.display();
    warn_of_damages(file, recovery.damages.iter(), recovery.damage_count, "left out", list_hint);
    if recovery.events_missing > 0 {
        let least = if recovery.missing_is_exact { "" } else { "at least " };
        tell!(
            "warning: {name}: {least}{} of the original file missing",
            count(recovery.events_missing, "event")
        );
    }
    if !recovery.was_finished {
        warn_of_missing_end(file);
    }
    if recovery.events_unverified > 0 {
        let events = count(recovery.events_unverified, "event");
        tell!("warning: {name}: {events} read from an incomplete chunk, without a checksum");
    }
    if recovery.unknown_left_out > 0 {
        let chunks = count(recovery.unknown_left_out, "chunk");
        tell!("note: {name}: left out {chunks} of an unknown kind not marked safe to copy");
    }
    if !is_quiet {
        tell!("{}", count(recovery.events, "event"));
    }
    if recovery.was_finished && recovery.ended_early {
        warn_of_early_end(file);
    }
    if recovery.is_sound() && !recovery.ended_early { Outcome::Done } else { Outcome::Incomplete }
}

/// Warns of the first damaged parts of a file one by one, and of the number of others; `damage_count` is the number of all.
pub fn warn_of_damages<'d>(
    file: &Path,
    damages: impl Iterator<Item = &'d Damage>,
    damage_count: u64,
    effect: &str,
    list_hint: &str,
) {
    let name = file.display();
    for damage in damages.take(REPORTED_MAX) {
        tell!("warning: {name}: {} ({} {effect})", damage.error, count(damage.len, "byte"));
    }
    let more = damage_count.saturating_sub(REPORTED_MAX as u64);
    if more > 0 {
        tell!("warning: {name}: {more} more damaged parts{list_hint}");
    }
}

/// Warns of a file that was made of one without a trailer.
pub fn warn_of_early_end(file: &Path) {
    tell!(
        "warning: {}: the recording ended unexpectedly; events that were still in the ring buffers are unknown",
        file.display()
    );
}

/// Warns of a file without a trailer.
pub fn warn_of_missing_end(file: &Path) {
    tell!(
        "warning: {} has no end: the recorder was killed, or the copy is incomplete; events that were still in the ring buffers are unknown",
        file.display()
    );
}
