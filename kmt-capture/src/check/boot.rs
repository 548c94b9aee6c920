//! `check --boot`: kernel parameters that record from boot on, for the running kernel.
//!
//! What kernels have, as tried: `trace_event=`, `trace_buf_size=` and `trace_clock=` on 5.10 to 7.2, from time 0 on.
//! `trace_instance=` since 6.3; earlier ones ignore it. It gets the size of `trace_buf_size=`, and the clock `local`, whatever
//! `trace_clock=` has. Buffers in reserved memory since 6.12, a backup of the last boot's since 7.0.

use std::fs;
use std::path::Path;

use kmt_common::text::{count, grouped};
use kmt_format::kernel::{CpuStats, KernelVersion};

use crate::failure::{Failure, Outcome, Result};
use crate::output::print;
use crate::record::meminfo;
use crate::tracefs::{self, Event, EventSpec, TraceDir, Undo, find_events};

/// Events that are recorded, as far as the kernel has them: those of `record`, and those that name tasks.
const EVENTS: [&str; 4] = ["kmem:*", "task:task_newtask", "task:task_rename", "sched:sched_process_exit"];
/// Buffer of each CPU where nothing was measured: with 8 MiB nothing was lost in guests with a small user space, whose boots had
/// 81,631 events (5.10), 135,192 (6.1) and 162,544 (7.2).
const SIZE_DEFAULT: u64 = 8 << 20;
/// Buffer of each CPU that is proposed at least.
const SIZE_MIN: u64 = 64 << 10;
/// Share of the memory for all buffers together, where nothing was measured.
const SHARE: u64 = 8;
/// The same for what a measured boot needed. A board with 64 MiB (armv7, 45 MiB for the system) and two CPUs needed 18 %.
const SHARE_MEASURED: u64 = 4;
/// What reserved memory has before the list of a CPU's sub-buffers, at most (`struct ring_buffer_meta`, 56 bytes on 6.12), and the
/// room that its end is kept from the end of a page.
const META_LEN: u64 = 128;
/// Bytes of an event in the ring buffer, about, where the kernel does not count bytes.
const EVENT_LEN: u64 = 48;

/// Facts of the machine that the parameters depend on.
#[derive(Debug, Clone)]
struct Machine {
    /// Release of the kernel, as `uname -r` prints it.
    release: String,
    version: KernelVersion,
    /// CPUs that are there.
    cpus: u64,
    /// CPUs for which the kernel has prepared; each gets a share of reserved memory.
    possible: u64,
    /// Bytes; `None` if unknown.
    memory: Option<u64>,
    events: Vec<Event>,
    /// Buffer of this boot, if it was recorded from its start on.
    measured: Option<Measured>,
}

/// Events of a boot that was recorded from its start on, until now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Measured {
    events: u64,
    /// Bytes of the CPU with the most events.
    bytes: u64,
    /// Seconds since boot.
    seconds: u64,
}

/// Prints the parameters.
pub fn boot(given: Option<&Path>) -> Result<Outcome> {
    tracefs::check_user(given)?;
    let mut undo = Undo::default();
    let top = tracefs::find(given, &mut undo)?;
    let text = Machine::here(&top).text();
    drop(undo);
    print(text.as_bytes())
}

/// Kernel parameters that make a persistent ring buffer. Fails for a kernel that cannot have one.
pub fn persistent_parameters(top: &TraceDir) -> Result<String> {
    Machine::here(top).persistent()
}

/// Size of the reserved memory of a persistent ring buffer, as a kernel parameter.
pub fn persistent_size(top: &TraceDir) -> String {
    size_text(Machine::here(top).reserved())
}

impl Machine {
    fn here(top: &TraceDir) -> Self {
        let release = rustix::system::uname().release().to_string_lossy().into_owned();
        let version = KernelVersion::parse(&release).unwrap_or(KernelVersion::new(5, 0));
        let specs = EVENTS.iter().filter_map(|name| EventSpec::parse(name).ok());
        let found = specs.flat_map(|spec| find_events(top, &spec));
        let events = found.filter(|event| *event != Event::new("kmem", "rss_stat")).collect();
        // Only the CPUs that are there have a buffer of that size.
        let online = top
            .cpus()
            .into_iter()
            .filter(|cpu| Path::new(&format!("/sys/devices/system/cpu/cpu{cpu}")).exists());
        let cpus = online.count().max(1) as u64;
        let possible = fs::read_to_string("/sys/devices/system/cpu/possible").ok();
        let possible = possible.and_then(|text| last_of_list(&text)).map_or(cpus, |last| cpus.max(last + 1));
        Self {
            release,
            version,
            cpus,
            possible,
            memory: meminfo("MemTotal"),
            events,
            measured: measured(top),
        }
    }

