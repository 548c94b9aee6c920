//! A persistent ring buffer of the last boot, saved to a folder that `convert` reads.
//!
//! `last_boot_info`, the counters and the ring buffers are saved first: enabling an event or writing a setting clears them on
//! 6.15 and later (`update_last_data`, kernel/trace/trace.c), and reading a ring buffer empties it. All conditions that can be checked
//! are checked before. The sidecar's files and the symbols follow.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use kmt_common::text::{count, grouped};
use kmt_common::{shell, tell};
use kmt_format::kernel::{ByteOrder, CpuStats, HeaderPage, SubBuffer, SubBufferItem};

use super::arm::{self, ArmOptions};
use super::instance::{Persistent, entries};
use super::last_boot::LastBoot;
use super::rebase::{Rebase, Refusal, rebase};
use super::saving::Saving;
use super::sidecar::Sidecar;
use super::system::System;
use super::{NOT_KEPT, is_of_earlier_boot, log, read_sidecar, sidecar_path};
use crate::failure::{Failure, Outcome, Result};
use crate::record::Ring;
use crate::tracefs::{self, TraceDir, Undo};

/// Free space on the disk that symbols and formats need beside the ring buffers.
const ROOM: u64 = 32 << 20;

/// Buffer to save, and the new folder.
#[derive(Debug, Clone, Default)]
pub struct SaveOptions {
    /// New folder.
    pub folder: PathBuf,
    /// Name of the instance, if there are several.
    pub instance: Option<String>,
    /// The sidecar; `None`: the default one.
    pub sidecar: Option<PathBuf>,
    /// True if the boot before is known to have run the running kernel.
    pub is_same_kernel: bool,
    /// Mount point of tracefs.
    pub tracefs: Option<PathBuf>,
    /// True if only problems are reported.
    pub quiet: bool,
}

/// A saved buffer.
#[derive(Debug)]
pub struct Saved {
    /// Events in it.
    pub events: u64,
    /// True if the kernel counted more events than came back.
    pub is_short: bool,
}

/// A buffer of the last boot that can be saved.
#[derive(Debug)]
pub(super) struct Ready {
    persistent: Persistent,
    dir: TraceDir,
    top: TraceDir,
    last_boot_info: String,
    sidecar: Option<Sidecar>,
    symbols: std::result::Result<Rebase, String>,
    // A mount of tracefs, undone at the end.
    _undo: Undo,
}

/// State of the buffer.
pub(super) enum Found {
    /// Events of the last boot.
    Events(Box<Ready>),
    /// None, for this reason.
    Nothing(Failure),
    /// None: it was armed in this boot.
    Armed(Failure),
    /// None: it was armed in an earlier boot, and its memory was not kept. `arm` warns of it.
    NotKept(Failure),
}

/// Saves the buffer of the last boot.
pub fn save(options: &SaveOptions, system: &System) -> Result<Saved> {
    match look(options, system)? {
        Found::Events(ready) => ready.save(options, system),
        Found::Nothing(failure) | Found::Armed(failure) | Found::NotKept(failure) => Err(failure),
    }
}

/// `collect --save`: saves the buffer, and arms again on request.
pub(super) fn save_only(
    options: &SaveOptions,
    again: Option<&ArmOptions>,
    system: &System,
) -> Result<Outcome> {
    let ready = match (look(options, system)?, again) {
        (Found::Events(ready), _) => ready,
        (Found::Nothing(reason), Some(again)) => return arm_instead(&reason, again, system),
        (Found::NotKept(_), Some(again)) => return arm::arm(again, system),
        (Found::Armed(reason), Some(_)) => return Ok(nothing(&reason, options.quiet)),
        (Found::Nothing(failure) | Found::Armed(failure) | Found::NotKept(failure), None) => {
            return Err(failure);
        }
    };
    let saved = ready.save(options, system)?;
    if !options.quiet {
        let folder = shell::path(&options.folder);
        tell!(
            "{} saved in {folder}; `kmt-capture convert {folder} -o crash.kmt`",
            count(saved.events, "event")
        );
    }
    ready.finish(options)?;
    drop(ready);
    if let Some(again) = again {
        arm::arm(again, system)?;
    }
    Ok(saved.outcome())
}

/// Arms, as there is nothing to collect.
pub(super) fn arm_instead(reason: &Failure, again: &ArmOptions, system: &System) -> Result<Outcome> {
    nothing(reason, again.quiet);
    arm::arm(again, system)
}

