//! Rows of the small chunks, as bytes. Spec sections "CLOK", "TASK" and "STAT".

use zerocopy::IntoBytes;

use super::types::{Task, WriterStats};
use crate::kernel::{ByteOrder, ClockUnit, CpuStats, TraceClock};
use crate::raw::{AttachmentHead, ClockHead, StatsRow, TableHead, TaskRow, attachment_flags, stats_present};

pub(super) fn clock_head<O: zerocopy::ByteOrder>(clock: &TraceClock) -> Vec<u8> {
    let head = ClockHead::<O> {
        head_len: (size_of::<ClockHead<O>>() as u32).into(),
        unit: if clock.unit == ClockUnit::Nanoseconds { 0 } else { 1 },
        comparable: clock.comparable.into(),
        reserved: [0; 2],
        name_len: (clock.name.len() as u32).into(),
    };
    head.as_bytes().to_vec()
}

/// Keys and values.
pub(crate) fn pairs_body(order: ByteOrder, pairs: &[(&str, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    // MetaHead: its length, that of the head of each pair, and their number.
    for number in [12, 8, pairs.len() as u64] {
        order.push(&mut body, number, 4);
    }
    for (key, value) in pairs {
        order.push(&mut body, key.len() as u64, 4);
        order.push(&mut body, value.len() as u64, 4);
        body.extend_from_slice(key.as_bytes());
        body.extend_from_slice(value);
        body.resize(body.len().next_multiple_of(4), 0);
    }
    body
}

/// A file of the target, read between these times.
pub(super) fn file_body<O: zerocopy::ByteOrder>(
    name: &str,
    contents: &[u8],
    times: Option<(u64, u64)>,
) -> Vec<u8> {
    let (time_first, time_last) = times.unwrap_or_default();
    let head = AttachmentHead::<O> {
        head_len: (size_of::<AttachmentHead<O>>() as u32).into(),
        name_len: (name.len() as u32).into(),
        contents_len: (contents.len() as u64).into(),
        time_first: time_first.into(),
        time_last: time_last.into(),
        flags: if times.is_some() { attachment_flags::TIMED } else { 0 }.into(),
        reserved: 0.into(),
    };
    let mut body = Vec::with_capacity(size_of::<AttachmentHead<O>>() + contents.len() + name.len() + 8);
    body.extend_from_slice(head.as_bytes());
    body.extend_from_slice(name.as_bytes());
    body.resize(body.len().next_multiple_of(8), 0);
    body.extend_from_slice(contents);
    body
}

/// Head of a table with this number of rows `R`, and a heap of `heap_len` bytes.
pub(super) fn table_head<O: zerocopy::ByteOrder, R>(rows: usize, heap_len: usize) -> Vec<u8> {
    let head = TableHead::<O> {
        head_len: (size_of::<TableHead<O>>() as u32).into(),
        row_len: (size_of::<R>() as u32).into(),
        row_count: (rows as u32).into(),
        heap_len: (heap_len as u32).into(),
    };
    head.as_bytes().to_vec()
}

/// Names of tasks as a table.
pub(super) fn tasks_body<O: zerocopy::ByteOrder>(tasks: &[Task]) -> Vec<u8> {
    let mut out = table_head::<O, TaskRow<O>>(tasks.len(), 0);
    tasks.iter().for_each(|task| out.extend(task_row::<O>(task)));
    out
}

/// The kernel's counters as a table.
pub(super) fn stats_body<O: zerocopy::ByteOrder>(taken: u32, stats: &[(u32, CpuStats)]) -> Vec<u8> {
    let mut out = table_head::<O, StatsRow<O>>(stats.len(), 0);
    stats.iter().for_each(|(cpu, stats)| out.extend(stats_row::<O>(*cpu, taken, stats)));
    out
}

/// The writer's counters as a table.
pub(super) fn writer_stats_body<O: zerocopy::ByteOrder>(stats: &[(u32, WriterStats)]) -> Vec<u8> {
    let mut out = table_head::<O, StatsRow<O>>(stats.len(), 0);
    stats.iter().for_each(|(cpu, stats)| out.extend(writer_stats_row::<O>(*cpu, stats)));
    out
}

fn task_row<O: zerocopy::ByteOrder>(task: &Task) -> Vec<u8> {
    let mut comm = [0; 16];
    for (to, from) in comm.iter_mut().zip(&task.comm) {
        *to = *from;
    }
    let (pid, tgid) = (task.pid as u32, task.tgid as u32);
    TaskRow::<O> { time: task.time.into(), pid: pid.into(), tgid: tgid.into(), comm }.as_bytes().to_vec()
}

fn stats_row<O: zerocopy::ByteOrder>(cpu: u32, taken: u32, stats: &CpuStats) -> Vec<u8> {
    let numbers = [
        stats.entries,
        stats.overrun,
        stats.commit_overrun,
        stats.bytes,
        stats.dropped,
        stats.read,
        stats.oldest_time,
        stats.now_time,
    ];
    let present =
        numbers.iter().enumerate().filter(|(_, n)| n.is_some()).fold(0u32, |bits, (i, _)| bits | 1 << i);
    let [entries, overrun, commit_overrun, bytes, dropped, read, oldest_time, now_time] =
        numbers.map(|n| n.unwrap_or(0).into());
    StatsRow::<O> {
        cpu: cpu.into(),
        taken: taken.into(),
        present: present.into(),
        reserved: 0.into(),
        entries,
        overrun,
        commit_overrun,
        bytes,
        dropped,
        read,
        oldest_time,
        now_time,
        sub_buffers: 0.into(),
        sub_buffers_damaged: 0.into(),
        discarded: 0.into(),
    }
    .as_bytes()
    .to_vec()
}

fn writer_stats_row<O: zerocopy::ByteOrder>(cpu: u32, stats: &WriterStats) -> Vec<u8> {
    use stats_present as p;
    let present = p::ENTRIES | p::BYTES | p::SUB_BUFFERS | p::SUB_BUFFERS_DAMAGED | p::DISCARDED;
    StatsRow::<O> {
        cpu: cpu.into(),
        taken: 2.into(),
        present: present.into(),
        reserved: 0.into(),
        entries: stats.events.into(),
        overrun: 0.into(),
        commit_overrun: 0.into(),
        bytes: stats.bytes.into(),
        dropped: 0.into(),
        read: 0.into(),
        oldest_time: 0.into(),
        now_time: 0.into(),
        sub_buffers: stats.sub_buffers.into(),
        sub_buffers_damaged: stats.sub_buffers_damaged.into(),
        discarded: stats.discarded.into(),
    }
    .as_bytes()
    .to_vec()
}