    /// Size of each CPU's buffer in bytes: a power of two, at most a share of the memory.
    fn size(&self) -> u64 {
        let wanted = self.measured.map_or(SIZE_DEFAULT, |measured| (measured.bytes / 2).saturating_mul(3));
        let most = self.memory.map_or(u64::MAX, |memory| memory / self.share() / self.cpus);
        let wanted = wanted.max(SIZE_MIN).checked_next_power_of_two().unwrap_or(SIZE_DEFAULT);
        if wanted <= most { wanted } else { (most / 2 + 1).next_power_of_two().max(SIZE_MIN) }
    }

    fn share(&self) -> u64 {
        if self.measured.is_some() { SHARE_MEASURED } else { SHARE }
    }

    /// Size of the reserved memory for all CPUs in bytes, at which no kernel counts the sub-buffers wrongly (`is_miscounted` in
    /// crash/instance.rs): neither for the CPUs that are there, nor for all that are possible.
    fn reserved(&self) -> u64 {
        let page = rustix::param::page_size().max(4096) as u64;
        let wanted = self.size().saturating_mul(self.cpus);
        let sizes = (0..64).map(|more| wanted.saturating_add(more << 20));
        let is_counted =
            |size: &u64| [self.cpus, self.possible].iter().all(|cpus| counts_right(size / cpus, page));
        sizes.clone().find(is_counted).unwrap_or(wanted)
    }

    /// All parameters with what follows the boot.
    fn text(&self) -> String {
        let size = size_text(self.size());
        let names: Vec<String> = self.events.iter().map(ToString::to_string).collect();
        let events = names.join(",");
        let mut out = format!(
            "Kernel parameters that record from boot on, for {}:\n\n  trace_event={events} trace_buf_size={size} trace_clock=global\n\n",
            self.release
        );
        out.push_str(&self.reason());
        out.push_str(
            "\nAfter the boot, as early as possible:\n\n  kmt-capture record --adopt top -o boot.kmt\n",
        );
        if self.version >= KernelVersion::new(6, 3) {
            out.push_str(&format!(
                "\nOr in an instance, if other tools use the top level. Its clock is `local`: times of\ndifferent CPUs are not comparable on all machines.\n\n  trace_instance=boot,{events} trace_buf_size={size}\n  kmt-capture record --adopt boot -o boot.kmt\n"
            ));
        }
        if self.version >= KernelVersion::new(7, 0) {
            out.push_str(&format!(
                "\nTo have the events after a crash too: a buffer in reserved memory, and a copy of the\nlast boot's. Keep its clock: with another one 7.2 loses a CPU.\n\n  reserve_mem={}:4096:kmt trace_instance=boot_map@kmt,{events}\n  trace_instance=backup=boot_map\n",
                size_text(self.reserved())
            ));
        } else if self.version >= KernelVersion::new(6, 12) {
            out.push_str(
                "\nDo not enable events in a buffer in reserved memory (trace_instance=NAME@...) here: the\nnext boot appends its events to those of the last one. `convert` refuses these.\nThe events before a crash: `kmt-capture arm`.\n",
            );
        }
        out
    }

    /// Parameters of a buffer that `arm` uses. Tracing is off in it until then: else a boot would append its events to those of
    /// the last one.
    fn persistent(&self) -> Result<String> {
        if self.version < KernelVersion::new(6, 12) {
            return Err(Failure::new(format!("Linux {} has no ring buffers that survive a crash", self.release))
                .hint("they need Linux 6.12 or later; `kmt-capture record --ring --stop-when oom` keeps the events before an OOM kill"));
        }
        let size = size_text(self.reserved());
        let align = rustix::param::page_size().max(4096);
        let mut out = format!(
            "Kernel parameters for a ring buffer that survives a crash, for {}:\n\n  reserve_mem={size}:{align}:kmt trace_instance=boot_map^traceoff@kmt\n",
            self.release
        );
        if self.version >= KernelVersion::new(7, 0) {
            out.push_str("  trace_instance=backup=boot_map\n");
        }
        out.push_str(&format!(
            "\nThe memory is for all of {} and is reserved from boot on. The kernel restarts after a\npanic with panic=10; the memory must keep its content over the restart.\n",
            count(self.cpus, "CPU")
        ));
        Ok(out)
    }