/// Reports that there is nothing to collect, where that is not a failure.
pub(super) fn nothing(reason: &Failure, is_quiet: bool) -> Outcome {
    if !is_quiet {
        tell!("nothing to collect: {}", reason.what());
    }
    Outcome::Done
}

impl Saved {
    /// Outcome of the command.
    pub(super) fn outcome(&self) -> Outcome {
        if self.is_short { Outcome::Incomplete } else { Outcome::Done }
    }
}

/// Looks for events of the last boot, and changes nothing.
pub(super) fn look(options: &SaveOptions, system: &System) -> Result<Found> {
    tracefs::check_user(options.tracefs.as_deref())?;
    let mut undo = Undo::default();
    let top = tracefs::find(options.tracefs.as_deref(), &mut undo)?;
    let Some(persistent) = Persistent::find(&top, options.instance.as_deref())? else {
        return Err(Failure::new("this boot has no persistent ring buffer")
            .hint("`kmt-capture arm` prints the kernel parameters that make one"));
    };
    let dir = persistent.last_boot_dir().clone();
    let last_boot_info = dir.must_read("last_boot_info")?;
    let last = LastBoot::parse(&last_boot_info);
    let name = dir.path().display().to_string();
    let nothing = |what: &str| {
        let failure = Failure::new(format!("{name} {what}"));
        failure.hint(
            "a boot that follows `kmt-capture arm` and a crash or reset finds events; power loss clears them",
        )
    };
    let path = sidecar_path(options.sidecar.as_deref());
    if entries(&dir) == 0 {
        return Ok(match is_of_earlier_boot(&path, system) {
            true => Found::NotKept(nothing(NOT_KEPT)),
            false => Found::Nothing(nothing("has no events")),
        });
    }
    if last == LastBoot::Current {
        return Ok(Found::Nothing(nothing("has only events of this boot")));
    }
    let sidecar = sidecar(&path, &persistent, options)?;
    let boot_id = system.boot_id();
    if sidecar.as_ref().is_some_and(|sidecar| sidecar.boot_id == boot_id && !boot_id.is_empty()) {
        let failure = nothing("was armed in this boot: its events are of this boot");
        return Ok(Found::Armed(failure.hint("`kmt-capture collect` works in the boot after a crash")));
    }
    let (sidecar, symbols) = symbols(sidecar, &last, options, system)?;
    Ok(Found::Events(Box::new(Ready { persistent, dir, top, last_boot_info, sidecar, symbols, _undo: undo })))
}

/// The sidecar of this buffer; `None` where the user says that it is not needed.
fn sidecar(path: &Path, persistent: &Persistent, options: &SaveOptions) -> Result<Option<Sidecar>> {
    let found = match read_sidecar(path) {
        Ok(Some(sidecar)) if sidecar.instance == persistent.name => Some(sidecar),
        Ok(Some(sidecar)) if !options.is_same_kernel => {
            return Err(Failure::new(format!(
                "{} is of the instance {:?}, not of {:?}",
                path.display(),
                sidecar.instance,
                persistent.name
            ))
            .hint("give the file that `kmt-capture arm` wrote with --sidecar"));
        }
        Err(failure) if !options.is_same_kernel => return Err(failure),
        Ok(None) if !options.is_same_kernel => {
            return Err(Failure::new(format!(
                "{} does not exist: kernel, formats and addresses of the boot before are unknown",
                path.display()
            ))
            .hint("give the file that `kmt-capture arm` wrote with --sidecar; if that boot ran the kernel that runs now, --same-kernel does without it"));
        }
        Ok(_) | Err(_) => None,
    };
    Ok(found)
}

type Symbols = std::result::Result<Rebase, String>;

