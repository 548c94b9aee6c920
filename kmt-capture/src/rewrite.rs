//! `convert` of a .kmt file: recovery of what it still holds, and another codec.

use kmt_format::edit::{Recovery, Rewrite, RewriteOptions};
use kmt_format::{Error, ErrorKind, Limits};

use crate::convert::Options;
use crate::failure::{Failure, Outcome, Result};
use crate::output::Output;

/// Writes a .kmt file anew.
pub fn rewrite(options: &Options, bytes: &[u8]) -> Result<Outcome> {
    let path = &options.input;
    if options.verbatim {
        return Err(Failure::new(format!("{} is no directory of sub-buffers", path.display()))
            .hint("--verbatim keeps sub-buffers that were copied off a target"));
    }
    let failed = |e: Error| {
        let what = match e.kind() {
            ErrorKind::NotKmt => format!("{} is not a recording that convert reads", path.display()),
            _ => format!("{}: {e}", path.display()),
        };
        Failure::new(what).hint(crate::convert::INPUTS)
    };
    let rewriting = RewriteOptions { compression: Some(options.compression) };
    let mut rewrite = Rewrite::new(bytes, Limits::default(), rewriting).map_err(failed)?;
    let mut output = Output::create(&options.output, options.force)?;
    while let Some(bytes) = rewrite.next_bytes().map_err(failed)? {
        output.write(&bytes)?;
    }
    output.finish()?;
    Ok(report(options, rewrite.recovery()))
}

fn report(options: &Options, recovery: &Recovery) -> Outcome {
    const TOLD: usize = 5;
    let name = options.input.display();
    for damage in recovery.damages.iter().take(TOLD) {
        eprintln!("warning: {name}: {} ({} bytes left out)", damage.error, damage.len);
    }
    let more = recovery.damage_count.saturating_sub(TOLD as u64);
    if more > 0 {
        eprintln!("warning: {name}: {more} more damaged places");
    }
    if recovery.events_missing > 0 {
        let least = if recovery.missing_is_exact { "" } else { "at least " };
        eprintln!("warning: {name}: {least}{} events that it once held are missing", recovery.events_missing);
    }
    if !recovery.was_finished {
        eprintln!("warning: {name} has no end: its writer was interrupted, or the copy was cut");
    }
    if recovery.events_unverified > 0 {
        let count = recovery.events_unverified;
        eprintln!("warning: {name}: {count} events come from a torn chunk, without a checksum over them");
    }
    if recovery.unknown_left_out > 0 {
        let count = recovery.unknown_left_out;
        eprintln!(
            "note: {name}: {count} chunks of unknown kinds that are not marked safe to copy are left out"
        );
    }
    if !options.quiet {
        eprintln!("{} events", recovery.events);
    }
    if recovery.is_sound() { Outcome::Done } else { Outcome::Incomplete }
}
