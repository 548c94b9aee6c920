//! A trace of Perfetto: records are rebuilt from the messages of its events.

use std::collections::HashMap;

use kmt_common::kmt_file::KmtFile;
use kmt_common::tell;
use kmt_common::text::count;
use kmt_format::kernel::{ByteOrder, TraceClock, parse_kallsyms};
use kmt_format::write::Task;

use super::description::{Description, NO_KMEM};
use super::driver::{self, EventSource};
use super::event_names::EventNames;
use super::perfetto_notes;
use super::records::RecordConversion;
use super::stacks::StackFormat;
use super::target_files::TargetFiles;
use super::{ConvertOptions, Converted};
use crate::failure::{Failure, Result};
use crate::import::perfetto::{Functions, Item, Reader, Survey};
use crate::input::Kind;
use crate::output::Output;
use crate::record::Symbols;
use crate::uuid::Identity;

/// Converts a trace.
pub fn convert(options: &ConvertOptions, bytes: &[u8], is_cut: bool, output: Output) -> Result<Converted> {
    let input = options.input.display();
    if options.verbatim {
        return Err(Failure::new(format!("{input} holds messages, not sub-buffers"))
            .hint("--verbatim works only with sub-buffers copied from a target, or with a trace.dat"));
    }
    let inflated_max = options.limits.of(Kind::Inflated, bytes.len() as u64);
    let bounds = options.limits.import;
    let survey = Survey::of(bytes, inflated_max, &bounds);
    if survey.clocks.len() > 1 {
        return Err(Failure::new(format!("{input} has events of several clocks"))
            .hint("record with one value of trace_clock"));
    }
    let mut description = describe(&survey);
    TargetFiles::of(&options.input, options.limits)?.complete(&mut description)?;
    let functions = functions(&survey, &description, bounds.functions);
    let has_symbols = matches!(functions, Functions::Known(_)) || options.symbols == Symbols::None;
    let conversion = EventConversion::new(&description);
    let reader = Reader::new(bytes, &survey, inflated_max, bounds, functions);
    let source = Packets { conversion, reader, survey: &survey, options, has_symbols };
    driver::convert(options, description, Identity::of_file(bytes, ""), source, is_cut, output)
}

/// The target as the trace describes it.
fn describe(survey: &Survey) -> Description {
    let mut notes = Vec::new();
    let (release, machine) = (survey.release.as_deref(), survey.machine.as_deref());
    let uname = release.map(|release| {
        let version = survey.version.as_deref().unwrap_or_default();
        format!("Linux ? {release} {version} {}", machine.unwrap_or_default())
    });
    if uname.is_none() {
        notes.push("no uname: flag columns and widths follow the newest kernel".to_owned());
    }
    let clock = match survey.clocks.first() {
        None | Some(0) => Some("boot"),
        Some(2) => Some("global"),
        Some(3) => Some("local"),
        Some(4) => Some("mono_raw"),
        Some(_) => None,
    };
    if clock.is_none() {
        notes.push("the clock of the events is unknown".to_owned());
    }
    let stats = survey.counters().into_iter().map(|(cpu, counters)| {
        let text = format!(
            "overrun: {}\ncommit overrun: {}\ndropped events: {}\n",
            counters.overrun, counters.commit_overrun, counters.dropped
        );
        (cpu, None, Some(text))
    });
    Description {
        source: "Perfetto".to_owned(),
        order: Some(ByteOrder::Little),
        long_size: survey.long_size(),
        page_size: survey.page_size.map(|size| (size, "Perfetto")),
        uname_text: uname,
        clock: clock.map(TraceClock::named),
        pairs: vec![("pointers".to_owned(), b"real".to_vec())],
        stats: stats.collect(),
        notes,
        ..Description::default()
    }
}

/// Addresses of the functions of which the trace has names: those in kallsyms, or else addresses of our own.
fn functions(survey: &Survey, description: &Description, most: u64) -> Functions {
    let text = description.kallsyms.as_deref().unwrap_or_default();
    let symbols = parse_kallsyms(text, &[], 4096);
    if symbols.symbols.is_empty() {
        return Functions::own(description.long_size, most);
    }
    let mut addresses = HashMap::new();
    for symbol in &symbols.symbols {
        if survey.symbols.contains(symbol.name) {
            addresses.entry(symbol.name.to_vec()).or_insert(symbol.address);
        }
    }
    Functions::Known(addresses)
}

/// The packets of a trace.
struct Packets<'a> {
    conversion: EventConversion,
    reader: Reader<'a>,
    survey: &'a Survey,
    options: &'a ConvertOptions,
    /// True if the file has the kernel's symbols, or is to have none.
    has_symbols: bool,
}