    /// How the size was found.
    fn reason(&self) -> String {
        let (size, all) = (self.size(), self.size().saturating_mul(self.cpus));
        let memory = self.memory.map_or_else(String::new, |memory| format!(" of {}", mib(memory)));
        let mut out =
            format!("{} for each of {}: {}{memory}.\n", mib(size), count(self.cpus, "CPU"), mib(all));
        out.push_str(&match self.measured {
            Some(Measured { events, bytes, seconds }) => format!(
                "This boot has recorded {} in {seconds} s, at most {} on a CPU. The size is half\nas much again.\n",
                grouped(events) + " events",
                mib(bytes)
            ),
            None => "Nothing was measured: this is enough for a small system. After a boot with these\nparameters, run this again before anything reads the buffer: it prints the size that\nthe boot needed.\n".to_owned(),
        });
        let wanted = self.measured.map_or(0, |measured| (measured.bytes / 2).saturating_mul(3));
        if wanted > size {
            out.push_str(&format!(
                "That is more than 1/{} of the memory: events will be overwritten. Record fewer\nevents, or adopt the buffer earlier.\n",
                self.share()
            ));
        }
        out
    }
}

/// The last number of a list such as "0-3,8".
fn last_of_list(text: &str) -> Option<u64> {
    text.trim().rsplit([',', '-']).next()?.parse().ok().filter(|&last| last < 1 << 16)
}

/// Counters of the top level, if the kernel's parameters had events recorded from boot on, and nothing was read.
fn measured(top: &TraceDir) -> Option<Measured> {
    let parameters = fs::read_to_string("/proc/cmdline").ok()?;
    parameters.split_ascii_whitespace().find(|word| word.starts_with("trace_event="))?;
    let seconds = fs::read_to_string("/proc/uptime").ok()?;
    let seconds = seconds.split('.').next()?.parse().ok()?;
    let stats = |cpu: u32| CpuStats::parse(&top.read(&format!("per_cpu/cpu{cpu}/stats"))?);
    from_counters(&top.cpus().into_iter().filter_map(stats).collect::<Vec<_>>(), seconds)
}

fn from_counters(stats: &[CpuStats], seconds: u64) -> Option<Measured> {
    if stats.iter().any(|stats| stats.read.is_some_and(|read| read > 0)) {
        return None;
    }
    let lost = |stats: &CpuStats| stats.lost_events().unwrap_or(0);
    let events = |stats: &CpuStats| stats.entries.unwrap_or(0).saturating_add(lost(stats));
    // Events that were overwritten were as long as those that are there.
    let bytes = |stats: &CpuStats| {
        let entries = stats.entries.unwrap_or(0).max(1);
        let each = stats.bytes.map_or(EVENT_LEN, |bytes| bytes.div_ceil(entries));
        each.saturating_mul(events(stats))
    };
    let all = stats.iter().map(events).fold(0, u64::saturating_add);
    (all > 0).then(|| Measured { events: all, bytes: stats.iter().map(bytes).max().unwrap_or(0), seconds })
}

/// True if the list of sub-buffers of a CPU with that much memory ends well inside of a page: then a kernel that leaves the header
/// out finds the same page behind it.
fn counts_right(len: u64, page: u64) -> bool {
    let list = 4 * (len / (page + 4));
    (list < page || list % page >= META_LEN / 2) && list % page + META_LEN <= page
}

/// A size as kernel parameters accept it.
fn size_text(bytes: u64) -> String {
    if bytes >= 1 << 20 { format!("{}M", bytes >> 20) } else { format!("{}K", bytes >> 10) }
}

