//! An opened trace with its losses, and what its metadata say of times, nodes and texts.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use kmt_format::kernel::{ClockUnit, KernelVersion};
use kmt_format::print::PrintEnv;
use kmt_format::read::{Header, Metadata, SymbolTable, Trace};

use crate::limits;
use crate::trace::kernel::version;
use crate::trace::losses::Losses;

/// An opened trace.
pub struct Session<'d> {
    /// File.
    pub path: PathBuf,
    /// Its contents.
    pub trace: &'d Trace<'d>,
    /// What was lost.
    pub losses: Losses,
}

impl<'d> Session<'d> {
    /// For a trace opened from `path`.
    pub fn new(path: &Path, trace: &'d Trace<'d>) -> Self {
        Self { path: path.to_owned(), trace, losses: Losses::of(trace) }
    }

    /// Version of the traced kernel.
    pub fn version(&self) -> Option<KernelVersion> {
        version(self.trace.metadata())
    }

    /// Events of which only some were recorded: name, samples, events that they stand for. From perf, with -F or -c.
    pub fn sampled(&self) -> Vec<(&'d str, u64, u64)> {
        let text = self.trace.metadata().text("perf/sampled").unwrap_or_default();
        let row = |line: &'d str| {
            let mut words = line.split(' ');
            Some((words.next()?, words.next()?.parse().ok()?, words.next()?.parse().ok()?))
        };
        text.lines().filter_map(row).collect()
    }

    /// Why addresses tell nothing of places in memory, if so: a text may hold hashes of them.
    pub fn no_addresses(&self) -> Option<&'static str> {
        let is_hashed = self.trace.metadata().text("pointers") == Some("hashed");
        is_hashed.then_some("the trace was made of text whose pointers are hashes of addresses")
    }

    /// The clock's unit.
    pub fn unit(&self) -> ClockUnit {
        self.trace.metadata().clock.as_ref().map_or(ClockUnit::Nanoseconds, |c| c.unit)
    }

    /// Time of the first event.
    pub fn first_time(&self) -> Option<u64> {
        let infos = self.trace.streams().values().flat_map(|s| &s.chunks).map(|(_, info)| info);
        infos.filter(|i| i.event_count > 0).map(|i| i.t_first).min()
    }

    /// The time of day of a time of the trace's clock, in nanoseconds since 1970: a recording tells some pairs, of which
    /// the nearest counts. `None` if it does not, or for clocks that do not count nanoseconds.
    pub fn time_of_day(&self, time: u64) -> Option<i64> {
        if self.unit() != ClockUnit::Nanoseconds {
            return None;
        }
        let pairs = self.trace.metadata().pairs.iter().filter(|(key, _)| *key == "clock.pair");
        let pairs = pairs.filter_map(|(_, value)| {
            let mut numbers = std::str::from_utf8(value).ok()?.split(' ').map(|n| n.parse::<i64>().ok());
            Some((numbers.next()??, numbers.next()??))
        });
        let time = i64::try_from(time).ok()?;
        let (trace, day) = pairs.min_by_key(|(trace, _)| trace.abs_diff(time))?;
        day.checked_add(time.checked_sub(trace)?)
    }

    /// Time of the last event.
    pub fn last_time(&self) -> Option<u64> {
        let infos = self.trace.streams().values().flat_map(|s| &s.chunks).map(|(_, info)| info);
        infos.filter(|i| i.event_count > 0).map(|i| i.t_last).max()
    }

    /// log2 of the pages of a pageblock, and whether that is only assumed: /proc/pagetypeinfo tells it, and most
    /// kernels have the size of a huge page, 9 with pages of 4 KiB.
    pub fn pageblock_order(&self) -> (u32, bool) {
        let known = pageblock_order(self.trace.metadata()).and_then(|o| u32::try_from(o).ok());
        known.filter(|&o| o < 32).map_or((9, true), |order| (order, false))
    }

    /// The node of each CPU; `None` if the file does not tell.
    pub fn cpu_nodes(&self) -> Option<BTreeMap<u32, u32>> {
        let mut out = BTreeMap::new();
        for (key, value) in &self.trace.metadata().pairs {
            let number = key.strip_prefix("node").and_then(|k| k.strip_suffix(".cpus"));
            let Some(node) = number.and_then(|n| n.parse().ok()) else { continue };
            let list = std::str::from_utf8(value).unwrap_or_default();
            out.extend(cpu_list(list).into_iter().map(|cpu| (cpu, node)));
        }
        (!out.is_empty()).then_some(out)
    }

    /// What the texts of events refer to.
    pub fn print_env(&self) -> PrintEnv<'d> {
        print_env(self.trace.header(), self.trace.metadata(), self.trace.symbols())
    }
}

/// What the texts of events refer to.
pub fn print_env<'d>(
    header: &Header,
    metadata: &'d Metadata<'d>,
    symbols: Option<&'d SymbolTable<'d>>,
) -> PrintEnv<'d> {
    let options = metadata.text("tracefs/trace_options").unwrap_or_default();
    let option = |name| options.split_ascii_whitespace().any(|o| o == name);
    let env = PrintEnv::new(header.order, header.long_size)
        .with_limits(limits::of_print_fmts())
        .with_symbols(symbols)
        .with_printk_formats(metadata.attachment("printk_formats").unwrap_or_default())
        .with_version(version(metadata))
        .with_symbol_options(option("sym-offset"), option("sym-addr"));
    match pageblock_order(metadata) {
        Some(order) => env.with_constant("pageblock_order", order),
        None => env,
    }
}

/// A list as the kernel prints it: `0-3,8`. Numbers above those of any kernel (NR_CPUS is 8,192 at most) are left out.
fn cpu_list(text: &str) -> Vec<u32> {
    const CPUS_MAX: u32 = 1 << 16;
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse().ok()?..=last.trim().parse::<u32>().ok()?.min(CPUS_MAX))
    };
    text.split(',').filter_map(range).flatten().collect()
}

/// The kernel prints its pageblock order in /proc/pagetypeinfo: `Page block order: 9`.
fn pageblock_order(metadata: &Metadata<'_>) -> Option<i64> {
    let names = ["pagetypeinfo.before", "pagetypeinfo.after", "pagetypeinfo"];
    let text = names.iter().find_map(|n| metadata.attachment(n))?;
    let text = std::str::from_utf8(text).ok()?;
    text.lines().find_map(|l| l.strip_prefix("Page block order:"))?.trim().parse().ok()
}

/// The names of tasks, the latest each.
pub fn task_names<'s>(session: &'s Session<'_>) -> HashMap<i32, &'s [u8]> {
    let mut names = HashMap::new();
    for task in &session.trace.metadata().tasks {
        names.insert(task.pid, task.comm.as_ref());
    }
    names.entry(0).or_insert(b"<idle>");
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus() {
        assert_eq!(cpu_list("0-2,8\n"), [0, 1, 2, 8]);
        assert!(cpu_list("").is_empty() && cpu_list("x-3").is_empty());
        assert!(cpu_list("0-4294967295").len() < 70_000);
    }
}
