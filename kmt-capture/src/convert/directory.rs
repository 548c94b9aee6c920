//! A directory laid out like tracefs.

use std::path::PathBuf;

use kmt_common::kmt_file::{KmtFile, WRITE_LEN};
use kmt_format::Error;
use kmt_format::kernel::{ClockUnit, CpuStats};

use super::boots::{Boots, Side};
use super::description::{Description, format_id};
use super::driver::{self, EventSource};
use super::event_names::EventNames;
use super::persistent;
use super::sub_buffers::SubBufferConversion;
use super::{ConvertOptions, Converted};
use crate::failure::{Failure, Result};
use crate::input::{CpuFiles, Directory, Kind, Target, too_large};
use crate::output::Output;
use crate::record::Symbols;
use crate::uuid::Identity;
use kmt_common::text::count;

/// Converts a directory.
pub fn convert(options: &ConvertOptions, directory: &Directory, output: Output) -> Result<Converted> {
    let cpus = directory.cpus()?;
    let formats = Formats::read(directory)?;
    let target = Target::read(directory, &cpus, |id| formats.ids.contains(&id))?;
    let mut description = describe(directory, &target, &cpus, &formats)?;
    let uuid = identity(directory, &target, &cpus, target.header_page.sub_buffer_len())?;
    let names = EventNames::new(&description.formats, target.order, target.header_page.long_size());
    let side = side(options, directory, &target, &cpus, &mut description)?;
    let layout = (target.header_page, target.order);
    let boots = (Boots::new(unit(&target)), side);
    let sub_buffers = SubBufferConversion::new(layout, options.verbatim, names, boots);
    let trace_options = directory.text("trace_options")?.unwrap_or_default();
    let overwrites = trace_options.lines().any(|line| line.trim() == "overwrite");
    let source = RingBuffers {
        sub_buffers,
        directory,
        cpus: &cpus,
        target: &target,
        raw_bytes: 0,
        overwrites,
        full: Vec::new(),
    };
    driver::convert(options, description, uuid, source, false, output)
}

fn unit(target: &Target) -> ClockUnit {
    target.clock.as_ref().map_or(ClockUnit::Nanoseconds, |clock| clock.unit)
}

/// The part of the buffers that `--boot` selects.
fn side(
    options: &ConvertOptions,
    directory: &Directory,
    target: &Target,
    cpus: &[CpuFiles],
    description: &mut Description,
) -> Result<Option<Side>> {
    let Some(boot) = options.boot else { return Ok(None) };
    let mut boots = Boots::new(unit(target));
    let sub_buffer_len = target.header_page.sub_buffer_len();
    for files in cpus {
        boots.begin(files.cpu, files.raw.display().to_string());
        let mut raw = directory.raw(files, sub_buffer_len)?;
        let mut buffer = vec![0; read_len(sub_buffer_len)];
        loop {
            let (_, len) = raw.next(&mut buffer).map_err(|e| Failure::io("reading", &files.raw, &e))?;
            if len == 0 {
                break;
            }
            let sub_buffers = buffer.get(..len).unwrap_or_default().chunks(sub_buffer_len);
            sub_buffers.for_each(|bytes| boots.look_at(bytes, &target.header_page, target.order));
        }
    }
    Ok(description.take_side(boot, boots.side(boot)))
}

/// Bytes of ring buffers that are read at once.
fn read_len(sub_buffer_len: usize) -> usize {
    (WRITE_LEN / sub_buffer_len).max(1) * sub_buffer_len
}

/// All formats of the directory: system, path, text; and their ids.
struct Formats {
    texts: Vec<(String, PathBuf, String)>,
    ids: std::collections::HashSet<u16>,
}

impl Formats {
    fn read(directory: &Directory) -> Result<Self> {
        let texts = directory.formats()?;
        if texts.is_empty() {
            let events = directory.root().join("events");
            return Err(Failure::new(format!("{} has no SYSTEM/EVENT/format", events.display())).hint(
                "copy events/*/*/format of the traced kernel: ids and layouts differ between kernels",
            ));
        }
        let ids = texts.iter().filter_map(|(_, _, text)| format_id(text)).collect();
        Ok(Self { texts, ids })
    }
}

