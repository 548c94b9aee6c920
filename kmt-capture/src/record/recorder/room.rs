//! How long the file may become: --max-size, and the room that its output has.

use std::fs::File;

use kmt_format::write::Writer;

use super::Recorder;
use crate::failure::Result;
use crate::record::RecordOptions;
use crate::record::console;
use crate::record::snapshot::meminfo;

/// Magic numbers of file systems in memory (include/uapi/linux/magic.h).
const TMPFS: u32 = 0x0102_1994;
const RAMFS: u32 = 0x8584_58f6;
/// Space that stays free on the file system, in bytes.
const DISK_MARGIN: u64 = 256 << 10;
/// Memory that stays available where the file is in memory: an eighth, within these bounds. A system that has
/// less kills tasks.
const MEMORY_MARGIN: (u64, u64) = (4 << 20, 256 << 20);
/// Bytes at the end of a file besides snapshots: names, symbols, counters, keys, and rows of the index for all of them.
const END_LEN: u64 = 24 << 10;

/// Bytes at the begin of a file besides snapshots: formats of events, keys, names, modules.
const BEGIN_LEN: u64 = 512 << 10;

/// Length of the state of /sys/kernel/slab in the file, at most about.
pub(super) const SLAB_STATE_LEN: u64 = 128 << 10;

/// From this number of bytes before the end on buffers are emptied in small turns.
const NEAR: u64 = 4 << 20;

/// Reasons to end a recording when the file gets too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bound {
    /// --max-size.
    Asked,
    /// The file system is full.
    Disk,
    /// The file system is in memory, and memory runs out.
    Memory,
}

/// Limit of the length of the file.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// The file that is written, if it is a regular one.
    file: Option<File>,
    /// Bytes that are kept for the end of the file.
    pub end_len: u64,
    /// Bytes of these for symbols whose addresses are known, and not yet their names.
    pub symbols_len: u64,
    asked: Option<u64>,
    /// Length of the file at which there is no more room, as it was looked at last.
    bound: Option<(u64, Bound)>,
    /// The bound that was reached.
    pub reached: Option<Bound>,
}

impl Room {
    /// For a file that may have this number of bytes.
    pub fn new(file: Option<File>, asked: Option<u64>) -> Self {
        let file = file.filter(|file| file.metadata().is_ok_and(|metadata| metadata.is_file()));
        Self { file, end_len: END_LEN, symbols_len: 0, asked, bound: None, reached: None }
    }

    /// Takes the next file of the recording, which keeps the same room at its end.
    pub fn next_file(&mut self, file: Option<File>) {
        let end_len = self.end_len;
        *self = Self { end_len, ..Self::new(file, self.asked) };
    }

    /// Bytes that the next file has before its first event, at most about, and what this one has besides.
    pub fn next_len(&self) -> u64 {
        BEGIN_LEN.saturating_add(SLAB_STATE_LEN).saturating_add(self.end_len)
    }

    /// Keeps room for snapshots at the end that are as long as those at the begin.
    pub fn keep_for_end(&mut self, snapshots_len: u64) {
        self.end_len = self.end_len.saturating_add(snapshots_len);
    }

    /// Looks at the room that the output has. `len` is the length of the file so far.
    pub fn update(&mut self, len: u64) {
        let found = self.file.as_ref().and_then(room);
        let found = found.map(|(bytes, bound)| (len.saturating_add(bytes), bound));
        let asked = self.asked.map(|bytes| (bytes, Bound::Asked));
        self.bound = found.into_iter().chain(asked).min_by_key(|&(bytes, _)| bytes);
    }

    /// Length of the file if it ended now.
    fn end(&self, writer: &mut Writer) -> u64 {
        writer.finished_len().saturating_add(self.end_len).saturating_add(self.symbols_len)
    }

    /// True if the file must end within the next megabytes.
    pub fn is_near(&self, writer: &mut Writer) -> bool {
        let end = self.end(writer).saturating_add(NEAR);
        self.bound.is_some_and(|(bytes, _)| end >= bytes)
    }