/// Symbols of the boot before, or the reason why there are none. A sidecar of another boot is not used.
fn symbols(
    sidecar: Option<Sidecar>,
    last: &LastBoot,
    options: &SaveOptions,
    system: &System,
) -> Result<(Option<Sidecar>, Symbols)> {
    let now = system.addresses();
    // 6.12 takes the delta from the last possible CPU, and forgets the address of an older boot only for CPUs that are online
    // (`rb_range_meta_init` and `ring_buffer_reset_online_cpus`, kernel/trace/ring_buffer.c).
    let is_stale = matches!(last, LastBoot::Moved(_)) && system.has_offline_cpus();
    let last = if is_stale { &LastBoot::Unknown } else { last };
    let armed = sidecar.as_ref().map(Sidecar::addresses);
    match rebase(last, armed.as_ref(), &now) {
        Ok(found) => Ok((sidecar, Ok(found))),
        Err(Refusal::Bare(reason)) => Ok((sidecar, Err(reason))),
        Err(Refusal::OtherBoot(_)) if options.is_same_kernel => {
            let found = rebase(last, None, &now).map_err(|refusal| match refusal {
                Refusal::Bare(reason) | Refusal::OtherBoot(reason) => reason,
            });
            Ok((None, found))
        }
        Err(Refusal::OtherBoot(reason)) => Err(Failure::new(reason).hint(
            "the sidecar does not describe these events; if that boot ran the kernel that runs now, --same-kernel does without it",
        )),
    }
}

impl Ready {
    /// Saves all of it to the folder.
    pub(super) fn save(&self, options: &SaveOptions, system: &System) -> Result<Saved> {
        let folder = Saving::new(&options.folder)?;
        let cpus = self.dir.cpus();
        self.check_room(&options.folder, &cpus)?;
        folder.write("last_boot_info", self.last_boot_info.as_bytes())?;
        let mut counted = Vec::new();
        for &cpu in &cpus {
            let stats = self.dir.read(&format!("per_cpu/cpu{cpu}/stats")).unwrap_or_default();
            // Counters of losses began again with this boot: the losses of that boot are unknown.
            folder.write(&format!("per_cpu/cpu{cpu}/stats.collected"), stats.as_bytes())?;
            counted.push(CpuStats::parse(&stats).and_then(|stats| stats.entries).unwrap_or(0));
            let name = format!("per_cpu/cpu{cpu}/buffer_size_kb");
            folder.write(&name, self.dir.read(&name).unwrap_or_default().as_bytes())?;
        }
        if self.persistent.dir == self.dir && self.persistent.is_on() {
            self.dir.write("tracing_on", "0")?;
        }
        let header = self.header_page()?;
        let mut notes = Vec::new();
        let (mut events, mut is_short) = (0u64, false);
        for (&cpu, counted) in cpus.iter().zip(counted) {
            let found = self.drain(&folder, cpu, &header)?;
            if found < counted {
                is_short = true;
                notes.push(format!(
                    "CPU {cpu}: {} of {} events could be read",
                    grouped(found),
                    grouped(counted)
                ));
            }
            events = events.saturating_add(found);
        }
        folder.sync()?;
        if is_short {
            notes.iter().for_each(|note| tell!("warning: {note}"));
        }
        self.facts(&folder, system, notes)?;
        folder.sync()?;
        Ok(Saved { events, is_short })
    }

