//! `convert`: an earlier recording of any tool, to a .kmt file.

mod boots;
mod colours;
mod description;
mod directory;
mod driver;
mod event_names;
mod kmt;
mod opened;
mod perf_data;
mod perfetto;
mod perfetto_notes;
mod persistent;
mod records;
mod silence;
mod stacks;
mod sub_buffers;
mod survivors;
mod target_files;
mod text;
mod text_boots;
mod text_counts;
mod text_description;
mod text_refusal;
mod text_sections;
mod text_window;
mod trace_dat;
mod undecoded;

use std::path::PathBuf;

use kmt_common::foreign::{self, Foreign, ctf_folder};
use kmt_common::output::report_written;
use kmt_common::text::grouped;
use kmt_common::{shell, tell};
use kmt_format::Compression;
use kmt_format::write::Loss;

use crate::failure::{Failure, Outcome, Result};
use crate::import::Kind;
use crate::input::{Budget, Directory, Folder};
pub use crate::input::{Kind as LimitKind, Limits};
use crate::output::Output;
use crate::record::Symbols;
use crate::survivors::SurvivorArgs;
pub use boots::Boot;
use opened::only_recording;

/// [`ConvertOptions`], as callers in other crates name it.
pub type Options = ConvertOptions;

/// Input and output of a conversion.
#[derive(Debug, Clone)]
pub struct ConvertOptions {
    /// Directory or file; `-` is standard input.
    pub input: PathBuf,
    /// File; `-` is standard output.
    pub output: PathBuf,
    /// True if an existing file is overwritten.
    pub force: bool,
    /// Codec of the bodies.
    pub compression: Compression,
    /// Symbols of the kernel that the file gets.
    pub symbols: Symbols,
    /// True if sub-buffers are kept as the kernel wrote them.
    pub verbatim: bool,
    /// True if only problems are reported.
    pub quiet: bool,
    /// Which buffer of a trace.dat: the name of an instance, or "" for the top level.
    pub instance: Option<String>,
    /// Which boot of ring buffers that hold several; `None`: they are refused.
    pub boot: Option<Boot>,
    /// Which lives are written as sums; `None`: none.
    pub survivors: Option<SurvivorArgs>,
    /// Limits of the input.
    pub limits: Limits,
}

/// Facts that are reported after a conversion.
#[derive(Debug)]
struct Converted {
    /// Number of events and their source, in words.
    summary: String,
    /// Lost events, as counted by the kernel; `None`: the input does not have its counters.
    lost: Option<u64>,
    /// Losses that the input is marked with.
    flagged: Loss,
    /// Entries that the input lacks by its own count.
    missing: u64,
    /// Missing facts and their consequences, a sentence each.
    notes: Vec<String>,
}

/// Converts a directory or a file of another tool, or rewrites a .kmt file.
pub fn convert(options: &ConvertOptions) -> Result<Outcome> {
    match options.survivors {
        Some(args) => survivors::convert(options, &args),
        None => convert_all(options),
    }
}

