//! `recover`: what a damaged or torn file still holds.

use kmt_format::Limits;
use kmt_format::edit::{Recovery, Rewrite, RewriteOptions};

use super::copy::Compress;
use crate::export::output::Target;
use crate::failure::{Failure, Outcome, Result};

/// Writes a sound file of what is there.
pub fn run(path: &std::path::Path, bytes: &[u8], target: &Target, compress: Compress) -> Result<Outcome> {
    let failed = |e: kmt_format::Error| {
        Failure::new(format!("{}: {e}", path.display())).hint(
            "recover takes a .kmt file, however damaged, with its first 64 bytes or a later copy of them",
        )
    };
    target.binary()?;
    let options = RewriteOptions { compression: Some(compress.into()) };
    let mut rewrite = Rewrite::new(bytes, Limits::default(), options).map_err(failed)?;
    let mut out = target.open()?;
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
        eprintln!("warning: {name}: {} ({} bytes left out)", damage.error, damage.len);
    }
    let more = recovery.damage_count.saturating_sub(TOLD as u64);
    for (count, what) in [
        (more, "more damaged places; verify lists them"),
        (recovery.events_unverified, "events come from a torn chunk, without a checksum over them"),
        (recovery.unknown_left_out, "chunks of unknown kinds that are not marked safe to copy are left out"),
    ] {
        if count > 0 {
            eprintln!("warning: {name}: {count} {what}");
        }
    }
    if recovery.events_missing > 0 {
        let least = if recovery.missing_is_exact { "" } else { "at least " };
        eprintln!("warning: {name}: {least}{} events that it once held are missing", recovery.events_missing);
    }
    if !recovery.was_finished {
        eprintln!("warning: {name} has no end: its writer was interrupted, or the copy was cut");
    }
    eprintln!("{} events", recovery.events);
    if recovery.is_sound() { Outcome::Done } else { Outcome::Incomplete }
}
