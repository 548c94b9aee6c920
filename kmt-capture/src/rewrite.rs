//! `convert` of a .kmt file: recovery of what it still holds, and another codec.

use std::fs::File;

use kmt_format::edit::{Recovery, Rewrite, RewriteOptions};
use kmt_format::{Error, ErrorKind, Limits};
use memmap2::MmapOptions;

use crate::convert::Options;
use crate::failure::{Failure, Outcome, Result};
use crate::output::Output;

/// Writes a .kmt file anew.
pub fn rewrite(options: &Options) -> Result<Outcome> {
    let path = &options.input;
    if options.verbatim {
        return Err(Failure::new(format!("{} is no directory of sub-buffers", path.display()))
            .hint("--verbatim keeps sub-buffers that were copied off a target"));
    }
    let file = File::open(path).map_err(|e| Failure::io("opening", path, &e))?;
    // SAFETY: the map is private and only read. Should another process change the file meanwhile, the bytes may
    // change under us; every access is a checked slice operation on plain integers, so that can make a checksum or
    // an index fail, not break memory safety. Should it shrink the file, the kernel ends us with SIGBUS.
    let map = unsafe { MmapOptions::new().map_copy_read_only(&file) }
        .map_err(|e| Failure::io("mapping", path, &e))?;
    let failed = |e: Error| {
        let what = match e.kind() {
            ErrorKind::NotKmt => format!("{} is not a directory, and no .kmt file", path.display()),
            _ => format!("{}: {e}", path.display()),
        };
        Failure::new(what)
            .hint("convert takes a directory laid out like tracefs, or a .kmt file to write anew")
    };
    let rewriting = RewriteOptions { compression: Some(options.compression) };
    let mut rewrite = Rewrite::new(&map, Limits::default(), rewriting).map_err(failed)?;
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
