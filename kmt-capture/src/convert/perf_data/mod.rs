//! A `perf.data` of perf: tracepoint samples, their call chains as stacks, lost records as losses.
//!
//! With `--switch-output` perf leaves several files of one recording; together they are one trace.

mod conversion;
mod describe;
mod sampled;

use std::path::{Path, PathBuf};

use kmt_common::input::InputBytes;
use kmt_common::tell;

use self::conversion::SampleConversion;
use self::describe::{describe, running_kernel};
use self::sampled::Sampling;
use super::description::Description;
use super::driver::{self, EventSource, EventTotals, KmtFile};
use super::stacks::StackFormat;
use super::target_files::TargetFiles;
use super::{ConvertOptions, Converted};
use crate::failure::{Failure, Result};
use crate::import::ImportError;
use crate::import::perf_data::{PerfData, Rounds};
use crate::input::Kind;
use crate::output::Output;
use crate::uuid::Identity;

/// Converts the parts of a recording, the first one first; nearly always it is one.
pub fn convert(
    options: &ConvertOptions,
    parts: &[(PathBuf, InputBytes)],
    output: Output,
) -> Result<Converted> {
    if options.verbatim {
        return Err(Failure::new(format!("{} holds samples, not sub-buffers", options.input.display()))
            .hint("--verbatim keeps sub-buffers that were copied off a target, or of a trace.dat"));
    }
    let mut files = Vec::new();
    for part in parts {
        files.push(open(part, options)?);
    }
    are_of_one_recording(parts, &files)?;
    // Where perf was killed, its last part has none.
    let Some(at) = files.iter().position(|file| file.tracing.is_some()) else {
        return Err(Failure::new(format!(
            "{} has no tracing data, so what its samples hold is unknown",
            options.input.display()
        ))
        .hint("perf writes it when the recording ends: an interrupted one has none; record again, or pipe `perf record -o -`, which writes it first"));
    };
    let (first, path) = (&mut files[at], &parts[at].0);
    let mut description = describe(first, &|fault| on(path, &fault))?;
    TargetFiles::of(path, options.limits)?.complete(&mut description)?;
    running_kernel(first, &mut description);
    let stack = StackFormat::new(&description);
    description.formats.push(stack.format());
    let sampling = Sampling::new(first, &description, options.limits.import.sampled_sites);
    let conversion = SampleConversion::new(stack, sampling, first.order);
    let source = Samples { conversion, options, parts, files: &files };
    driver::convert(options, description, identity(parts), source, output)
}

/// The samples of all parts of a recording.
struct Samples<'a, 'd> {
    conversion: SampleConversion,
    options: &'a ConvertOptions,
    parts: &'a [(PathBuf, InputBytes)],
    files: &'a [PerfData<'d>],
}

impl EventSource for Samples<'_, '_> {
    fn convert(&mut self, file: &mut KmtFile) -> Result<EventTotals> {
        let conversion = &mut self.conversion;
        for ((path, _), part) in self.parts.iter().zip(self.files) {
            let mut rounds = Rounds::new(part);
            let fault = rounds.read(&mut |item| {
                let failed = |e| Failure::new(format!("{}: {e}", path.display()));
                conversion.item(item, &mut file.writer).map_err(failed)?;
                file.write_if_large()
            })?;
            conversion.end_of_file(&rounds, fault.as_ref(), &mut file.writer)?;
            if let Some(fault) = &fault {
                tell!("warning: {}: {fault}; what comes before it is converted", path.display());
            }
        }
        Ok(conversion.finish(&mut file.writer)?)
    }

    fn empty(&self) -> Option<Failure> {
        let input = self.options.input.display();
        Some(
            Failure::new(format!("{input} holds no samples of tracepoints"))
                .hint("nothing that was recorded happened, or the recording was cut off"),
        )
    }

    fn summary(&self, totals: &EventTotals) -> String {
        let source = match self.files {
            [file] if file.is_pipe => "a perf.data in pipe mode".to_owned(),
            [_] => "a perf.data".to_owned(),
            parts => format!("{} parts of a perf.data", parts.len()),
        };
        let order = self.files.first().map_or("", |file| file.order.name());
        format!("{} events of {} CPUs from {source}, {order}-endian", totals.events, totals.cpus.len())
    }

    fn notes(&self, description: Description) -> Vec<String> {
        let mut notes = description.all_notes();
        self.conversion.notes(&mut notes);
        notes
    }
}

fn on(path: &Path, fault: &ImportError) -> Failure {
    Failure::new(format!("{}: {fault}", path.display()))
}

/// A part, all but its records.
fn open<'d>((path, bytes): &'d (PathBuf, InputBytes), options: &ConvertOptions) -> Result<PerfData<'d>> {
    let input = path.display();
    let remedy = "`perf report --header-only` says what perf thinks of it";
    let mut file =
        PerfData::open(bytes, options.limits.import).map_err(|fault| on(path, &fault).hint(remedy))?;
    file.inflated_max = options.limits.of(Kind::Inflated, bytes.len() as u64);
    if !file.attrs.iter().any(|a| a.is_tracepoint()) {
        return Err(Failure::new(format!("{input} has samples of no tracepoint"))
            .hint("record tracepoints: perf kmem record --slab --page, or perf record -e 'kmem:*'"));
    }
    Ok(file)
}

/// Events of one recording have the same ids in all of its parts.
fn are_of_one_recording(parts: &[(PathBuf, InputBytes)], files: &[PerfData<'_>]) -> Result<()> {
    for (next, pair) in parts.iter().skip(1).zip(files.windows(2)) {
        if pair[0].order != pair[1].order || pair[0].attrs != pair[1].attrs {
            return Err(Failure::new(format!(
                "{} is not a part of the recording that {} is of: other events were measured",
                next.0.display(),
                parts[0].0.display()
            ))
            .hint("convert each of them by its own name"));
        }
    }
    Ok(())
}

fn identity(parts: &[(PathBuf, InputBytes)]) -> [u8; 16] {
    if let [(_, bytes)] = parts {
        return Identity::of_file(bytes, "");
    }
    let mut identity = Identity::new();
    parts.iter().for_each(|(_, bytes)| identity.add(&Identity::of_file(bytes, "")));
    identity.finish()
}
