//! The state of the machine when a wait ended, read before the ring buffer is: the files of /proc that each recording has at its
//! end, the pressure, the resident memory of each process, and the kernel log. Each is stored with the times of the trace clock
//! between which it was read, so that its age is known.

use std::fs;

use kmt_format::write::Writer;

use super::{KernelLog, cgroup};
use crate::record::snapshot;
use crate::record::tasks::numbered;

/// Bytes of the list of processes; each has about 30.
const PROCESSES_LEN: usize = 1 << 20;

/// A file as it was read.
#[derive(Debug)]
struct StateFile {
    name: String,
    contents: Vec<u8>,
    /// Times before and after it was read.
    times: Option<(u64, u64)>,
}

/// Files as they were read.
#[derive(Debug, Default)]
pub struct State {
    files: Vec<StateFile>,
}

impl State {
    /// Reads it; `now` reads the trace clock. What changes fastest is read first. `watched` is the cgroup of a condition, which
    /// counts if the log has no kill in another one.
    pub fn read(now: impl Fn() -> Option<u64>, log: Option<&mut KernelLog>, watched: Option<&str>) -> Self {
        let mut state = Self::default();
        let mut before = now();
        let mut add = |name: String, contents: Option<Vec<u8>>| {
            let after = now();
            if let Some(contents) = contents.filter(|contents| !contents.is_empty()) {
                state.files.push(StateFile { name, contents, times: before.zip(after) });
            }
            before = after;
        };
        let after = |name: &str| format!("{name}.after");
        for name in ["meminfo", "vmstat", "zoneinfo", "buddyinfo", "slabinfo"] {
            add(after(name), snapshot::read(name));
        }
        add(after("pressure/memory"), fs::read("/proc/pressure/memory").ok());
        let log = log.map(KernelLog::text).unwrap_or_default();
        add("kmsg".to_owned(), Some(log.as_bytes().to_vec()));
        add(after("cgroup_memory"), cgroup::of_kill(&log).or(watched).and_then(cgroup::memory));
        add(after("processes"), Some(processes()));
        for name in ["pagetypeinfo", "vmallocinfo"] {
            add(after(name), snapshot::read(name));
        }
        state
    }

    /// Writes it into the file.
    pub fn write(self, writer: &mut Writer) -> kmt_format::Result<()> {
        let mut files = self.files.iter();
        files.try_for_each(|file| writer.add_file_at(&file.name, &file.contents, file.times))
    }
}

/// `PID RSS_KIB OOM_SCORE_ADJ NAME`, a line each, the largest first.
fn processes() -> Vec<u8> {
    let page_kib = (rustix::param::page_size() >> 10) as u64;
    let mut rows: Vec<(u64, String)> =
        numbered("/proc").into_iter().filter_map(|pid| row(pid, page_kib)).collect();
    rows.sort_by(|a, b| b.cmp(a));
    let mut out = Vec::new();
    for (_, line) in rows {
        if out.len() + line.len() > PROCESSES_LEN {
            break;
        }
        out.extend_from_slice(line.as_bytes());
    }
    out
}

/// The row of a process, with its resident memory in KiB. Threads of the kernel have none.
fn row(pid: i32, page_kib: u64) -> Option<(u64, String)> {
    let text = |name: &str| fs::read(format!("/proc/{pid}/{name}")).ok();
    let statm = String::from_utf8(text("statm")?).ok()?;
    let resident: u64 = statm.split(' ').nth(1)?.parse().ok()?;
    let kib = resident.saturating_mul(page_kib);
    if kib == 0 {
        return None;
    }
    let adjusted = text("oom_score_adj").unwrap_or_default();
    let adjusted = String::from_utf8_lossy(adjusted.trim_ascii()).into_owned();
    let adjusted = if adjusted.is_empty() { "?" } else { &adjusted };
    let comm = text("comm").unwrap_or_default();
    // A name may have any bytes but the end of the line.
    let comm = String::from_utf8_lossy(comm.trim_ascii_end()).replace('\n', "?");
    Some((kib, format!("{pid} {kib} {adjusted} {comm}\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_have_their_memory_the_largest_first() {
        let text = String::from_utf8_lossy(&processes()).into_owned();
        let kib: Vec<u64> =
            text.lines().map(|line| line.split(' ').nth(1).unwrap().parse().unwrap()).collect();
        assert!(kib.is_sorted_by(|a, b| a >= b), "{text}");
        let own = format!("{} ", std::process::id());
        assert!(text.lines().any(|line| line.starts_with(&own)), "{text}");
    }

    #[test]
    fn files_have_the_times_between_which_they_were_read() {
        let clock = std::cell::Cell::new(0);
        let now = || {
            clock.set(clock.get() + 10);
            Some(clock.get())
        };
        let state = State::read(now, None, None);
        let first = &state.files[0];
        assert_eq!((first.name.as_str(), first.times), ("meminfo.after", Some((10, 20))));
        assert!(first.contents.starts_with(b"MemTotal:"));
        assert!(state.files.iter().all(|file| file.times.is_some_and(|(from, to)| to == from + 10)));
        assert!(state.files.iter().any(|file| file.name == "processes.after"));
    }
}