/// Converts all events.
fn convert_all(options: &ConvertOptions) -> Result<Outcome> {
    // First: an output that cannot be written is an error before anything is read.
    let output = Output::create(&options.output, options.force)?;
    let (mut parts, mut is_cut) = (Vec::new(), false);
    if options.input.is_dir() {
        let budget = Budget::new(options.limits);
        if let Some(directory) = Directory::open(&options.input, &budget)? {
            return Ok(report(options, &directory::convert(options, &directory, output)?));
        }
        if let Some(failure) = ctf_folder(&options.input) {
            return Err(failure);
        }
        let folder = Folder::open(&options.input, &budget)?;
        for (path, file) in only_recording(&folder)? {
            let opened = opened::open_file(&path, file, &options.limits)?;
            is_cut |= opened.is_cut;
            parts.push((path, opened.bytes));
        }
    } else {
        let opened = opened::open(&options.input, &options.limits)?;
        is_cut |= opened.is_cut;
        parts.push((options.input.clone(), opened.bytes));
    }
    let Some((path, bytes)) = parts.first() else {
        return Err(Failure::new(format!(
            "{} is not a copy of tracefs: it has neither per_cpu/ nor events/header_page, at its top level or in tracefs/",
            options.input.display()
        ))
        .hint("copy events/ and per_cpu/ from /sys/kernel/tracing, or from the recording instance"));
    };
    if bytes.is_empty() {
        return Err(foreign::empty(path));
    }
    let kind = Kind::of(bytes);
    if let Some(foreign) = Foreign::of(bytes).filter(|_| kind == Kind::Unknown) {
        return Err(foreign.refuse(path));
    }
    if !matches!(kind, Kind::TraceDat) && options.instance.is_some() {
        return Err(Failure::new(format!("{} has no instances", path.display()))
            .hint("--instance works only with a trace.dat"));
    }
    if !matches!(kind, Kind::TraceDat | Kind::Text) && options.boot.is_some() {
        return Err(Failure::new(format!("{} is neither a ring buffer nor a text", path.display()))
            .hint("--boot works only with saved ring buffers, a trace.dat, and text"));
    }
    let options = &ConvertOptions { input: path.clone(), ..options.clone() };
    let converted = match kind {
        Kind::TraceDat => trace_dat::convert(options, bytes, is_cut, output)?,
        Kind::Perfetto => perfetto::convert(options, bytes, is_cut, output)?,
        Kind::Text => text::convert(options, bytes, is_cut, output)?,
        Kind::PerfData => perf_data::convert(options, &parts, is_cut, output)?,
        Kind::Kmt | Kind::Unknown => return kmt::rewrite(options, bytes, output),
    };
    Ok(report(options, &converted))
}

/// Reports the converted events, and missing facts.
fn report(options: &ConvertOptions, converted: &Converted) -> Outcome {
    if !options.quiet {
        for note in &converted.notes {
            tell!("note: {note}");
        }
        tell!("{}", converted.summary);
    }
    warn_of_losses(converted.lost, converted.flagged);
    if !options.quiet {
        report_written(&options.output, &format!("kmt-analyze {}", shell::path(&options.output)));
    }
    let is_complete =
        converted.lost.unwrap_or(0) == 0 && converted.flagged == Loss::default() && converted.missing == 0;
    if is_complete { Outcome::Done } else { Outcome::Incomplete }
}

/// Lost events as far as they are counted; `None`: none are known.
fn losses(lost: Option<u64>, flagged: Loss) -> Option<String> {
    let is_any = lost.is_some_and(|lost| lost > 0) || flagged.counted > 0 || flagged.uncounted;
    let by_kernel = lost.map(|lost| format!("{} counted in the kernel's stats", grouped(lost)));
    let marked = by_kernel.is_some() || flagged.counted > 0;
    let marked = marked.then(|| format!("{} marked in the input", grouped(flagged.counted)));
    let gap = flagged.uncounted.then(|| "at least one gap without a count".to_owned());
    let parts: Vec<String> = by_kernel.into_iter().chain(marked).chain(gap).collect();
    is_any.then(|| format!("events are missing: {}", parts.join(", ")))
}

fn warn_of_losses(lost: Option<u64>, flagged: Loss) {
    if let Some(sentence) = losses(lost, flagged) {
        tell!("warning: {sentence}");
    }
    if flagged.damaged_input {
        tell!("warning: part of the input is damaged; marks in the output show where events are missing");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_that_the_input_does_not_have_are_not_named() {
        let flagged = |counted, uncounted| {
            let mut loss = Loss::default();
            (loss.counted, loss.uncounted) = (counted, uncounted);
            loss
        };
        for (lost, flagged, parts) in [
            (None, flagged(0, false), None),
            (Some(0), flagged(0, false), None),
            (None, flagged(0, true), Some("at least one gap without a count")),
            (None, flagged(3, false), Some("3 marked in the input")),
            (Some(0), flagged(3, false), Some("0 counted in the kernel's stats, 3 marked in the input")),
            (
                Some(17),
                flagged(0, true),
                Some(
                    "17 counted in the kernel's stats, 0 marked in the input, at least one gap without a count",
                ),
            ),
        ] {
            let parts = parts.map(|parts| format!("events are missing: {parts}"));
            assert_eq!(losses(lost, flagged), parts);
        }
    }
}
