//! `convert`: saved ring buffers to a file.

use std::fs::File;
use std::path::PathBuf;

use kmt_format::kernel::{
    CpuStats, Module, parse_kallsyms, parse_modules, parse_saved_cmdlines, parse_saved_tgids,
};
use kmt_format::write::{Loss, StatsTaken, Task, Writer, WriterOptions, WriterStats};
use kmt_format::{Compression, Error, ErrorKind};

use crate::decode::Decoder;
use crate::failure::{Failure, Outcome, Result};
use crate::input::{CpuFiles, Directory, Target, read_up_to};
use crate::output::Output;
use crate::rewrite::rewrite;
use crate::uuid::Identity;

/// What to convert, and to where.
#[derive(Debug)]
pub struct Options {
    /// Directory.
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
}

/// Bytes read from a ring buffer at once, about.
const READ_LEN: usize = 1 << 20;
/// Damaged places that are told one by one for each CPU.
const DAMAGES_TOLD: u64 = 3;

/// Converts a directory, or writes a .kmt file anew.
pub fn convert(options: &Options) -> Result<Outcome> {
    if options.input.is_file() {
        return rewrite(options);
    }
    let directory = Directory::open(&options.input)?;
    let cpus = directory.cpus()?;
    let formats = Formats::read(&directory)?;
    let target = Target::read(&directory, &cpus, |id| formats.ids.contains(&id))?;
    let mut output = Output::create(&options.output, options.force)?;
    let mut conversion = Conversion::start(&target, &cpus, &formats, options)?;
    conversion.metadata(&directory, &target, &cpus)?;
    let mut writer_stats = Vec::new();
    for cpu in &cpus {
        writer_stats.push((cpu.cpu, conversion.cpu(cpu, &mut output)?));
    }
    let flagged = conversion.decoder.flagged;
    conversion.decoder.writer.writer_stats(&writer_stats)?;
    let events: u64 = writer_stats.iter().map(|(_, s)| s.events).sum();
    if events == 0 && flagged == Loss::default() {
        return Err(Failure::new(format!(
            "the ring buffers in {} hold no events",
            directory.root().display()
        ))
        .hint("read trace_pipe_raw before the buffer is cleared; a file can be read only once"));
    }
    let Conversion { decoder, notes } = conversion;
    output.write(&decoder.writer.finish()?)?;
    output.finish()?;
    let lost = cpus.iter().filter_map(stats_of).filter_map(|s| s.lost_events()).fold(0, u64::saturating_add);
    let bytes: u64 = writer_stats.iter().map(|(_, s)| s.bytes).sum();
    if !options.quiet {
        for note in target.notes.iter().chain(&notes) {
            eprintln!("note: {note}");
        }
        eprintln!(
            "{events} events of {} CPUs from {bytes} bytes of {}-endian {}-bit ring buffers",
            cpus.len(),
            target.order.name(),
            target.header_page.long_size() * 8,
        );
    }
    report_losses(lost, flagged);
    let complete = lost == 0 && flagged == Loss::default();
    Ok(if complete { Outcome::Done } else { Outcome::Incomplete })
}

fn report_losses(lost: u64, flagged: Loss) {
    if lost > 0 || flagged.counted > 0 || flagged.uncounted {
        let uncounted = if flagged.uncounted { ", and at least one gap was not counted" } else { "" };
        eprintln!(
            "warning: events were lost while recording: {lost} by the kernel's stats, {} marked in sub-buffers{uncounted}",
            flagged.counted
        );
    }
    if flagged.damaged_input {
        eprintln!("warning: part of the input was damaged; the places are marked in the file");
    }
}

/// The counters that tell what was lost: `stats`, and failing that those taken after the drain.
fn stats_of(cpu: &CpuFiles) -> Option<CpuStats> {
    [&cpu.stats, &cpu.stats_after].into_iter().flatten().find_map(|text| CpuStats::parse(text))
}

/// All formats of the directory, and those that are none.
struct Formats {
    texts: Vec<(String, PathBuf, String)>,
    ids: std::collections::HashSet<u16>,
}

impl Formats {
    fn read(directory: &Directory) -> Result<Self> {
        let texts = directory.formats();
        if texts.is_empty() {
            let events = directory.root().join("events");
            return Err(Failure::new(format!("{} holds no SYSTEM/EVENT/format", events.display())).hint(
                "copy events/*/*/format of the traced kernel: ids and layouts differ between kernels",
            ));
        }
        let id = |text: &str| {
            let line = text.lines().find_map(|l| l.strip_prefix("ID: "))?;
            line.trim().parse::<u16>().ok()
        };
        let ids = texts.iter().filter_map(|(_, _, text)| id(text)).collect();
        Ok(Self { texts, ids })
    }
}