    /// True if the file must end now.
    pub fn is_used_up(&mut self, writer: &mut Writer) -> bool {
        let Some((bytes, bound)) = self.bound else { return false };
        if self.reached.is_none() && self.end(writer) >= bytes {
            self.reached = Some(bound);
        }
        self.reached.is_some()
    }

    /// True if `len` bytes have room in front of the end and what belongs there.
    pub fn has_room_before_end(&self, writer: &mut Writer, len: u64) -> bool {
        self.bound.is_none_or(|(bytes, _)| self.end(writer).saturating_add(len) < bytes)
    }

    /// True if `len` bytes still have room at the end.
    pub fn has_room_for(&self, writer: &mut Writer, len: u64) -> bool {
        self.bound.is_none_or(|(bytes, _)| writer.finished_len().saturating_add(len) < bytes)
    }
}

/// Bytes that can still be written to the file system of `file`.
pub(crate) fn room(file: &File) -> Option<(u64, Bound)> {
    let found = rustix::fs::fstatvfs(file).ok()?;
    let disk = found.f_bavail.saturating_mul(found.f_frsize).saturating_sub(DISK_MARGIN);
    let kind = rustix::fs::fstatfs(file).ok()?.f_type as u32;
    if kind != TMPFS && kind != RAMFS {
        return Some((disk, Bound::Disk));
    }
    let memory = from_memory(meminfo("MemAvailable")?, meminfo("MemTotal")?);
    // A ramfs has no size.
    let disk = if found.f_blocks == 0 { u64::MAX } else { disk };
    Some(if memory < disk { (memory, Bound::Memory) } else { (disk, Bound::Disk) })
}

fn from_memory(available: u64, total: u64) -> u64 {
    available.saturating_sub((total / 8).clamp(MEMORY_MARGIN.0, MEMORY_MARGIN.1))
}

impl Recorder {
    /// Ends reading of buffers that the file has no room for: what is left in them is counted as lost there.
    pub(super) fn leave_the_rest(&mut self) -> Result<u64> {
        self.read_counters()?;
        let mut rest = 0;
        for cpu in &self.cpus {
            let counted = cpu.counters.sums.and_then(|counters| counters.entries).unwrap_or(0);
            if counted > 0 {
                let loss = kmt_format::Loss::counted(counted);
                self.file.add_loss(cpu.number(), loss)?;
                rest += counted;
            }
        }
        Ok(rest)
    }
}

/// Why a recording ended that a bound has ended, and what of it is not in the file.
pub(in crate::record) fn reason(bound: Bound, left: u64, options: &RecordOptions) -> String {
    let max = options.max_size.map_or_else(String::new, console::bytes);
    let why = match bound {
        Bound::Asked => format!("stopped at --max-size {max}"),
        Bound::Disk => "stopped: the file system of the output is full".to_owned(),
        Bound::Memory => {
            "stopped: the output is in memory (tmpfs), and little memory is available".to_owned()
        }
    };
    let rest = match left {
        0 => String::new(),
        1 => "; 1 event that was still in a ring buffer is lost".to_owned(),
        _ => format!("; {left} events that were still in the ring buffers are lost"),
    };
    format!("{why}{rest}")
}

/// True if a folder is in memory.
pub(in crate::record) fn is_in_memory(folder: &std::path::Path) -> bool {
    rustix::fs::statfs(folder).is_ok_and(|found| [TMPFS, RAMFS].contains(&(found.f_type as u32)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_left_for_others() {
        assert_eq!(from_memory(20 << 20, 49 << 20), (20 << 20) - (49 << 20) / 8, "a small board");
        assert_eq!(from_memory(5 << 20, 16 << 20), 1 << 20);
        assert_eq!(from_memory(1 << 20, 16 << 20), 0);
        assert_eq!(from_memory(1 << 30, 64 << 30), (1 << 30) - (256 << 20));
    }
}
