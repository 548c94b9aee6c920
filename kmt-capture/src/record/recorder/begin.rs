//! Chunks before the first event.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use kmt_format::kernel::{ByteOrder, TraceClock};
use kmt_format::print::PrintEnv;

use super::Recorder;
use super::cpu::Cpu;
use crate::enumerators;
use crate::failure::{Failure, Result};
use crate::record::adopted::Adopted;
use crate::record::cpus::online;
use crate::record::ring::Ring;
use crate::record::samples;
use crate::record::snapshot::{self, When};
use crate::record::symbols::{self, Symbols, kallsyms_has_addresses};
use crate::record::{RecordOptions, baseline, console, description};
use kmt_common::text::count;

impl Recorder {
    /// The options, with an end where a buffer that was found is stopped: nothing more will come.
    pub(in crate::record) fn with_what_was_found(&self, options: &RecordOptions) -> RecordOptions {
        let is_off = self.setup.adopted.as_ref().is_some_and(|adopted| !adopted.is_on);
        let is_endless = options.duration.is_none() && options.command.is_empty();
        let duration = if is_off && is_endless { Some(Duration::ZERO) } else { options.duration };
        RecordOptions { duration, ..options.clone() }
    }

    /// Everything that an analysis elsewhere needs, before the first event: any prefix of the file can be understood.
    pub(in crate::record) fn describe(&mut self, options: &RecordOptions) -> Result<()> {
        self.describe_target(options)?;
        let writer = &mut self.file.writer;
        let before = writer.finished_len();
        snapshot::write_cgroups(writer, 0)?;
        self.room.keep_for_end(writer.finished_len().saturating_sub(before));
        self.file.write()?;
        self.describe_modules()?;
        match self.symbols(options)? {
            symbols::Outcome::Zeroed => self.plan.notes.push(
                "/proc/kallsyms has only zero addresses: call sites are printed as addresses; \
                 run `echo 0 > /proc/sys/kernel/kptr_restrict` as root, then record again"
                    .to_owned(),
            ),
            symbols::Outcome::Missing => self
                .plan
                .notes
                .push("no /proc/kallsyms (CONFIG_KALLSYMS): call sites are printed as addresses".to_owned()),
            symbols::Outcome::Written(_) => {}
        }
        self.clock_pair()?;
        // What the ring holds begins at an unknown time after this program did, and a buffer that was found before it.
        if options.black_box.is_none() && self.setup.adopted.is_none() {
            self.counts_before(options)?;
        }
        // Last: between this and the first event no task should change its name.
        self.names.running();
        self.file.writer.add_tasks(&self.names.take())?;
        self.file.write()
    }

    /// The kernel's counts before the first event. Late: what is allocated between this and the first event is in no count.
    /// The names of tasks are read once before: the second time allocates no inodes of /proc.
    fn counts_before(&mut self, options: &RecordOptions) -> Result<()> {
        self.names.running();
        self.samples_before(options)?;
        let writer = &mut self.file.writer;
        let before = writer.finished_len();
        let missing = baseline::read(options.baseline.as_slice()).write(writer, When::Before)?;
        let unknown = snapshot::write(writer, When::Before)?;
        self.room.keep_for_end(writer.finished_len().saturating_sub(before));
        if !unknown.is_empty() {
            self.plan.notes.push(format!("no snapshots of {}", unknown.join(", ")));
        }
        if !missing.is_empty() {
            self.plan.notes.push(format!("this kernel has no {}", missing.join(", ")));
        }
        Ok(())
    }

    /// Samples that the program which started the recorder has taken before; their times are those of one clock.
    fn samples_before(&mut self, options: &RecordOptions) -> Result<()> {
        if !options.samples || self.setup.clock != "mono" {
            return Ok(());
        }
        let mut text = Vec::new();
        if std::io::stdin().take(samples::LEN_MAX as u64).read_to_end(&mut text).is_ok() {
            samples::write(&mut self.file.writer, &text)?;
        }
        Ok(())
    }

    /// Event classes, the clock, and keys of target and recording.
    pub(super) fn describe_target(&mut self, options: &RecordOptions) -> Result<()> {
        self.formats()?;
        let sub_buffer_len = self.layout.sub_buffer_len();
        self.file.writer.add_clock(&TraceClock::named(&self.setup.clock))?;
        self.describe_part()?;
        let writer = &mut self.file.writer;
        Ok(description::write(writer, &self.setup, &self.plan, options, sub_buffer_len)?)
    }

    pub(super) fn describe_modules(&mut self) -> Result<()> {
        let modules = std::fs::read_to_string("/proc/modules").unwrap_or_default();
        if !modules.is_empty() {
            self.file.writer.add_file("modules", modules.as_bytes())?;
        }
        Ok(())
    }

