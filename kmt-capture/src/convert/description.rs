//! Facts about the target besides its events, and their chunks in a file.

use kmt_common::kmt_file::KmtFile;
use kmt_format::kernel::{
    ByteOrder, CpuStats, Module, TraceClock, Uname, parse_kallsyms, parse_modules, parse_saved_cmdlines,
    parse_saved_tgids,
};
use kmt_format::write::{StatsTaken, Task, Writer, WriterOptions};
use kmt_format::{Compression, Result};

use super::boots::{Boot, Side};
use crate::enumerators;
use crate::record::Symbols;

/// The note on an input that has no kmem events.
pub const NO_KMEM: &str =
    "the input has no kmem events: `dump` and `events` show its events, reports on memory stay empty";

/// A target as its recording describes it.
#[derive(Debug, Default)]
pub struct Description {
    /// Kind of the input, in words.
    pub source: String,
    /// Byte order; little endian if unknown.
    pub order: Option<ByteOrder>,
    /// Size of the kernel's `long`, in bytes.
    pub long_size: usize,
    /// Page size in bytes, and how it is known.
    pub page_size: Option<(u64, &'static str)>,
    /// Size of sub-buffers, in bytes.
    pub sub_buffer_len: Option<usize>,
    /// Output of `uname -a`.
    pub uname_text: Option<String>,
    /// The trace clock.
    pub clock: Option<TraceClock>,
    /// More facts, by key of the registry.
    pub pairs: Vec<(String, Vec<u8>)>,
    /// System, file, text of each `format`.
    pub formats: Vec<(String, String, String)>,
    /// Files that are kept as they are.
    pub files: Vec<(String, Vec<u8>)>,
    /// `saved_cmdlines`.
    pub saved_cmdlines: Option<Vec<u8>>,
    /// `saved_tgids`.
    pub saved_tgids: Option<String>,
    /// `stats` of a CPU before and after its buffer was read.
    pub stats: Vec<(u32, Option<String>, Option<String>)>,
    /// `/proc/modules`.
    pub modules: Option<String>,
    /// `/proc/kallsyms`.
    pub kallsyms: Option<Vec<u8>>,
    /// Symbols that the file gets.
    pub symbols: Symbols,
    /// True if events whose id has no format are kept as bytes.
    pub keeps_unknown: bool,
    /// Missing facts and their consequences, a sentence each.
    pub notes: Vec<String>,
}

impl Description {
    /// Notes for the user, also that the memory allocators have no format.
    pub fn all_notes(self) -> Vec<String> {
        let has_kmem = self.formats.iter().any(|(system, ..)| system == "kmem");
        let mut notes = self.notes;
        notes.extend((!has_kmem).then(|| NO_KMEM.to_owned()));
        notes
    }

    /// Leaves out facts that are of both boots, or of the other one, where a side of two boots is converted.
    pub fn take_side(&mut self, boot: Boot, side: Option<(Side, Vec<String>)>) -> Option<Side> {
        let Some((side, notes)) = side else {
            self.notes.push("--boot: all events are of one boot, and are converted".to_owned());
            return None;
        };
        self.notes.extend(notes);
        self.notes.push("counters are of several boots: they are not used".to_owned());
        self.stats.clear();
        if boot == Boot::First {
            // Kernel and modules are at other addresses in each boot.
            (self.kallsyms, self.modules) = (None, None);
            self.notes.push(
                "kallsyms and modules are those of a later boot: they are not used for the first".to_owned(),
            );
        }
        Some(side)
    }

    /// The parsed `uname`; `None` if it is not of a known form.
    pub fn uname(&self) -> Option<Uname> {
        self.uname_text.as_deref().and_then(Uname::parse)
    }

    /// Byte order of the target.
    pub fn order(&self) -> ByteOrder {
        self.order.unwrap_or(ByteOrder::Little)
    }

