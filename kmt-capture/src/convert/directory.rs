//! A directory laid out like tracefs.

use std::path::PathBuf;

use kmt_common::tell;
use kmt_format::write::{Loss, WriterStats};
use kmt_format::{Error, ErrorKind};

use super::description::{Description, format_id};
use super::{Converted, Options};
use crate::decode::Decoder;
use crate::failure::{Failure, Result};
use crate::input::{CpuFiles, Directory, Kind, Target, too_large};
use crate::output::Output;
use crate::record::Symbols;
use crate::uuid::Identity;

/// Bytes read from a ring buffer at once, about.
const READ_LEN: usize = 1 << 20;
/// Damaged places that are told one by one for each CPU.
const DAMAGES_TOLD: u64 = 3;

/// Converts a directory.
pub fn convert(options: &Options, directory: &Directory, mut output: Output) -> Result<Converted> {
    let cpus = directory.cpus()?;
    let formats = Formats::read(directory)?;
    let target = Target::read(directory, &cpus, |id| formats.ids.contains(&id))?;
    let mut description = describe(directory, &target, &cpus, &formats)?;
    description.symbols = options.symbols;
    let uuid = identity(directory, &target, &cpus, target.header_page.sub_buffer_len())?;
    let mut writer = description.writer(uuid, options.compression)?;
    description.write(&mut writer)?;
    let (header_page, order) = (target.header_page, target.order);
    let verbatim = options.verbatim;
    let decoder = Decoder { writer, header_page, order, verbatim, flagged: Loss::default() };
    let mut conversion = Conversion { decoder, directory, raw_bytes: 0 };
    let mut stats = Vec::new();
    for cpu in &cpus {
        stats.push((cpu.cpu, conversion.cpu(cpu, &mut output)?));
    }
    let Conversion { mut decoder, .. } = conversion;
    decoder.writer.writer_stats(&stats)?;
    let events: u64 = stats.iter().map(|(_, s)| s.events).sum();
    if events == 0 && decoder.flagged == Loss::default() {
        return Err(Failure::new(format!(
            "the ring buffers in {} hold no events",
            directory.root().display()
        ))
        .hint("read trace_pipe_raw before the buffer is cleared; a file can be read only once"));
    }
    output.write(&decoder.writer.finish()?)?;
    output.finish()?;
    let bytes: u64 = stats.iter().map(|(_, s)| s.bytes).sum();
    let what = format!(
        "{events} events of {} CPUs from {bytes} bytes of {}-endian {}-bit ring buffers",
        cpus.len(),
        target.order.name(),
        target.header_page.long_size() * 8,
    );
    Ok(Converted {
        what,
        lost: description.lost_events(),
        flagged: decoder.flagged,
        notes: description.all_notes(),
    })
}

/// All formats of the directory, and those that are none.
struct Formats {
    texts: Vec<(String, PathBuf, String)>,
    ids: std::collections::HashSet<u16>,
}

impl Formats {
    fn read(directory: &Directory) -> Result<Self> {
        let texts = directory.formats()?;
        if texts.is_empty() {
            let events = directory.root().join("events");
            return Err(Failure::new(format!("{} holds no SYSTEM/EVENT/format", events.display())).hint(
                "copy events/*/*/format of the traced kernel: ids and layouts differ between kernels",
            ));
        }
        let ids = texts.iter().filter_map(|(_, _, text)| format_id(text)).collect();
        Ok(Self { texts, ids })
    }
}

/// What the files say.
fn describe(
    directory: &Directory,
    target: &Target,
    cpus: &[CpuFiles],
    formats: &Formats,
) -> Result<Description> {
    let mut pairs: Vec<(String, Vec<u8>)> = Vec::new();
    if let Some(cmdline) = directory.beside("cmdline")? {
        pairs.push(("cmdline".into(), cmdline.trim_ascii().to_vec()));
    }
    for (name, value) in directory.conditions()? {
        pairs.push((format!("tracefs/{name}"), value.trim_ascii_end().to_vec()));
    }
    let mut notes = target.notes.clone();
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
        modules: directory.beside_text("modules")?,
        kallsyms: directory.beside("kallsyms")?,
        symbols: Symbols::default(),
        notes,
    })
}

struct Conversion<'d> {
    decoder: Decoder,
    directory: &'d Directory,
    /// Bytes of all ring buffers that were read.
    raw_bytes: u64,
}

impl Conversion<'_> {
    /// Converts one CPU's ring buffer, sub-buffer by sub-buffer.
    fn cpu(&mut self, files: &CpuFiles, output: &mut Output) -> Result<WriterStats> {
        let sub_buffer_len = self.decoder.header_page.sub_buffer_len();
        let mut raw = self.directory.raw(files, sub_buffer_len)?;
        let mut buffer = vec![0; (READ_LEN / sub_buffer_len).max(1) * sub_buffer_len];
        let mut stats = WriterStats::default();
        loop {
            let (mut offset, len) =
                raw.next(&mut buffer).map_err(|e| Failure::io("reading", &files.raw, &e))?;
            self.raw_bytes += len as u64;
            let limits = self.directory.limits();
            if self.raw_bytes > limits.raw {
                return Err(too_large(&files.raw, self.raw_bytes, limits, Kind::Raw));
            }
            for sub_buffer in buffer.get(..len).unwrap_or_default().chunks(sub_buffer_len) {
                if let Err(error) = self.decoder.sub_buffer(files.cpu, sub_buffer, &mut stats, |_, _| {}) {
                    self.damaged(files, offset, &error, &mut stats)?;
                }
                offset += sub_buffer.len() as u64;
            }
            if self.decoder.writer.pending_len() >= READ_LEN {
                output.write(self.decoder.writer.pending())?;
                self.decoder.writer.clear_pending();
            }
            if len == 0 {
                break;
            }
        }
        self.decoder.writer.end_of(files.cpu)?;
        output.write(self.decoder.writer.pending())?;
        self.decoder.writer.clear_pending();
        Ok(stats)
    }

    /// A sub-buffer that could not be decoded to its end: told, marked in the file, and gone on from the next one.
    fn damaged(
        &mut self,
        files: &CpuFiles,
        start: u64,
        error: &Error,
        stats: &mut WriterStats,
    ) -> Result<()> {
        let offset = start + error.offset().unwrap_or(0);
        let place = format!("{} at offset {offset}", files.raw.display());
        if let ErrorKind::UnknownEventId { id } = error.kind() {
            return Err(Failure::new(format!("{place}: event id {id} has no format in events/")).hint(
                "copy events/*/*/format of the same boot of the traced kernel: ids differ between kernels",
            ));
        }
        stats.sub_buffers_damaged += 1;
        if stats.sub_buffers_damaged <= DAMAGES_TOLD {
            tell!("warning: {place}: {}", error.kind());
        }
        self.decoder.damaged(files.cpu).map_err(|e| Failure::new(e.to_string()))
    }
}

/// The same input gives the same file, other input another identity.
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