    /// Writes all symbols, or begins to collect those that are used.
    fn symbols(&mut self, options: &RecordOptions) -> Result<symbols::Outcome> {
        let Self { file, used, .. } = self;
        match (options.symbols, kallsyms_has_addresses()) {
            (Symbols::None, _) => Ok(symbols::Outcome::Written(0)),
            (Symbols::All, _) => symbols::write_all(file),
            (Symbols::Used, Some(true)) => {
                file.writer.collect_code_addresses();
                Ok(symbols::Outcome::Written(0))
            }
            (Symbols::Used, found) => {
                *used = None;
                Ok(found.map_or(symbols::Outcome::Missing, |_| symbols::Outcome::Zeroed))
            }
        }
    }

    /// Makes the formats known of what can occur: the events asked for, and what ftrace writes by itself.
    pub(super) fn formats(&mut self) -> Result<()> {
        let (mut ids, long_size) = (Vec::new(), self.layout.long_size());
        let env = PrintEnv::new(ByteOrder::NATIVE, long_size);
        for event in self.plan.events.keys() {
            let name = event.file("format");
            let text = self.setup.dir.read(&name).or_else(|| self.setup.top.read(&name));
            let system = self.plan.system(event);
            text.iter().for_each(|text| enumerators::note(&env, system, text, long_size));
            let id = text.and_then(|text| self.file.writer.add_format(system, &text).ok());
            match id {
                Some(id) => ids.push(id),
                None if self.plan.found.is_some() => {
                    let note = format!("the format of {event} is unknown: its events are kept as bytes");
                    self.setup.notes.push(note);
                }
                None => {
                    return Err(Failure::new(format!(
                        "{} has an unknown format",
                        self.setup.top.file(&name).display()
                    ))
                    .hint(format!("record without {event}, and report this with the file")));
                }
            }
        }
        for name in self.setup.top.names("events/ftrace") {
            let name = format!("events/ftrace/{}/format", name.to_string_lossy());
            if let Some(text) = self.setup.top.read(&name) {
                // Those that cannot be read hardly ever occur, and are damage if they do.
                let _ = self.file.writer.add_format("ftrace", &text);
                if self.formats.is_some() {
                    let _ = self.file.writer.keep_unknown(&text);
                }
            }
        }
        if let Some(constants) = enumerators::of_this_kernel(&env.unknown_names()) {
            self.file.writer.add_metadata(&[("constants", constants.as_bytes())])?;
        }
        let declared = ids.into_iter().try_for_each(|id| self.file.writer.declare(id));
        Ok(declared?)
    }

    /// Opens the buffers of CPUs that are there and were not before.
    pub(in crate::record) fn open_rings(&mut self) {
        let adopted = self.setup.adopted.as_ref();
        let mut cpus: BTreeSet<u32> = online(&self.setup).into_iter().collect();
        cpus.extend(adopted.map(Adopted::cpus).unwrap_or_default());
        for cpu in cpus {
            if self.refused.contains(&cpu) || self.cpus.iter().any(|known| known.number() == cpu) {
                continue;
            }
            match Ring::open(&self.setup.dir, cpu) {
                Ok(ring) => {
                    self.file.stats(cpu);
                    let found = adopted.and_then(|adopted| adopted.counters(cpu));
                    self.cpus.push(Cpu::new(ring).adopt(found));
                }
                Err(error) => {
                    self.notices
                        .push(format!("warning: the ring buffer of CPU {cpu} cannot be read: {error}"));
                    self.refused.push(cpu);
                }
            }
        }
    }

    /// Notes on the recording, and a line that says of what it is.
    pub(in crate::record) fn announcement(
        &mut self,
        path: &Path,
        options: &RecordOptions,
        buffer_kb: u64,
    ) -> Vec<String> {
        let notes = self.setup.notes.drain(..).chain(self.plan.notes.drain(..));
        let mut lines: Vec<String> = notes.map(|note| format!("note: {note}")).collect();
        let until = match (&options.duration, options.command.first()) {
            (Some(duration), Some(command)) => {
                let (seconds, command) = (duration.as_secs_f64(), command.to_string_lossy());
                format!("for {seconds} s or until {command} ends; Ctrl-C stops earlier")
            }
            (Some(duration), None) => format!("for {} s; Ctrl-C stops earlier", duration.as_secs_f64()),
            (None, Some(command)) => {
                format!("while {} runs; Ctrl-C stops earlier", command.to_string_lossy())
            }
            (None, None) => "until Ctrl-C".to_owned(),
        };
        let until = match options.black_box.as_ref().map(|options| options.stop_when.as_slice()) {
            None => until,
            Some([]) => format!("the newest events, {until}"),
            Some(conditions) => {
                let conditions: Vec<String> = conditions.iter().map(ToString::to_string).collect();
                format!("waiting for {}, {until}", conditions.join(", "))
            }
        };
        let to = match (options.line.is_some(), &options.rotate) {
            (true, _) => "the connection".to_owned(),
            (false, Some(_)) => format!("{} and files after it", path.display()),
            (false, None) => path.display().to_string(),
        };
        lines.push(format!(
            "recording {} on {} to {to}: {} of buffer per CPU, clock {}, {until}",
            self.plan.summary(),
            count(self.cpus.len() as u64, "CPU"),
            console::bytes(buffer_kb << 10),
            self.setup.clock,
        ));
        lines
    }
}