    /// Lost events by the kernel's counters: those before the drain, and failing that those after it. `None`: there are none.
    pub fn lost_events(&self) -> Option<u64> {
        let lost = |(_, before, after): &(u32, Option<String>, Option<String>)| {
            let stats = [before, after].into_iter().flatten().find_map(|text| CpuStats::parse(text));
            stats.and_then(|s| s.lost_events())
        };
        self.stats.iter().filter_map(lost).reduce(u64::saturating_add)
    }

    /// Alignment of u64 in the kernel's structures, where the machine is known: 4 on 32-bit x86.
    fn align_u64(&self) -> Option<u8> {
        let machine = self.uname().map(|u| u.machine).filter(|m| !m.is_empty())?;
        let is_i386 = machine.len() == 4 && machine.starts_with('i') && machine.ends_with("86");
        Some(if is_i386 { 4 } else { 8 })
    }

    /// A writer with all formats. A text that is not a format is named in the notes.
    pub fn writer(&mut self, trace_uuid: [u8; 16], compression: Compression) -> Result<Writer> {
        let mut writer = Writer::new(
            WriterOptions::new(self.order(), self.long_size)
                .align_u64(self.align_u64())
                .page_size(self.page_size.map(|(size, _)| size))
                .trace_uuid(trace_uuid)
                .compression(compression),
        )?;
        for (system, place, text) in &self.formats {
            match writer.add_format(system, text) {
                // Kernel memory events are described even where none occurred: "none" is an answer too.
                Ok(id) if system == "kmem" => writer.declare(id)?,
                Ok(_) => {}
                Err(error) => self.notes.push(format!("left out {place}: {error}")),
            }
        }
        if self.keeps_unknown {
            // All formats of a kernel have the same common fields.
            let _ = self.formats.iter().any(|(_, _, text)| writer.keep_unknown(text).is_ok());
        }
        Ok(writer)
    }

    /// Everything that is not events, at the start of the file: every prefix of it can be understood. The output gets each
    /// file of the target at once, so that neither the writer nor the description holds all of them twice.
    pub fn write(&mut self, file: &mut KmtFile) -> crate::failure::Result<()> {
        if let Some(clock) = &self.clock {
            file.writer.add_clock(clock)?;
        }
        self.pairs(&mut file.writer)?;
        for (name, bytes) in std::mem::take(&mut self.files) {
            let (name, times) = timed(&name);
            file.writer.add_file_at(name, &bytes, times)?;
            file.write()?;
        }
        self.tasks(&mut file.writer)?;
        let parsed = |text: &Option<String>| text.as_deref().and_then(CpuStats::parse);
        let before: Vec<_> = self.stats.iter().filter_map(|(cpu, s, _)| Some((*cpu, parsed(s)?))).collect();
        let after: Vec<_> = self.stats.iter().filter_map(|(cpu, _, s)| Some((*cpu, parsed(s)?))).collect();
        for (taken, rows) in [(StatsTaken::Before, before), (StatsTaken::After, after)] {
            if !rows.is_empty() {
                file.writer.add_stats(taken, &rows)?;
            }
        }
        self.symbols(&mut file.writer)?;
        file.write()
    }

    fn pairs(&self, writer: &mut Writer) -> Result<()> {
        let version = concat!("kmt-capture ", env!("CARGO_PKG_VERSION"));
        let uname = self.uname();
        let facts = [
            ("writer", Some(version.as_bytes().to_vec())),
            ("source", Some(self.source.clone().into_bytes())),
            ("sub_buffer_size", self.sub_buffer_len.map(|len| len.to_string().into_bytes())),
            ("uname", self.uname_text.as_ref().map(|t| t.trim().as_bytes().to_vec())),
            ("kernel.release", uname.as_ref().map(|u| u.release.clone().into_bytes())),
            ("kernel.machine", uname.as_ref().map(|u| u.machine.clone().into_bytes())),
            ("page_size.source", self.page_size.map(|(_, how)| how.into())),
        ];
        let constants = self.constants().map(|text| ("constants".to_owned(), text.into_bytes()));
        let facts = facts.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
        let facts = facts.chain(constants);
        let pairs: Vec<(String, Vec<u8>)> = facts.chain(self.pairs.iter().cloned()).collect();
        let pairs: Vec<(&str, &[u8])> = pairs.iter().map(|(k, v)| (k.as_str(), v.as_slice())).collect();
        writer.add_metadata(&pairs)
    }

