//! A `perf.data` of perf: tracepoint samples, their call chains as stacks, lost records as losses.

use std::collections::{BTreeMap, HashMap};
use std::fs;

use kmt_format::ErrorKind;
use kmt_format::kernel::{ByteOrder, TraceClock};
use kmt_format::write::{Loss, Task, Writer, WriterStats};

use super::beside::Beside;
use super::description::{Description, format_id};
use super::stacks::{StackFormat, is_corrupt_to_perf, kernel_part};
use super::{Converted, Options};
use crate::failure::{Failure, Result};
use crate::import::Fault;
use crate::import::perf_data::{Item, PerfData, Rounds};
use crate::output::Output;
use crate::uuid::Identity;

/// Bytes that are handed to the output at once, about.
const WRITE_LEN: usize = 1 << 20;
/// Names of tasks that are written at once.
const TASKS_AT_ONCE: usize = 4096;

/// An event of which only some were recorded.
#[derive(Debug, Clone, Copy, Default)]
struct Sampled {
    /// Events from one sample to the next; 0: it varies.
    period: u64,
    samples: u64,
    /// Events that the samples stand for.
    events: u64,
}

/// Converts a `perf.data`.
pub fn convert(options: &Options, bytes: &[u8]) -> Result<Converted> {
    let place = options.input.display();
    if options.verbatim {
        return Err(Failure::new(format!("{place} holds samples, not sub-buffers"))
            .hint("--verbatim keeps sub-buffers that were copied off a target, or of a trace.dat"));
    }
    let failed = |fault: Fault| Failure::new(format!("{place}: {fault}"));
    let remedy = "`perf report --header-only` says what perf thinks of it";
    let mut file = PerfData::open(bytes).map_err(|f| failed(f).hint(remedy))?;
    if !file.attrs.iter().any(|a| a.is_tracepoint()) {
        return Err(Failure::new(format!("{place} has samples of no tracepoint"))
            .hint("record tracepoints: perf kmem record --slab --page, or perf record -e 'kmem:*'"));
    }
    if file.tracing.is_none() {
        return Err(Failure::new(format!("{place} has no tracing data, so what its samples hold is unknown"))
            .hint("perf writes it when the recording ends: an interrupted one has none; record again, or pipe `perf record -o -`, which writes it first"));
    }
    let mut output = Output::create(&options.output, options.force)?;
    let mut description = describe(&mut file, &failed)?;
    Beside::of(&options.input)?.complete(&mut description);
    running_kernel(&file, &mut description);
    let stack = StackFormat::new(&description);
    description.formats.push(stack.format());
    let mut writer = description.writer(Identity::of_file(bytes, ""), options.compression)?;
    description.write(&mut writer)?;
    let mut conversion = Conversion::new(writer, stack, &file);
    conversion.names = names(&description);
    let mut rounds = Rounds::new(&file);
    let fault = rounds.read(&mut |item| conversion.item(item, &mut output).map_err(|e| e.on(options)))?;
    conversion.finish(&mut rounds, fault.as_ref())?;
    if let Some(fault) = &fault {
        eprintln!("warning: {place}: {fault}; what comes before it is converted");
    }
    if conversion.events == 0 && conversion.flagged == Loss::default() {
        return Err(Failure::new(format!("{place} holds no samples of tracepoints"))
            .hint("nothing that was recorded happened, or the recording was cut off"));
    }
    let (events, cpus) = (conversion.events, conversion.stats.len());
    let mut notes = description.all_notes();
    conversion.notes(&rounds, &mut notes);
    let flagged = conversion.flagged;
    output.write(&conversion.writer.finish()?)?;
    output.finish()?;
    let mode = if file.is_pipe { " in pipe mode" } else { "" };
    let what = format!("{events} events of {cpus} CPUs from a perf.data{mode}, {}-endian", file.order.name());
    Ok(Converted { what, lost: 0, flagged, notes })
}