struct Conversion {
    decoder: Decoder,
    notes: Vec<String>,
}

impl Conversion {
    fn start(target: &Target, cpus: &[CpuFiles], formats: &Formats, options: &Options) -> Result<Self> {
        let mut writer = Writer::new(WriterOptions {
            order: target.order,
            long_size: target.header_page.long_size(),
            align_u64: target.align_u64(),
            page_size: target.page_size.map(|(size, _)| size),
            trace_uuid: identity(target, cpus, target.header_page.sub_buffer_len())?,
            compression: options.compression,
        })?;
        let mut notes = Vec::new();
        for (system, path, text) in &formats.texts {
            match writer.add_format(system, text) {
                // Kernel memory events are described even where none occurred: "none" is an answer too.
                Ok(id) if system == "kmem" => writer.declare(id)?,
                Ok(_) => {}
                Err(error) => notes.push(format!("{} is left out: {error}", path.display())),
            }
        }
        let (header_page, order) = (target.header_page, target.order);
        let verbatim = options.verbatim;
        let decoder = Decoder { writer, header_page, order, verbatim, flagged: Loss::default() };
        Ok(Self { decoder, notes })
    }

    /// Everything that is not events, at the start of the file: every prefix of it can be understood.
    fn metadata(
        &mut self,
        directory: &Directory,
        target: &Target,
        cpus: &[CpuFiles],
    ) -> kmt_format::Result<()> {
        if let Some(clock) = &target.clock {
            self.decoder.writer.clock(clock)?;
        }
        let version = concat!("kmt-capture ", env!("CARGO_PKG_VERSION"));
        let mut pairs: Vec<(String, Vec<u8>)> = vec![
            ("writer".into(), version.into()),
            ("source".into(), "tracefs directory".into()),
            ("sub_buffer_size".into(), target.header_page.sub_buffer_len().to_string().into()),
        ];
        let cmdline = directory.beside("cmdline");
        let text = |t: &Option<String>| t.as_ref().map(|t| t.trim().as_bytes().to_vec());
        let known = [
            ("uname", text(&target.uname_text)),
            ("kernel.release", target.uname.as_ref().map(|u| u.release.clone().into_bytes())),
            ("kernel.machine", target.uname.as_ref().map(|u| u.machine.clone().into_bytes())),
            ("cmdline", cmdline.map(|c| c.trim_ascii().to_vec())),
            ("page_size.source", target.page_size.map(|(_, how)| how.into())),
        ];
        pairs.extend(known.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
        for (name, value) in directory.conditions() {
            pairs.push((format!("tracefs/{name}"), value.trim_ascii_end().to_vec()));
        }
        let pairs: Vec<(&str, &[u8])> = pairs.iter().map(|(k, v)| (k.as_str(), v.as_slice())).collect();
        self.decoder.writer.meta(&pairs)?;
        self.attachments(directory)?;
        self.tasks(directory)?;
        let parsed = |text: &Option<String>| text.as_deref().and_then(CpuStats::parse);
        for (taken, pick) in [
            (StatsTaken::Before, (|c: &CpuFiles| c.stats.clone()) as fn(&CpuFiles) -> Option<String>),
            (StatsTaken::After, |c: &CpuFiles| c.stats_after.clone()),
        ] {
            let rows: Vec<_> = cpus.iter().filter_map(|c| Some((c.cpu, parsed(&pick(c))?))).collect();
            if !rows.is_empty() {
                self.decoder.writer.stats(taken, &rows)?;
            }
        }
        self.symbols(directory, target)
    }

    fn attachments(&mut self, directory: &Directory) -> kmt_format::Result<()> {
        for name in ["events/header_page", "events/header_event", "printk_formats"] {
            if let Some(bytes) = directory.bytes(name) {
                self.decoder.writer.file(name, &bytes)?;
            }
        }
        let conditions = directory.event_conditions();
        if !conditions.is_empty() {
            self.decoder.writer.file("event_conditions", conditions.as_bytes())?;
        }
        let state = directory.state();
        for (name, bytes) in &state {
            self.decoder.writer.file(name, bytes)?;
        }
        let missing: Vec<&str> = ["slabinfo", "buddyinfo", "pagetypeinfo", "zoneinfo", "meminfo", "vmstat"]
            .into_iter()
            .filter(|name| !state.iter().any(|(have, _)| have.split('.').next() == Some(name)))
            .collect();
        if !missing.is_empty() {
            self.notes.push(format!("no snapshots of {}", missing.join(", ")));
        }
        Ok(())
    }

    fn tasks(&mut self, directory: &Directory) -> kmt_format::Result<()> {
        let Some(cmdlines) = directory.bytes("saved_cmdlines") else { return Ok(()) };
        let tgids: std::collections::HashMap<i32, i32> = directory
            .text("saved_tgids")
            .map(|t| parse_saved_tgids(&t))
            .unwrap_or_default()
            .into_iter()
            .collect();
        let named = parse_saved_cmdlines(&cmdlines);
        let mut tasks: Vec<Task> = named
            .into_iter()
            .map(|t| Task {
                time: 0,
                pid: t.pid,
                tgid: tgids.get(&t.pid).copied().unwrap_or(0),
                comm: t.comm,
            })
            .collect();
        let have: std::collections::HashSet<i32> = tasks.iter().map(|t| t.pid).collect();
        let nameless = tgids.iter().filter(|(pid, _)| !have.contains(pid));
        tasks.extend(nameless.map(|(&pid, &tgid)| Task { time: 0, pid, tgid, comm: Vec::new() }));
        tasks.sort_by_key(|t| t.pid);
        self.decoder.writer.tasks(&tasks)
    }

    fn symbols(&mut self, directory: &Directory, target: &Target) -> kmt_format::Result<()> {
        let modules: Vec<Module> = match directory.beside_text("modules") {
            Some(text) => {
                self.decoder.writer.file("modules", text.as_bytes())?;
                parse_modules(&text)
            }
            None => {
                self.notes.push("no modules: where modules end is guessed from their symbols".to_owned());
                Vec::new()
            }
        };
        let Some(text) = directory.beside("kallsyms") else {
            self.notes.push("no kallsyms: call sites will print as addresses".to_owned());
            return Ok(());
        };
        let page_size = target.page_size.map_or(4096, |(size, _)| size);
        let symbols = parse_kallsyms(&text, &modules, page_size);
        if symbols.all_zero {
            self.notes.push(
                "kallsyms holds only zeros, so call sites will print as addresses; save it as root after \
                 `echo 0 > /proc/sys/kernel/kptr_restrict`"
                    .to_owned(),
            );
            return Ok(());
        }
        self.decoder.writer.symbols(&symbols, &modules)
    }

    /// Converts one CPU's ring buffer, sub-buffer by sub-buffer.
    fn cpu(&mut self, files: &CpuFiles, output: &mut Output) -> Result<WriterStats> {
        let sub_buffer_len = self.decoder.header_page.sub_buffer_len();
        let mut file = File::open(&files.raw).map_err(|e| Failure::io("opening", &files.raw, &e))?;
        let mut buffer = vec![0; (READ_LEN / sub_buffer_len).max(1) * sub_buffer_len];
        let mut stats = WriterStats::default();
        loop {
            let len =
                read_up_to(&mut file, &mut buffer).map_err(|e| Failure::io("reading", &files.raw, &e))?;
            for sub_buffer in buffer.get(..len).unwrap_or_default().chunks(sub_buffer_len) {
                let offset = stats.bytes;
                if let Err(error) = self.decoder.sub_buffer(files.cpu, sub_buffer, &mut stats, |_, _| {}) {
                    self.damaged(files, offset, &error, &mut stats)?;
                }
            }
            if self.decoder.writer.pending_len() >= READ_LEN {
                output.write(self.decoder.writer.pending())?;
                self.decoder.writer.clear_pending();
            }
            if len < buffer.len() {
                break;
            }
        }
        self.decoder.writer.flush(files.cpu)?;
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
            eprintln!("warning: {place}: {}", error.kind());
        }
        self.decoder.damaged(files.cpu).map_err(|e| Failure::new(e.to_string()))
    }
}

/// The same input gives the same file, other input another identity.
fn identity(target: &Target, cpus: &[CpuFiles], sub_buffer_len: usize) -> Result<[u8; 16]> {
    let mut identity = Identity::new();
    identity.add(target.uname_text.as_deref().unwrap_or_default().as_bytes());
    for cpu in cpus {
        identity.add(&cpu.cpu.to_le_bytes());
        identity.add(&cpu.raw_len.to_le_bytes());
        let mut file = File::open(&cpu.raw).map_err(|e| Failure::io("opening", &cpu.raw, &e))?;
        let mut first = vec![0; sub_buffer_len];
        let len = read_up_to(&mut file, &mut first).map_err(|e| Failure::io("reading", &cpu.raw, &e))?;
        identity.add(first.get(..len).unwrap_or_default());
    }
    Ok(identity.finish())
}