/// The description of the target that the files give.
fn describe(
    directory: &Directory,
    target: &Target,
    cpus: &[CpuFiles],
    formats: &Formats,
) -> Result<Description> {
    let mut pairs: Vec<(String, Vec<u8>)> = Vec::new();
    if let Some(cmdline) = directory.target_file("cmdline")? {
        pairs.push(("cmdline".into(), cmdline.trim_ascii().to_vec()));
    }
    if let Some(cause) = directory.target_text("stopped_by")? {
        // Of the script for targets without kmt-capture: what its wait was for.
        pairs.push(("record.stopped_by".into(), cause.trim().as_bytes().to_vec()));
    }
    pairs.extend(persistent::facts(directory)?);
    pairs.extend(directory.build_ids(target.order)?);
    for (name, value) in directory.conditions()? {
        pairs.push((format!("tracefs/{name}"), value.trim_ascii_end().to_vec()));
    }
    let mut notes = target.notes.clone();
    notes.extend(persistent::note(directory)?);
    let mut files = Vec::new();
    for name in ["events/header_page", "events/header_event", "printk_formats"] {
        files.extend(directory.bytes(name)?.map(|bytes| (name.to_owned(), bytes)));
    }
    let conditions = directory.event_conditions()?;
    if !conditions.is_empty() {
        files.push(("event_conditions".to_owned(), conditions.into_bytes()));
    }
    let state = directory.state()?;
    let missing: Vec<&str> = ["slabinfo", "buddyinfo", "pagetypeinfo", "zoneinfo", "meminfo", "vmstat"]
        .into_iter()
        .filter(|name| !state.iter().any(|(have, _)| have.split('.').next() == Some(name)))
        .collect();
    if !missing.is_empty() {
        notes.push(format!("no snapshots of {}", missing.join(", ")));
    }
    files.extend(state);
    let text = |(system, path, text): &(String, PathBuf, String)| {
        (system.clone(), path.display().to_string(), text.clone())
    };
    Ok(Description {
        source: "tracefs directory".to_owned(),
        order: Some(target.order),
        long_size: target.header_page.long_size(),
        page_size: target.page_size,
        sub_buffer_len: Some(target.header_page.sub_buffer_len()),
        uname_text: target.uname_text.clone(),
        clock: target.clock.clone(),
        pairs,
        formats: formats.texts.iter().map(text).collect(),
        files,
        saved_cmdlines: directory.bytes("saved_cmdlines")?,
        saved_tgids: directory.text("saved_tgids")?,
        stats: cpus.iter().map(|c| (c.cpu, c.stats.clone(), c.stats_after.clone())).collect(),
        modules: directory.target_text("modules")?,
        kallsyms: directory.target_file("kallsyms")?,
        symbols: Symbols::default(),
        keeps_unknown: true,
        notes,
    })
}

/// The ring buffers of a directory.
struct RingBuffers<'d> {
    sub_buffers: SubBufferConversion,
    directory: &'d Directory,
    cpus: &'d [CpuFiles],
    target: &'d Target,
    /// Bytes of all ring buffers that were read.
    raw_bytes: u64,
    /// True if the ring buffers keep the newest events.
    overwrites: bool,
    /// CPUs whose buffers may have overwritten events that nothing counts.
    full: Vec<u32>,
}