fn describe(file: &mut PerfData<'_>, failed: &dyn Fn(Fault) -> Failure) -> Result<Description> {
    let Some((start, data)) = file.tracing.take() else { return Ok(Description::default()) };
    let header_page = data.layout().map_err(failed)?;
    let mut pairs = Vec::new();
    for (key, name) in [("perf/version", "version"), ("perf/cmdline", "cmdline"), ("host", "hostname")] {
        pairs.extend(file.fact(name).map(|text| (key.to_owned(), text.as_bytes().to_vec())));
    }
    if let Some((_, _, start)) = &file.kernel_text {
        pairs.push(("perf/kernel_start".to_owned(), format!("{start:#x}").into_bytes()));
    }
    let uname = file.fact("osrelease").map(|release| {
        let (host, arch) = (file.fact("hostname").unwrap_or("?"), file.fact("arch").unwrap_or_default());
        format!("Linux {host} {release} {arch}")
    });
    let mut notes = std::mem::take(&mut file.notes);
    if uname.is_none() {
        notes.push("no uname: flag columns and widths will follow the newest kernel".to_owned());
    }
    notes.push("perf counts no losses CPU by CPU: those that it noticed are in the file".to_owned());
    let kept = |bytes: Vec<u8>| Some(bytes).filter(|b| !b.is_empty());
    let mut files = vec![("events/header_page".to_owned(), data.header_page.into_bytes())];
    files.push(("events/header_event".to_owned(), data.header_event));
    if !data.printk_formats.is_empty() {
        files.push(("printk_formats".to_owned(), data.printk_formats));
    }
    let place = |offset| format!("the format at offset {offset}");
    Ok(Description {
        source: "perf.data".to_owned(),
        order: Some(file.order),
        long_size: header_page.long_size(),
        page_size: Some((start.page_size.into(), "perf.data")),
        uname_text: uname,
        clock: Some(TraceClock::named(clock_name(file))),
        pairs,
        formats: data.formats.into_iter().map(|(system, at, text)| (system, place(at), text)).collect(),
        files,
        saved_cmdlines: kept(data.saved_cmdlines),
        kallsyms: kept(data.kallsyms),
        notes,
        ..Description::default()
    })
}