    /// Values of the enumerators that print fmts name, if the target's description of its types is there.
    fn constants(&self) -> Option<String> {
        let (_, btf) = self.files.iter().find(|(name, _)| name == "btf")?;
        let formats = self.formats.iter().map(|(system, _, text)| (system.as_str(), text.as_str()));
        enumerators::of_formats(btf, formats, (self.order(), self.long_size))
    }

    fn tasks(&self, writer: &mut Writer) -> Result<()> {
        let Some(cmdlines) = &self.saved_cmdlines else { return Ok(()) };
        let tgids: std::collections::HashMap<i32, i32> =
            self.saved_tgids.as_deref().map(parse_saved_tgids).unwrap_or_default().into_iter().collect();
        let tgid = |pid| tgids.get(&pid).copied().unwrap_or(0);
        let named = parse_saved_cmdlines(cmdlines);
        let mut tasks: Vec<Task> =
            named.into_iter().map(|t| Task::new(t.pid, t.comm).tgid(tgid(t.pid))).collect();
        let have: std::collections::HashSet<i32> = tasks.iter().map(|t| t.pid).collect();
        let nameless = tgids.iter().filter(|(pid, _)| !have.contains(pid));
        tasks.extend(nameless.map(|(&pid, &tgid)| Task::new(pid, Vec::new()).tgid(tgid)));
        tasks.sort_by_key(|t| t.pid);
        writer.add_tasks(&tasks)
    }

    fn symbols(&mut self, writer: &mut Writer) -> Result<()> {
        let modules: Vec<Module> = match &self.modules {
            Some(text) => {
                writer.add_file("modules", text.as_bytes())?;
                parse_modules(text)
            }
            None => {
                let note = "no modules: the end of each module is estimated from its symbols";
                self.notes.push(note.to_owned());
                Vec::new()
            }
        };
        if self.symbols == Symbols::None {
            return Ok(());
        }
        let Some(text) = &self.kallsyms else {
            self.notes.push("no kallsyms: call sites are printed as addresses".to_owned());
            return Ok(());
        };
        let page_size = self.page_size.map_or(4096, |(size, _)| size);
        let symbols = parse_kallsyms(text, &modules, page_size);
        if symbols.all_zero {
            self.notes.push(
                "kallsyms has only zero addresses: call sites are printed as addresses; save it as root after \
                 `echo 0 > /proc/sys/kernel/kptr_restrict`"
                    .to_owned(),
            );
            return Ok(());
        }
        match self.symbols {
            Symbols::Used => writer.add_symbols_on_use(&symbols, &modules),
            _ => writer.add_symbols(&symbols, &modules),
        }
    }
}

/// The id that the text of a `format` gives.
pub fn format_id(text: &str) -> Option<u16> {
    let line = text.lines().find_map(|l| l.strip_prefix("ID: "))?;
    line.trim().parse().ok()
}

/// The name of a file that somebody saved as `NAME.at.T0-T1`, and between which times of the trace clock it was read.
fn timed(name: &str) -> (&str, Option<(u64, u64)>) {
    let times = |times: &str| {
        let (from, to) = times.split_once('-')?;
        Some((from.parse().ok()?, to.parse().ok()?)).filter(|(from, to): &(u64, u64)| from <= to)
    };
    let found = name.split_once(".at.").and_then(|(stem, rest)| Some((stem, times(rest)?)));
    found.map_or((name, None), |(stem, times)| (stem, Some(times)))
}
