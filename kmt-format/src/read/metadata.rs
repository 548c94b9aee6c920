//! Reading the chunks that are not events.

use core::mem::offset_of;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use zerocopy::{ByteOrder as Order, FromBytes, Immutable, KnownLayout, Unaligned};

use super::body::Body;
use super::cast::{TableRows, array_at, head_len, struct_at};
use super::lines::LineIndex;
use super::since::Since;
use crate::Limits;
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::{ByteOrder, ClockUnit, CpuStats, KernelVersion, TraceClock, Uname};
use crate::limits::{Budget, within_at};
use crate::raw::{
    AttachmentHead, ClockHead, MetaHead, PairHead, StatsRow, TableHead, TaskRow, Trailer, attachment_flags,
};
use crate::tables::{CgroupRecord, SiteSums, SourceLine};

/// A file of the target, verbatim.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attachment<'d> {
    /// Name, such as `slabinfo.before`.
    pub name: Cow<'d, str>,
    /// Contents.
    pub contents: Cow<'d, [u8]>,
    /// Times before and after it was read, in the clock's unit; `None` if unknown.
    pub times: Option<(u64, u64)>,
}

impl<'d> Attachment<'d> {
    /// A file of that name.
    pub fn new(name: impl Into<Cow<'d, str>>, contents: impl Into<Cow<'d, [u8]>>) -> Self {
        Self { name: name.into(), contents: contents.into(), times: None }
    }
}

/// A task's name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskRecord<'d> {
    /// Since when, in the clock's unit; 0 if not known.
    pub time: u64,
    /// Thread id.
    pub pid: i32,
    /// Thread group id; 0 if not known.
    pub tgid: i32,
    /// Name.
    pub comm: Cow<'d, [u8]>,
}

/// Counts of the writer's input of one CPU; `None`: not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriterCounters {
    /// Events written.
    pub events: Option<u64>,
    /// Bytes of input.
    pub bytes: Option<u64>,
    /// Sub-buffers read.
    pub sub_buffers: Option<u64>,
    /// Sub-buffers that could not be decoded to their end.
    pub sub_buffers_damaged: Option<u64>,
    /// Discarded events and fillers passed over.
    pub discarded: Option<u64>,
}

/// The counters of one CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CpuCounters {
    /// The kernel's, before its buffer was drained.
    pub before: Option<CpuStats>,
    /// The kernel's, after.
    pub after: Option<CpuStats>,
    /// The writer's.
    pub writer: Option<WriterCounters>,
}

/// Fields of the trailer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TrailerInfo {
    /// Number of chunks in the file.
    pub chunk_count: u32,
    /// Length of the file in bytes.
    pub file_len: u64,
    /// Events in all event chunks.
    pub event_count: u64,
    /// Bytes of all event chunks.
    pub event_bytes: u64,
    /// Offset of the index; `None` if there is none.
    pub index_offset: Option<u64>,
}

/// Everything in a file except events, schema and symbols.
///
/// ```
/// use kmt_format::read::Trace;
/// # let file = kmt_format::example()?;
/// let trace = Trace::open(&file)?;
/// let metadata = trace.metadata();
/// assert_eq!(metadata.clock.as_ref().map(|clock| clock.name.as_str()), Some("mono"));
/// assert_eq!(metadata.value("kernel.release"), Some(&b"6.12.0"[..]));
/// assert_eq!(metadata.attachment("slabinfo.before"), None);
/// # Ok::<(), kmt_format::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metadata<'d> {
    /// The trace clock; `None` if unknown.
    pub clock: Option<TraceClock>,
    /// Keys and values, in the order of the file.
    pub pairs: Vec<(Cow<'d, str>, Cow<'d, [u8]>)>,
    /// Files of the target.
    pub attachments: Vec<Attachment<'d>>,
    /// Names of tasks.
    pub tasks: Vec<TaskRecord<'d>>,
    /// Functions and source lines of addresses, in the order of the file.
    pub lines: Vec<SourceLine<'d>>,
    /// Cgroups of tasks, in the order of the file.
    pub cgroups: Vec<CgroupRecord<'d>>,
    /// Totals by call site, in the order of the file.
    pub sums: Vec<SiteSums<'d>>,
    /// Counters by CPU.
    pub counters: BTreeMap<u32, CpuCounters>,
    /// The trailer; `None` in an unfinished file.
    pub trailer: Option<TrailerInfo>,
    /// Rows of `tasks` with a name, and with a thread group, by task and time.
    pub(super) comms: Since<i32>,
    pub(super) tgids: Since<i32>,
    /// Rows of `cgroups` by task, hierarchy and time.
    pub(super) in_cgroups: Since<(i32, u32)>,
    /// Rows of `lines` by address.
    pub(super) line_index: LineIndex,
}