/// The kernel's name for the clock of the samples.
fn clock_name(file: &PerfData<'_>) -> &'static str {
    match file.attrs.iter().find_map(|a| a.clock_id) {
        Some(1) => "mono",
        Some(4) => "mono_raw",
        Some(7) => "boot",
        Some(11) => "tai",
        _ => "perf",
    }
}

/// Symbols of the running kernel, where it is the recorded one: the same release, and its text at the same place.
fn running_kernel(file: &PerfData<'_>, description: &mut Description) {
    if description.kallsyms.is_some() {
        return;
    }
    let running = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let Some((symbol, address, _)) =
        file.kernel_text.as_ref().filter(|_| file.fact("osrelease") == Some(running.trim()))
    else {
        return;
    };
    let Ok(kallsyms) = fs::read("/proc/kallsyms") else { return };
    let is_there = kallsyms.split(|&b| b == b'\n').any(|line| {
        let mut words = line.split(|&b| b == b' ');
        let at = words.next().and_then(|w| u64::from_str_radix(std::str::from_utf8(w).ok()?, 16).ok());
        at == Some(*address) && words.nth(1) == Some(symbol.as_bytes())
    });
    if is_there && *address != 0 {
        description.kallsyms = Some(kallsyms);
        description.modules = description.modules.take().or(fs::read_to_string("/proc/modules").ok());
        description
            .notes
            .push("symbols are those of the running kernel, which is the recorded one".to_owned());
    }
}

/// Why an item could not be taken in.
enum Trouble {
    Format(kmt_format::Error),
    Output(Failure),
}

impl From<kmt_format::Error> for Trouble {
    fn from(error: kmt_format::Error) -> Self {
        Self::Format(error)
    }
}

impl Trouble {
    fn on(self, options: &Options) -> Failure {
        match self {
            Self::Format(error) => Failure::new(format!("{}: {error}", options.input.display())),
            Self::Output(failure) => failure,
        }
    }
}

/// SYSTEM:EVENT of each id of a format.
fn names(description: &Description) -> BTreeMap<u64, String> {
    let name = |text: &str| text.lines().find_map(|l| l.strip_prefix("name: ")).map(|n| n.trim().to_owned());
    let row = |(system, _, text): &(String, String, String)| {
        Some((u64::from(format_id(text)?), format!("{system}:{}", name(text)?)))
    };
    description.formats.iter().filter_map(row).collect()
}

struct Conversion {
    writer: Writer,
    order: ByteOrder,
    stack: StackFormat,
    record: Vec<u8>,
    comms: HashMap<i32, Vec<u8>>,
    tasks: Vec<Task>,
    stats: HashMap<u32, WriterStats>,
    flagged: Loss,
    events: u64,
    corrupt_chains: u64,
    /// Events of which only some were recorded, by id.
    sampled: BTreeMap<u64, Sampled>,
    /// SYSTEM:EVENT of each id.
    names: BTreeMap<u64, String>,
    lost: u64,
    throttled: u64,
    not_traced: u64,
    unknown: HashMap<u16, u64>,
    short: u64,
}

impl Conversion {
    fn new(writer: Writer, stack: StackFormat, file: &PerfData<'_>) -> Self {
        Self {
            writer,
            order: file.order,
            stack,
            record: Vec::new(),
            comms: HashMap::new(),
            tasks: Vec::new(),
            stats: HashMap::new(),
            flagged: Loss::default(),
            events: 0,
            corrupt_chains: 0,
            sampled: file
                .attrs
                .iter()
                .filter(|a| a.is_tracepoint() && a.is_sampled())
                .map(|a| (a.config, Sampled { period: a.period, ..Sampled::default() }))
                .collect(),
            names: BTreeMap::new(),
            lost: 0,
            throttled: 0,
            not_traced: 0,
            unknown: HashMap::new(),
            short: 0,
        }
    }

    fn item(&mut self, item: Item<'_>, output: &mut Output) -> std::result::Result<(), Trouble> {
        match item {
            Item::Event { time, cpu, raw, chain, period } => {
                self.sample(raw, period);
                self.event(time, cpu, raw, chain)?;
            }
            Item::Lost { cpu, count } => {
                self.lost = self.lost.saturating_add(count.unwrap_or(0));
                self.throttled += u64::from(count.is_none());
                let loss =
                    Loss { counted: count.unwrap_or(0), uncounted: count.is_none(), damaged_input: false };
                self.lose(cpu.unwrap_or(0), loss)?;
            }
            Item::Comm { time, pid, tid, comm } => {
                self.comms.insert(tid, comm.to_vec());
                self.task(Task { time, pid: tid, tgid: pid, comm: comm.to_vec() })?;
            }
            Item::Fork { time, pid, tid, parent } => {
                let Some(comm) = self.comms.get(&parent).cloned() else { return Ok(()) };
                self.comms.insert(tid, comm.clone());
                self.task(Task { time, pid: tid, tgid: pid, comm })?;
            }
            Item::NotTraced => self.not_traced += 1,
        }
        if self.writer.pending_len() >= WRITE_LEN {
            output.write(self.writer.pending()).map_err(Trouble::Output)?;
            self.writer.clear_pending();
        }
        Ok(())
    }

    /// Counts what a sample stands for, if it is one of many events.
    fn sample(&mut self, raw: &[u8], period: Option<u64>) {
        if self.sampled.is_empty() {
            return;
        }
        let id = self.order.uint(raw.get(..2).unwrap_or_default());
        if let Some(sampled) = self.sampled.get_mut(&id) {
            sampled.samples += 1;
            sampled.events = sampled.events.saturating_add(period.unwrap_or(sampled.period).max(1));
        }
    }

    fn event(&mut self, time: u64, cpu: u32, raw: &[u8], chain: &[u8]) -> kmt_format::Result<()> {
        match self.writer.event(cpu, time, raw) {
            Ok(()) => {}
            Err(error) => return self.unusable(cpu, raw, &error),
        }
        let stats = self.stats.entry(cpu).or_default();
        stats.events += 1;
        stats.bytes += raw.len() as u64;
        self.events += 1;
        self.corrupt_chains += u64::from(is_corrupt_to_perf(chain, self.order));
        let chain = kernel_part(chain, self.order);
        if !chain.is_empty() {
            self.stack.record(&mut self.record, raw, chain, self.order);
            self.writer.event(cpu, time, &self.record)?;
            if let Some(stats) = self.stats.get_mut(&cpu) {
                stats.events += 1;
            }
        }
        Ok(())
    }

    /// An event that has no format, or is shorter than it: lost, but counted.
    fn unusable(&mut self, cpu: u32, raw: &[u8], error: &kmt_format::Error) -> kmt_format::Result<()> {
        match error.kind() {
            ErrorKind::UnknownEventId { id } => *self.unknown.entry(*id).or_default() += 1,
            _ if raw.len() < 8 => self.short += 1,
            _ => return Err(error.clone()),
        }
        self.lose(cpu, Loss { counted: 1, ..Loss::default() })
    }

    fn lose(&mut self, cpu: u32, loss: Loss) -> kmt_format::Result<()> {
        self.flagged = self.flagged.and(loss);
        self.writer.lost(cpu, loss)
    }

    fn task(&mut self, task: Task) -> kmt_format::Result<()> {
        self.tasks.push(task);
        if self.tasks.len() >= TASKS_AT_ONCE {
            self.writer.tasks(&std::mem::take(&mut self.tasks))?;
        }
        Ok(())
    }

    /// What is known when all records were read.
    fn finish(&mut self, rounds: &mut Rounds<'_>, fault: Option<&Fault>) -> kmt_format::Result<()> {
        // Counted at the end for each event, they are the same losses once more, unless no record could tell of them.
        let untold = rounds.lost_samples.saturating_sub(self.lost);
        if untold > 0 {
            self.lose(0, Loss { counted: untold, ..Loss::default() })?;
        }
        if fault.is_some() {
            self.lose(0, Loss { damaged_input: true, ..Loss::default() })?;
        }
        if !self.tasks.is_empty() {
            self.writer.tasks(&std::mem::take(&mut self.tasks))?;
        }
        let mut stats: Vec<(u32, WriterStats)> = self.stats.iter().map(|(&cpu, &s)| (cpu, s)).collect();
        stats.sort_by_key(|(cpu, _)| *cpu);
        for (cpu, _) in &stats {
            self.writer.flush(*cpu)?;
        }
        let sampled: Vec<String> = self
            .sampled
            .iter()
            .map(|(id, s)| {
                format!(
                    "{} {} {} {}",
                    self.names.get(id).map_or("?", String::as_str),
                    s.samples,
                    s.events,
                    s.period
                )
            })
            .collect();
        if !sampled.is_empty() {
            self.writer.meta(&[("perf/sampled", sampled.join("\n").as_bytes())])?;
        }
        if self.corrupt_chains > 0 {
            let count = self.corrupt_chains.to_string();
            self.writer.meta(&[("perf/corrupt_chains", count.as_bytes())])?;
        }
        self.writer.writer_stats(&stats)
    }

    fn notes(&self, rounds: &Rounds<'_>, notes: &mut Vec<String>) {
        for (id, s) in &self.sampled {
            let name = self.names.get(id).map_or("?", String::as_str);
            notes.push(format!(
                "{name} was sampled: {} of about {} events; nothing that follows objects can be told of it, record with -c 1",
                s.samples, s.events
            ));
        }
        let mut note = |count: u64, what: &str| {
            if count > 0 {
                notes.push(format!("{count} {what}"));
            }
        };
        note(self.not_traced, "samples of other events than tracepoints are left out");
        note(
            self.throttled,
            "times events were switched off for coming too often: what happened meanwhile is missing",
        );
        note(
            self.unknown.values().sum(),
            "samples have ids without a format in the file: they are counted as lost",
        );
        note(self.short, "samples are too short to be records of the kernel: they are counted as lost");
        if rounds.is_forced {
            notes.push("perf marked no rounds, so events of one CPU may stand out of order".to_owned());
        }
    }
}
