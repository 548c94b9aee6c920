//! A `perf.data` of perf: tracepoint samples, their call chains as stacks, lost records as losses.
//!
//! With `--switch-output` perf leaves several files of one recording; together they are one trace.

mod conversion;
mod describe;
mod sampled;

use std::path::{Path, PathBuf};

use kmt_common::input::InputBytes;
use kmt_common::kmt_file::KmtFile;
use kmt_common::tell;

use self::conversion::SampleConversion;
use self::describe::{describe, running_kernel};
use self::sampled::Sampling;
use super::description::Description;
use super::driver::{self, EventSource};
use super::event_names::EventNames;
use super::stacks::StackFormat;
use super::target_files::TargetFiles;
use super::{ConvertOptions, Converted};
use crate::failure::{Failure, Result};
use crate::import::ImportError;
use crate::import::perf_data::{PerfData, Rounds};
use crate::input::Kind;
use crate::output::Output;
use crate::uuid::Identity;
use kmt_common::text::count;

/// Converts the parts of a recording, the first one first; nearly always it is one.
pub fn convert(
    options: &ConvertOptions,
    parts: &[(PathBuf, InputBytes)],
    is_cut: bool,
    output: Output,
) -> Result<Converted> {
    if options.verbatim {
        return Err(Failure::new(format!("{} holds samples, not sub-buffers", options.input.display()))
            .hint("--verbatim works only with sub-buffers copied from a target, or with a trace.dat"));
    }
    let mut files = Vec::new();
    for part in parts {
        files.push(open(part, options)?);
    }
    are_of_one_recording(parts, &files)?;
    // Where perf was killed, its last part has none.
    let Some(at) = files.iter().position(|file| file.tracing.is_some()) else {
        return Err(Failure::new(format!(
            "{} has no tracing data: the format of its samples is unknown",
            options.input.display()
        ))
        .hint("perf writes tracing data at the end, so an interrupted recording has none; record again, or pipe `perf record -o -`, which writes it first"));
    };
    let (first, path) = (&mut files[at], &parts[at].0);
    let mut description = describe(first, &|fault| on(path, &fault))?;
    TargetFiles::of(path, options.limits)?.complete(&mut description)?;
    running_kernel(first, &mut description);
    let stack = StackFormat::new(&description);
    description.formats.push(stack.format());
    let sampling = Sampling::new(first, &description, options.limits.import.sampled_sites);
    let names = EventNames::new(&description.formats, first.order, description.long_size);
    let conversion = SampleConversion::new(stack, sampling, names, first.order);
    let source = Samples { conversion, options, parts, files: &files };
    driver::convert(options, description, identity(parts), source, is_cut, output)
}

/// The samples of all parts of a recording.
struct Samples<'a, 'd> {
    conversion: SampleConversion,
    options: &'a ConvertOptions,
    parts: &'a [(PathBuf, InputBytes)],
    files: &'a [PerfData<'d>],
}

impl EventSource for Samples<'_, '_> {
    fn convert(&mut self, file: &mut KmtFile) -> Result<u64> {
        let conversion = &mut self.conversion;
        for ((path, _), part) in self.parts.iter().zip(self.files) {
            let mut rounds = Rounds::new(part);
            let fault = rounds.read(&mut |item| {
                let failed = |e| Failure::new(format!("{}: {e}", path.display()));
                conversion.item(item, file).map_err(failed)?;
                file.write_if_large()
            })?;
            conversion.end_of_file(&rounds, fault.as_ref(), file)?;
            if let Some(fault) = &fault {
                tell!("warning: {}: {fault}; the events before it are converted", path.display());
            }
        }
        Ok(conversion.finish(file)?)
    }

    fn empty(&self) -> Option<Failure> {
        let input = self.options.input.display();
        Some(
            Failure::new(format!("{input} has no samples of tracepoints"))
                .hint("no recorded event occurred, or the recording was interrupted"),
        )
    }

    fn summary(&self, events: u64, file: &KmtFile) -> String {
        let source = match self.files {
            [file] if file.is_pipe => "a perf.data in pipe mode".to_owned(),
            [_] => "a perf.data".to_owned(),
            parts => format!("{} parts of a perf.data", parts.len()),
        };
        let order = self.files.first().map_or("", |file| file.order.name());
        format!(
            "{} of {} from {source}, {order}-endian",
            count(events, "event"),
            count(file.cpus.len() as u64, "CPU")
        )
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
    let remedy = "`perf report --header-only` shows if perf can read the file";
    let mut file =
        PerfData::open(bytes, options.limits.import).map_err(|fault| on(path, &fault).hint(remedy))?;
    file.inflated_max = options.limits.of(Kind::Inflated, bytes.len() as u64);
    if !file.attrs.iter().any(|a| a.is_tracepoint()) {
        return Err(Failure::new(format!("{input} was recorded without tracepoints"))
            .hint("record tracepoints: perf kmem record --slab --page, or perf record -e 'kmem:*'"));
    }
    Ok(file)
}

/// Events of one recording have the same ids in all of its parts.
fn are_of_one_recording(parts: &[(PathBuf, InputBytes)], files: &[PerfData<'_>]) -> Result<()> {
    for (next, pair) in parts.iter().skip(1).zip(files.windows(2)) {
        if pair[0].order != pair[1].order || pair[0].attrs != pair[1].attrs {
            return Err(Failure::new(format!(
                "{} and {} are not parts of one recording: they have different events",
                next.0.display(),
                parts[0].0.display()
            ))
            .hint("convert each file separately"));
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