impl EventSource for Packets<'_> {
    fn convert(&mut self, file: &mut KmtFile) -> Result<u64> {
        let conversion = &mut self.conversion;
        for (&pid, process) in &self.survey.tasks {
            let comm = process.comm.clone().unwrap_or_default();
            conversion.records.task(file, Task::new(pid, comm).tgid(process.tgid))?;
        }
        self.reader.read(&mut |item| -> Result<()> {
            conversion.item(item, file)?;
            file.write_if_large()
        })?;
        if let Some(fault) = &self.reader.fault {
            let input = self.options.input.display();
            tell!("warning: {input}: {fault}; events around it can be missing");
        }
        for (&pid, process) in &self.survey.tasks {
            let Some(program) = &process.program else { continue };
            if process.comm.is_none() && !self.reader.tasks.has(pid) {
                conversion.by_program += 1;
                conversion.records.task(file, Task::new(pid, program.clone()).tgid(process.tgid))?;
            }
        }
        if let (Functions::Own(symbols), false) = (&self.reader.functions, self.has_symbols) {
            if !symbols.is_empty() {
                file.writer.add_symbols(&symbols.kernel_symbols(), &[])?;
            }
        }
        Ok(conversion.finish(file)?)
    }

    fn empty(&self) -> Option<Failure> {
        let input = self.options.input.display();
        let left_out = self.reader.counts.left_out();
        Some(if left_out == 0 {
            Failure::new(format!("{input} has no events of ftrace"))
                .hint("record with the data source linux.ftrace and ftrace_events: \"kmem/*\"")
        } else {
            Failure::new(format!(
                "{input} has no events of memory: its {} are others",
                count(left_out, "event")
            ))
            .hint("record with ftrace_events: \"kmem/*\", \"vmscan/*\" and \"compaction/*\"")
        })
    }

    fn summary(&self, events: u64, file: &KmtFile) -> String {
        let bits = self.survey.long_size() * 8;
        format!(
            "{} of {} from a Perfetto trace of a {bits}-bit kernel",
            count(events, "event"),
            count(file.cpus.len() as u64, "CPU")
        )
    }

    fn notes(&self, description: Description) -> Vec<String> {
        let mut notes = description.notes;
        if matches!(self.reader.functions, Functions::Own(_)) {
            notes.retain(|n| !n.starts_with("no modules"));
        }
        if !self.conversion.has_kmem {
            notes.push(NO_KMEM.to_owned());
        }
        perfetto_notes::add(self.survey, &self.reader, &self.options.limits.import, &mut notes);
        self.conversion.notes(&mut notes);
        notes
    }
}

/// Conversion of the items of a trace.
struct EventConversion {
    records: RecordConversion,
    names: EventNames,
    has_kmem: bool,
    /// Tasks with the name of their program only.
    by_program: u64,
    /// Events of a layout that is invalid.
    invalid: u64,
}

impl EventConversion {
    fn new(description: &Description) -> Self {
        const ORDER: ByteOrder = ByteOrder::Little;
        Self {
            records: RecordConversion::new(StackFormat::new(description), ORDER),
            names: EventNames::new(&[], ORDER, description.long_size),
            has_kmem: false,
            by_program: 0,
            invalid: 0,
        }
    }

    fn item(&mut self, item: Item<'_>, file: &mut KmtFile) -> kmt_format::Result<()> {
        match item {
            Item::Format { system, format } => {
                // Events of a layout that cannot be written are counted below.
                let Ok(id) = file.writer.add_format(system, format) else { return Ok(()) };
                self.names.events.add(system, format);
                self.has_kmem |= system == "kmem";
                if system == "kmem" { file.writer.declare(id) } else { Ok(()) }
            }
            Item::Event { cpu, time, record } => {
                if self.records.event(file, cpu, time, record).is_err() {
                    self.invalid += 1;
                    return file.lose_unreadable(cpu);
                }
                self.names.see(time, record);
                self.names.write_if_many(file)
            }
            // The beginning of a trace that keeps the newest events is not a gap in it.
            Item::Lost { cpu, loss } if loss.overwritten => {
                let mut gap = loss;
                gap.overwritten = false;
                file.lost = file.lost.and(gap);
                file.writer.add_loss(cpu, loss)
            }
            Item::Lost { cpu, loss } => file.lose(cpu, loss),
            Item::Name { pid, comm, tgid, since } => {
                self.records.task(file, Task::new(pid, comm.to_vec()).tgid(tgid).since(since))
            }
        }
    }

    fn finish(&mut self, file: &mut KmtFile) -> kmt_format::Result<u64> {
        self.records.flush_tasks(file)?;
        self.names.finish(file)?;
        file.end_cpus()?;
        Ok(self.records.events)
    }

    fn notes(&self, notes: &mut Vec<String>) {
        if self.by_program > 0 {
            let tasks = count(self.by_program, "task");
            notes.push(format!("{tasks} of which no event has the name: that of the program is used"));
        }
        if self.invalid > 0 {
            notes.push(format!("{} of an invalid layout: counted as lost", count(self.invalid, "event")));
        }
    }
}