impl EventSource for RingBuffers<'_> {
    fn convert(&mut self, file: &mut KmtFile) -> Result<u64> {
        for files in self.cpus {
            self.cpu(files, file)?;
        }
        self.sub_buffers.finish(file)
    }

    fn missing(&self) -> u64 {
        self.sub_buffers.undecoded()
    }

    fn notes(&self, description: Description) -> Vec<String> {
        let full = (!self.full.is_empty()).then(|| {
            let cpus: Vec<String> = self.full.iter().map(u32::to_string).collect();
            format!(
                "the persistent buffer of CPU {} was full: older events may have been overwritten, their number is unknown",
                cpus.join(", ")
            )
        });
        description.all_notes().into_iter().chain(self.sub_buffers.notes()).chain(full).collect()
    }

    fn empty(&self) -> Option<Failure> {
        let root = self.directory.root().display();
        Some(
            Failure::new(format!("the ring buffers in {root} hold no events"))
                .hint("read trace_pipe_raw before the buffer is cleared; its events can be read only once"),
        )
    }

    fn summary(&self, events: u64, file: &KmtFile) -> String {
        format!(
            "{} of {} from {} of {}-endian {}-bit ring buffers",
            count(events, "event"),
            count(self.cpus.len() as u64, "CPU"),
            count(file.cpus.values().map(|stats| stats.bytes).sum::<u64>(), "byte"),
            self.target.order.name(),
            self.target.header_page.long_size() * 8,
        )
    }
}

impl RingBuffers<'_> {
    /// Converts one CPU's ring buffer, sub-buffer by sub-buffer.
    fn cpu(&mut self, files: &CpuFiles, file: &mut KmtFile) -> Result<()> {
        let sub_buffer_len = self.sub_buffers.sub_buffer_len();
        let mut raw = self.directory.raw(files, sub_buffer_len)?;
        let mut buffer = vec![0; read_len(sub_buffer_len)];
        self.sub_buffers.begin(file, files.cpu, files.raw.display().to_string())?;
        if self.overwrites {
            self.sub_buffers.expect_ring(files.stats.as_deref().and_then(CpuStats::parse));
            if persistent::may_have_overwritten(self.directory, files, &self.target.header_page)? {
                self.sub_buffers.mark_overwritten(file)?;
                self.full.push(files.cpu);
            }
        }
        loop {
            let (mut offset, len) =
                raw.next(&mut buffer).map_err(|e| Failure::io("reading", &files.raw, &e))?;
            self.raw_bytes += len as u64;
            let limits = self.directory.limits();
            if self.raw_bytes > limits.raw {
                return Err(too_large(&files.raw, self.raw_bytes, limits, Kind::Raw));
            }
            for sub_buffer in buffer.get(..len).unwrap_or_default().chunks(sub_buffer_len) {
                if let Some(damage) = self.sub_buffers.add(file, sub_buffer)? {
                    self.undecodable(file, files, offset, &damage);
                }
                offset += sub_buffer.len() as u64;
            }
            file.write_if_large()?;
            if len == 0 {
                return self.sub_buffers.end(file);
            }
        }
    }

    /// Reports a sub-buffer that could not be decoded to its end.
    fn undecodable(&self, file: &mut KmtFile, files: &CpuFiles, start: u64, error: &Error) {
        let offset = start + error.offset().unwrap_or(0);
        let damage = format!("{} at offset {offset}", files.raw.display());
        self.sub_buffers.report(file, format_args!("{damage}: {}", error.kind()));
    }
}

/// Identity of the file: equal input gives an equal file, other input another identity.
fn identity(
    directory: &Directory,
    target: &Target,
    cpus: &[CpuFiles],
    sub_buffer_len: usize,
) -> Result<[u8; 16]> {
    let mut identity = Identity::new();
    identity.add(target.uname_text.as_deref().unwrap_or_default().as_bytes());
    for cpu in cpus {
        identity.add(&cpu.cpu.to_le_bytes());
        identity.add(&cpu.raw_len.to_le_bytes());
        let mut raw = directory.raw(cpu, sub_buffer_len)?;
        let mut first = vec![0; sub_buffer_len];
        let (_, len) = raw.next(&mut first).map_err(|e| Failure::io("reading", &cpu.raw, &e))?;
        identity.add(first.get(..len).unwrap_or_default());
    }
    Ok(identity.finish())
}
