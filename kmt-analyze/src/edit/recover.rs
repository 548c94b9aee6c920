//! `recover`: what a damaged or torn file still holds.

use kmt_common::tell;
use kmt_format::Fault;
use kmt_format::edit::{Recovery, Rewrite, RewriteOptions};

use super::copy::Compress;
use crate::export::output::{Export, Target};
use crate::failure::{Failure, Outcome, Result};
use crate::limits;

/// Writes a sound file of what is there.
pub fn run(path: &std::path::Path, bytes: &[u8], target: &Target, compress: Compress) -> Result<Outcome> {
    let failed = |e: kmt_format::Error| {
        let failure = Failure::new(format!("{}: {e}", path.display()));
        failure.hint(match e.fault() {
            Fault::Limit => limits::REMEDY,
            _ => {
                "recover takes a .kmt file, however damaged, with its first 64 bytes or a later copy of them"
            }
        })
    };
    let options = RewriteOptions::new().compression(kmt_format::Compression::from(compress));
    let mut rewrite = Rewrite::new(bytes, limits::of_file(), options).map_err(failed)?;
    let mut out = Export::open_binary(target)?;
    while let Some(bytes) = rewrite.next_bytes().map_err(failed)? {
        out.write(&bytes)?;
    }
    out.finish()?;
    Ok(report(path, rewrite.recovery()))
}

fn report(path: &std::path::Path, recovery: &Recovery) -> Outcome {
    const TOLD: usize = 5;
    let name = path.display();
    for damage in recovery.damages.iter().take(TOLD) {
        tell!("warning: {name}: {} ({} bytes left out)", damage.error, damage.len);
    }
    let more = recovery.damage_count.saturating_sub(TOLD as u64);
    for (count, what) in [
        (more, "more damaged places; verify lists them"),
        (recovery.events_unverified, "events come from a torn chunk, without a checksum over them"),
        (recovery.unknown_left_out, "chunks of unknown kinds that are not marked safe to copy are left out"),
    ] {
        if count > 0 {
            tell!("warning: {name}: {count} {what}");
        }
    }
    if recovery.events_missing > 0 {
        let least = if recovery.missing_is_exact { "" } else { "at least " };
        tell!("warning: {name}: {least}{} events that it once held are missing", recovery.events_missing);
    }
    if !recovery.was_finished {
        tell!("warning: {name} has no end: its writer was interrupted, or the copy was cut");
    }
    tell!("{} events", recovery.events);
    if recovery.is_sound() { Outcome::Done } else { Outcome::Incomplete }
}
