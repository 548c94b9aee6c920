//! `convert`: what was recorded before, by whomever, to a file.

mod beside;
mod description;
mod directory;
mod perf_data;
mod stacks;
mod text;
mod trace_dat;

use std::fs::File;
use std::path::PathBuf;

use kmt_format::Compression;
use kmt_format::write::Loss;
use memmap2::{Mmap, MmapOptions};

use crate::failure::{Failure, Outcome, Result};
use crate::import::Kind;
use crate::rewrite::rewrite;

/// What to convert, and to where.
#[derive(Debug)]
pub struct Options {
    /// Directory or file.
    pub input: PathBuf,
    /// File; `-` is standard output.
    pub output: PathBuf,
    /// Whether an existing file is overwritten.
    pub force: bool,
    /// How bodies are stored.
    pub compression: Compression,
    /// Whether sub-buffers are kept as they are.
    pub verbatim: bool,
    /// Whether nothing but problems is told.
    pub quiet: bool,
    /// Which buffer of a trace.dat: the name of an instance, or "" for the top level.
    pub instance: Option<String>,
}

/// What a conversion has to tell.
#[derive(Debug)]
struct Converted {
    /// How much of what, in words.
    what: String,
    /// Events that counters say were lost.
    lost: u64,
    /// What the input itself says was lost.
    flagged: Loss,
    /// What is missing and what follows from it, a sentence each.
    notes: Vec<String>,
}

/// Converts a directory or a file of another tool, or writes a .kmt file anew.
pub fn convert(options: &Options) -> Result<Outcome> {
    let converted = if options.input.is_file() {
        let map = map(options)?;
        let kind = Kind::of(&map);
        if !matches!(kind, Kind::TraceDat) && options.instance.is_some() {
            return Err(Failure::new(format!("{} has no instances", options.input.display()))
                .hint("--instance chooses a buffer of a trace.dat"));
        }
        match kind {
            Kind::TraceDat => trace_dat::convert(options, &map)?,
            Kind::Text => text::convert(options, &map)?,
            Kind::PerfData => perf_data::convert(options, &map)?,
            _ => {
                drop(map);
                return rewrite(options);
            }
        }
    } else {
        directory::convert(options)?
    };
    if !options.quiet {
        for note in &converted.notes {
            eprintln!("note: {note}");
        }
        eprintln!("{}", converted.what);
    }
    report_losses(converted.lost, converted.flagged);
    let is_complete = converted.lost == 0 && converted.flagged == Loss::default();
    Ok(if is_complete { Outcome::Done } else { Outcome::Incomplete })
}

/// The input in memory.
fn map(options: &Options) -> Result<Mmap> {
    let path = &options.input;
    let file = File::open(path).map_err(|e| Failure::io("opening", path, &e))?;
    // SAFETY: the map is private and only read. Should another process change the file meanwhile, the bytes may
    // change under us; every access is a checked slice operation on plain integers, so that can make a check or an
    // index fail, not break memory safety. Should it shrink the file, the kernel ends us with SIGBUS.
    unsafe { MmapOptions::new().map_copy_read_only(&file) }.map_err(|e| Failure::io("mapping", path, &e))
}

fn report_losses(lost: u64, flagged: Loss) {
    if lost > 0 || flagged.counted > 0 || flagged.uncounted {
        let uncounted = if flagged.uncounted { ", and at least one gap was not counted" } else { "" };
        eprintln!(
            "warning: events were lost while recording: {lost} by the kernel's stats, {} marked in the input{uncounted}",
            flagged.counted
        );
    }
    if flagged.damaged_input {
        eprintln!("warning: part of the input was damaged; the places are marked in the file");
    }
}