    /// Fails where the disk has no room for the buffers: reading empties them.
    fn check_room(&self, folder: &Path, cpus: &[u32]) -> Result<()> {
        let size = |cpu: &u32| {
            let text = self.dir.read(&format!("per_cpu/cpu{cpu}/buffer_size_kb"))?;
            text.trim().parse::<u64>().ok()
        };
        let kb = cpus.iter().filter_map(size).fold(0, u64::saturating_add);
        let wanted = kb.saturating_mul(1024).saturating_add(ROOM);
        let free = rustix::fs::statvfs(folder).map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize));
        match free {
            Ok(free) if free < wanted => {
                let _ = fs::remove_dir(folder);
                Err(Failure::new(format!(
                    "{} has {} MiB free, and the ring buffers need up to {} MiB",
                    folder.display(),
                    free >> 20,
                    wanted >> 20
                ))
                .hint("free some space, or choose another file system; the events stay in the buffer until they are read"))
            }
            _ => Ok(()),
        }
    }

    fn header_page(&self) -> Result<HeaderPage> {
        const NAME: &str = "events/header_page";
        let text = self.dir.read(NAME).map_or_else(|| self.top.must_read(NAME), Ok)?;
        HeaderPage::parse(&text).map_err(|e| Failure::new(format!("{}: {e}", self.top.file(NAME).display())))
    }

    /// Reads the ring buffer of a CPU to its end; returns the number of its events.
    fn drain(&self, folder: &Saving, cpu: u32, layout: &HeaderPage) -> Result<u64> {
        let name = format!("per_cpu/cpu{cpu}/trace_pipe_raw");
        let mut out = folder.create(&name)?;
        let failed = |e: &std::io::Error| Failure::io("reading", &self.dir.file(&name), e);
        let mut ring = match Ring::open(&self.dir, cpu) {
            Ok(ring) => ring,
            // A CPU that never was there.
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NODEV.raw_os_error()) => {
                return Ok(0);
            }
            Err(error) => return Err(failed(&error)),
        };
        let mut buffer = vec![0; layout.sub_buffer_len()];
        let mut events = 0;
        while let Some(bytes) = ring.next(&mut buffer).map_err(|e| failed(&e))? {
            events += events_of(bytes, layout);
            out.write_all(bytes).map_err(|e| Failure::io("writing", &folder.path.join(&name), &e))?;
        }
        out.sync_all().map_err(|e| Failure::io("writing", &folder.path.join(&name), &e))?;
        Ok(events)
    }

    /// Saves the facts about the events: those of the sidecar, or of the running kernel, the symbols, the end.
    fn facts(&self, folder: &Saving, system: &System, mut notes: Vec<String>) -> Result<()> {
        let (mut modules, mut since_ns) = (None, 0);
        match &self.sidecar {
            Some(sidecar) => {
                since_ns = sidecar.armed_ns;
                for (name, bytes) in &sidecar.files {
                    match name.as_str() {
                        "modules" => modules = Some(bytes.clone()),
                        name => folder.write(name, bytes)?,
                    }
                }
            }
            None => {
                notes.push(
                    "no sidecar: formats and symbols are those of the kernel that collected".to_owned(),
                );
                arm::running_kernel(&self.top, &self.dir, system)
                    .iter()
                    .try_for_each(|(name, bytes)| folder.write(name, bytes))?;
            }
        }
        match &self.symbols {
            Ok(found) => {
                notes.extend(found.notes.iter().cloned());
                modules = Some(found.modules().into_bytes());
                kallsyms(system, found, folder)?;
            }
            Err(reason) => {
                tell!("warning: {reason}");
                notes.push(reason.clone());
            }
        }
        modules.map_or(Ok(()), |modules| folder.write("modules", &modules))?;
        let end = log::find(system, since_ns);
        folder.write("stopped_by", end.cause.as_bytes())?;
        if !end.text.is_empty() {
            folder.write("kmsg", &end.text)?;
        }
        notes.insert(
            0,
            format!("collected from the persistent ring buffer {} in a later boot", self.persistent.name),
        );
        folder.write("collected", (notes.join("\n") + "\n").as_bytes())
    }

    /// Once the events are safe: forgets the buffer that the kernel had copied, and the sidecar of the boot that ended.
    pub(super) fn finish(&self, options: &SaveOptions) -> Result<()> {
        let is_copy = self.persistent.dir != self.dir;
        if is_copy && !self.persistent.is_on() && entries(&self.persistent.dir) > 0 {
            self.persistent.clear()?;
        }
        let path = sidecar_path(options.sidecar.as_deref());
        match fs::remove_file(&path) {
            Err(error) if self.sidecar.is_some() => Err(Failure::io("removing", &path, &error)),
            _ => Ok(()),
        }
    }
}

/// Symbols of the boot before, line by line: all of them at once would be more memory than small targets have.
fn kallsyms(system: &System, found: &Rebase, folder: &Saving) -> Result<()> {
    let path = system.path("proc/kallsyms");
    let failed = |e: &std::io::Error| Failure::io("reading", &path, e);
    let text = BufReader::new(File::open(&path).map_err(|e| failed(&e))?);
    let mut out = BufWriter::new(folder.create("kallsyms")?);
    let mut moved = Vec::new();
    let not_written = |e: &std::io::Error| Failure::io("writing", &folder.path.join("kallsyms"), e);
    for line in text.split(b'\n') {
        moved.clear();
        found.line(&line.map_err(|e| failed(&e))?, &mut moved);
        out.write_all(&moved).map_err(|e| not_written(&e))?;
    }
    out.flush().map_err(|e| not_written(&e))
}

fn events_of(bytes: &[u8], layout: &HeaderPage) -> u64 {
    let Ok(sub_buffer) = SubBuffer::parse(bytes, layout, ByteOrder::NATIVE) else { return 0 };
    let items = sub_buffer.items().map_while(|item| item.ok());
    items.filter(|item| matches!(item, SubBufferItem::Event { .. })).count() as u64
}