/// A size for the reader.
fn mib(bytes: u64) -> String {
    match bytes {
        0..0x10_0000 => format!("{} KiB", bytes.div_ceil(1 << 10)),
        0x4000_0000.. => format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)),
        _ => format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(release: &str) -> Machine {
        Machine {
            release: release.to_owned(),
            version: KernelVersion::parse(release).unwrap(),
            cpus: 4,
            possible: 4,
            memory: Some(8 << 30),
            events: vec![Event::new("kmem", "kmalloc"), Event::new("kmem", "kfree")],
            measured: None,
        }
    }

    #[test]
    fn a_buffer_that_survives_a_crash_needs_6_12() {
        let text = machine("6.12.107+deb13-amd64").persistent().unwrap();
        let page = rustix::param::page_size().max(4096);
        let line = format!("\n  reserve_mem=33M:{page}:kmt trace_instance=boot_map^traceoff@kmt\n");
        assert!(text.contains(&line) && !text.contains("backup"), "{text}");
        assert!(machine("7.2.13").persistent().unwrap().contains("\n  trace_instance=backup=boot_map\n"));
        let refused = machine("6.11.0").persistent().unwrap_err().to_string();
        assert!(refused.contains("Linux 6.11.0 has no ring buffers that survive a crash"), "{refused}");
    }

    #[test]
    fn reserved_memory_has_a_size_at_which_every_kernel_counts_right() {
        // 6.12.95 with 24 MiB for two CPUs loses a buffer that was read, and keeps it with 20 and with 17 MiB.
        assert!(!counts_right(12 << 20, 4096));
        assert!(counts_right(10 << 20, 4096) && counts_right((17 << 20) / 2, 4096));
        for cpus in 1..=128 {
            for possible in [cpus, 2 * cpus, 240] {
                let possible = possible.max(cpus);
                let machine = Machine { cpus, possible, ..machine("6.12.95") };
                let (size, wanted) = (machine.reserved(), machine.size() * cpus);
                let page = rustix::param::page_size().max(4096) as u64;
                assert!(
                    counts_right(size / cpus, page) && counts_right(size / possible, page),
                    "{cpus} {size}"
                );
                assert!(
                    size >= wanted && size <= wanted + wanted / 8 + (8 << 20),
                    "{cpus}: {size}, not {wanted}"
                );
            }
        }
        assert_eq!(
            (last_of_list("0-3,8\n"), last_of_list("0\n"), last_of_list("x")),
            (Some(8), Some(0), None)
        );
    }

    #[test]
    fn parameters_are_those_of_the_kernel() {
        for (release, has_instance, has_backup, warns) in [
            ("5.10.223", false, false, false),
            ("6.1.176", false, false, false),
            ("6.12.107", true, false, true),
            ("7.2.13", true, true, false),
        ] {
            let text = machine(release).text();
            let top = "  trace_event=kmem:kmalloc,kmem:kfree trace_buf_size=8M trace_clock=global\n";
            assert!(text.contains(top), "{text}");
            assert!(text.contains("\n  kmt-capture record --adopt top -o boot.kmt\n"), "{text}");
            assert_eq!(text.contains("trace_instance=boot,kmem:kmalloc"), has_instance, "{text}");
            assert_eq!(text.contains("trace_instance=backup=boot_map"), has_backup, "{text}");
            assert_eq!(text.contains("the\nnext boot appends"), warns, "{text}");
            assert!(text.contains("8.0 MiB for each of 4 CPUs: 32.0 MiB of 8.0 GiB."), "{text}");
        }
    }

    #[test]
    fn the_size_is_that_of_the_measured_boot_within_the_memory() {
        let stats = |entries: u64, overrun: u64, bytes: u64, read: u64| {
            CpuStats::parse(&format!(
                "entries: {entries}\noverrun: {overrun}\nbytes: {bytes}\ndropped events: 0\nread events: {read}\n"
            ))
            .unwrap()
        };
        let boot = [stats(1_000, 0, 40_000, 0), stats(200_000, 100_000, 8_000_000, 0)];
        let measured = from_counters(&boot, 12).unwrap();
        assert_eq!(measured, Measured { events: 301_000, bytes: 12_000_000, seconds: 12 });
        assert_eq!(from_counters(&[stats(5, 0, 200, 1)], 12), None, "something was read");
        assert_eq!(from_counters(&[stats(0, 0, 0, 0)], 12), None);
        let mut machine = Machine { measured: Some(measured), ..machine("6.1.0") };
        assert_eq!(machine.size(), 32 << 20, "18 MB");
        assert!(
            machine.text().contains("301,000 events in 12 s, at most 11.4 MiB on a CPU"),
            "{}",
            machine.text()
        );
        machine.memory = Some(64 << 20);
        assert_eq!(machine.size(), 4 << 20, "a quarter of 64 MiB for 4 CPUs");
        assert!(machine.text().contains("events will be overwritten"), "{}", machine.text());
        // A board with 64 MiB lost 15,401 events with an eighth, which is 2 MiB for each CPU.
        let measured = Measured { events: 84_116, bytes: 2_500_000, seconds: 13 };
        let board =
            Machine { cpus: 2, measured: Some(measured), memory: Some(46_236 << 10), ..machine.clone() };
        assert_eq!(board.size(), 4 << 20);
        assert_eq!(Machine { measured: None, ..board }.size(), 2 << 20, "nothing was measured: an eighth");
        machine.memory = Some(1 << 20);
        assert_eq!(machine.size(), SIZE_MIN);
    }
}
