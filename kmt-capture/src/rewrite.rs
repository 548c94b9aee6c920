//! `convert` of a .kmt file: recovery of what it still holds, and another codec.

use kmt_common::tell;
use kmt_format::edit::{Recovery, Rewrite, RewriteOptions};
use kmt_format::{Error, ErrorKind, Fault};

use crate::convert::Options;
use crate::failure::{Failure, Outcome, Result};
use crate::output::Output;

/// Writes a .kmt file anew.
pub fn rewrite(options: &Options, bytes: &[u8], mut output: Output) -> Result<Outcome> {
    let path = &options.input;
    if options.verbatim {
        return Err(Failure::new(format!("{} is not a directory of sub-buffers", path.display()))
            .hint("--verbatim keeps sub-buffers that were copied off a target"));
    }
    let failed = |e: Error| {
        let what = match e.kind() {
            ErrorKind::NotKmt => format!("{} is not a recording that convert reads", path.display()),
            _ => format!("{}: {e}", path.display()),
        };
        Failure::new(what).hint(match e.fault() {
            Fault::Limit => "--limit NAME=SIZE raises a limit, for a file that you trust",
            _ => crate::convert::INPUTS,
        })
    };
    let rewriting = RewriteOptions::new().compression(options.compression);
    let mut rewrite = Rewrite::new(bytes, options.limits.kmt, rewriting).map_err(failed)?;
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
        tell!("warning: {name}: {} ({} bytes left out)", damage.error, damage.len);
    }
    let more = recovery.damage_count.saturating_sub(TOLD as u64);
    if more > 0 {
        tell!("warning: {name}: {more} more damaged places");
    }
    if recovery.events_missing > 0 {
        let least = if recovery.missing_is_exact { "" } else { "at least " };
        tell!("warning: {name}: {least}{} events that it once held are missing", recovery.events_missing);
    }
    if !recovery.was_finished {
        tell!("warning: {name} has no end: its writer was interrupted, or the copy was cut");
    }
    if recovery.events_unverified > 0 {
        let count = recovery.events_unverified;
        tell!("warning: {name}: {count} events come from a torn chunk, without a checksum over them");
    }
    if recovery.unknown_left_out > 0 {
        let count = recovery.unknown_left_out;
        tell!("note: {name}: {count} chunks of unknown kinds that are not marked safe to copy are left out");
    }
    if !options.quiet {
        tell!("{} events", recovery.events);
    }
    if recovery.is_sound() { Outcome::Done } else { Outcome::Incomplete }
}