impl<'d> Metadata<'d> {
    /// The value of that key.
    pub fn value(&self, key: &str) -> Option<&[u8]> {
        self.pairs.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_ref())
    }

    /// The value of that key as trimmed text; `None` also if it is not UTF-8.
    pub fn text(&self, key: &str) -> Option<&str> {
        core::str::from_utf8(self.value(key)?).ok().map(str::trim)
    }

    /// Version of the traced kernel; `None`: not in the file.
    pub fn kernel_version(&self) -> Option<KernelVersion> {
        let release = self.text("kernel.release").and_then(KernelVersion::parse);
        release.or_else(|| self.text("uname").and_then(Uname::parse)?.version())
    }

    /// log2 of the pages of a pageblock, as in /proc/pagetypeinfo (`Page block order: 9`); `None`: not in the file.
    pub fn pageblock_order(&self) -> Option<i64> {
        let names = ["pagetypeinfo.before", "pagetypeinfo.after", "pagetypeinfo"];
        let text = core::str::from_utf8(names.iter().find_map(|name| self.attachment(name))?).ok()?;
        text.lines().find_map(|line| line.strip_prefix("Page block order:"))?.trim().parse().ok()
    }

    /// The target's file of that name.
    pub fn attachment(&self, name: &str) -> Option<&[u8]> {
        self.attachments.iter().find(|a| a.name == name).map(|a| a.contents.as_ref())
    }

    pub(super) fn add_clock<O: Order + 'static>(&mut self, body: &[u8], base: u64) -> Result<()> {
        let head = struct_at::<ClockHead<O>>(body, 0, base)?;
        let start = head_len::<ClockHead<O>>(head.head_len.get(), body, base)?;
        let name = start.checked_add(head.name_len.get() as usize).and_then(|end| body.get(start..end));
        let name = name.and_then(|n| core::str::from_utf8(n).ok());
        let name = name.ok_or_else(|| malformed(base, "the clock's name is missing or not UTF-8"))?;
        let unit = match head.unit {
            0 => ClockUnit::Nanoseconds,
            // An unknown unit is treated as ticks.
            _ => ClockUnit::Ticks,
        };
        let clock = TraceClock { name: name.to_owned(), unit, comparable: head.comparable == 1 };
        if self.clock.as_ref().is_some_and(|other| *other != clock) {
            return Err(malformed(base, "two chunks have different clocks"));
        }
        self.clock = Some(clock);
        Ok(())
    }

    pub(super) fn add_pairs(
        &mut self,
        body: &Body<'d>,
        base: u64,
        order: ByteOrder,
        budget: &mut Budget,
    ) -> Result<()> {
        // The layout is the same in either byte order.
        struct_at::<MetaHead<zerocopy::LE>>(body, 0, base)?;
        let number = |at: usize| order.uint_at(body, at, 4).unwrap_or(0);
        let [stated, pair_len, pair_count] = [0, 4, 8].map(number);
        let mut at = head_len::<MetaHead<zerocopy::LE>>(stated as u32, body, base)?;
        if pair_len < PAIR_HEAD_LEN {
            return Err(malformed(base, "the head of a pair is shorter than its structure"));
        }
        let mut pairs = Vec::new();
        for _ in 0..pair_count {
            let pair = (|| {
                let key_len = order.uint_at(body, at, 4)?;
                let value_len = order.uint_at(body, at.checked_add(4)?, 4)?;
                let key_start = at.checked_add(pair_len as usize)?;
                let value_start = key_start.checked_add(key_len as usize)?;
                let end = value_start.checked_add(value_len as usize)?;
                let key = body.text_part(key_start, key_len)?;
                Some((key, body.part(value_start, value_len)?, end.checked_next_multiple_of(4)?))
            })();
            let (key, value, next) =
                pair.ok_or_else(|| malformed(base, "a key or value lies outside its chunk"))?;
            budget.take(PER_ENTRY, base)?;
            pairs.push((key, value));
            at = next;
        }
        self.pairs.extend(pairs);
        Ok(())
    }

    pub(super) fn add_file<O: Order + 'static>(
        &mut self,
        body: &Body<'d>,
        base: u64,
        budget: &mut Budget,
    ) -> Result<()> {
        let head = struct_at::<AttachmentHead<O>>(body, 0, base)?;
        let name_start = head_len::<AttachmentHead<O>>(head.head_len.get(), body, base)?;
        let name_len = head.name_len.get();
        let is_timed = head.flags.get() & attachment_flags::TIMED != 0;
        let times = is_timed.then(|| (head.time_first.get(), head.time_last.get()));
        let file = (|| {
            let start = name_start.checked_add(name_len as usize)?.checked_next_multiple_of(8)?;
            let contents = body.part(start, head.contents_len.get())?;
            Some(Attachment { name: body.text_part(name_start, name_len.into())?, contents, times })
        })();
        let file = file.ok_or_else(|| malformed(base, "an attachment lies outside its chunk"))?;
        budget.take(PER_ENTRY, base)?;
        self.attachments.push(file);
        Ok(())
    }

    pub(super) fn add_tasks<O: Order + 'static>(
        &mut self,
        body: &Body<'d>,
        base: u64,
        budget: &mut Budget,
    ) -> Result<()> {
        let (rows, start, _) = rows::<O, TaskRow<O>>(body, base)?;
        let memory = rows.len().saturating_mul(PER_ENTRY);
        budget.take(memory, base)?;
        self.comms.clear();
        self.tgids.clear();
        for (number, row) in rows.iter().enumerate() {
            let len = row.comm.iter().position(|&b| b == 0).unwrap_or(row.comm.len());
            let comm_start = start
                .saturating_add(number.saturating_mul(rows.row_len()))
                .saturating_add(offset_of!(TaskRow<O>, comm));
            let comm = body.part(comm_start, len as u64).unwrap_or_default();
            let (pid, tgid) = (row.pid.get() as i32, row.tgid.get() as i32);
            self.tasks.push(TaskRecord { time: row.time.get(), pid, tgid, comm });
        }
        Ok(())
    }

    pub(super) fn add_stats<O: Order + 'static>(
        &mut self,
        body: &[u8],
        base: u64,
        limits: &Limits,
    ) -> Result<()> {
        let (rows, ..) = rows::<O, StatsRow<O>>(body, base)?;
        let mut cpus: BTreeSet<u32> = self.counters.keys().copied().collect();
        // A later minor version may count more: other rows are passed over.
        let supported = || rows.iter().filter(|row| row.taken.get() <= 2);
        for row in supported() {
            cpus.insert(row.cpu.get());
            within_at(base, "streams", "the number of CPUs", cpus.len() as u64, limits.streams.into())?;
        }
        for row in supported() {
            let present = row.present.get();
            let number = |bit: u32, value: u64| (present & 1 << bit != 0).then_some(value);
            let counters = self.counters.entry(row.cpu.get()).or_default();
            let kernel = CpuStats {
                entries: number(0, row.entries.get()),
                overrun: number(1, row.overrun.get()),
                commit_overrun: number(2, row.commit_overrun.get()),
                bytes: number(3, row.bytes.get()),
                dropped: number(4, row.dropped.get()),
                read: number(5, row.read.get()),
                oldest_time: number(6, row.oldest_time.get()),
                now_time: number(7, row.now_time.get()),
            };
            match row.taken.get() {
                0 => counters.before = Some(kernel),
                1 => counters.after = Some(kernel),
                _ => {
                    counters.writer = Some(WriterCounters {
                        events: number(0, row.entries.get()),
                        bytes: number(3, row.bytes.get()),
                        sub_buffers: number(8, row.sub_buffers.get()),
                        sub_buffers_damaged: number(9, row.sub_buffers_damaged.get()),
                        discarded: number(10, row.discarded.get()),
                    });
                }
            }
        }
        Ok(())
    }

    pub(super) fn add_trailer<O: Order + 'static>(&mut self, body: &[u8], base: u64) -> Result<()> {
        let trailer = struct_at::<Trailer<O>>(body, 0, base)?;
        head_len::<Trailer<O>>(trailer.head_len.get(), body, base)?;
        self.trailer = Some(TrailerInfo {
            chunk_count: trailer.chunk_count.get(),
            file_len: trailer.file_len.get(),
            event_count: trailer.event_count.get(),
            event_bytes: trailer.event_bytes.get(),
            index_offset: Some(trailer.index_offset.get()).filter(|&o| o != 0),
        });
        Ok(())
    }
}

/// The rows of a chunk that is a table, where they start, and the length of the heap after them.
pub(super) fn rows<O: Order, T>(body: &[u8], base: u64) -> Result<(TableRows<'_, T>, usize, usize)>
where
    T: FromBytes + KnownLayout + Immutable + Unaligned + 'static,
{
    let head = struct_at::<TableHead<O>>(body, 0, base)?;
    let start = head_len::<TableHead<O>>(head.head_len.get(), body, base)?;
    let (count, row_len) = (head.row_count.get() as usize, head.row_len.get() as usize);
    let (rows, heap_len) = (TableRows::at(body, start, count, row_len, base)?, head.heap_len.get() as usize);
    array_at::<u8>(body, start.saturating_add(rows.len_bytes()), heap_len, base)?;
    Ok((rows, start, heap_len))
}

const PAIR_HEAD_LEN: u64 = size_of::<PairHead<zerocopy::LE>>() as u64;

/// Minimum memory of an entry, in bytes: in a list here, and in structures that users make of it.
pub(super) const PER_ENTRY: usize = 64;

fn malformed(base: u64, what: &'static str) -> Error {
    Error::at(base, ErrorKind::Malformed(what))
}
