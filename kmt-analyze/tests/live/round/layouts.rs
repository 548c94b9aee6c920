//! Layouts of texts, and what each does not have. Nothing else may differ.

/// Times of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Time {
    Nanos,
    /// Microseconds, rounded.
    Micros,
    /// Microseconds, cut.
    MicrosCut,
    /// From another start; the error in nanoseconds.
    FromStart(u64),
}

/// What a text does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lack {
    Pid,
    Comm,
    /// All but the first eight bytes of names.
    CommEnd,
    Stacks,
    /// All but the first eight frames.
    StackEnds,
    /// Offsets of frames in their functions.
    Offsets,
    /// Pointers: it has a hash of each.
    Pointers,
    /// The kernel's own text of fields: tools print others.
    KernelText,
}

/// A layout.
pub struct Layout {
    pub name: &'static str,
    /// Options of the kernel (since that named first), or arguments of the tool.
    pub options: &'static [&'static str],
    pub time: Time,
    pub lacks: &'static [Lack],
    /// Events and fields; `*` is any event.
    pub fields: &'static [(&'static str, &'static str)],
}

impl Layout {
    pub fn lacks(&self, lack: Lack) -> bool {
        self.lacks.contains(&lack)
    }

    pub fn lacks_field(&self, event: &str, field: &str) -> bool {
        self.fields.iter().any(|(of, name)| (*of == "*" || *of == event) && *name == field)
    }

    /// Characters of names; `None` if there are no names.
    pub fn comm_len(&self) -> Option<usize> {
        let len = if self.lacks(Lack::CommEnd) { 8 } else { 15 };
        (!self.lacks(Lack::Comm)).then_some(len)
    }
}

use Lack::{Comm, CommEnd, KernelText, Offsets, Pid, Pointers, StackEnds, Stacks};
use Time::{FromStart, Micros, MicrosCut, Nanos};

const fn layout(
    name: &'static str,
    options: &'static [&'static str],
    time: Time,
    lacks: &'static [Lack],
) -> Layout {
    Layout { name, options, time, lacks, fields: &[] }
}

/// Of the kernel's `trace`.
pub const KERNEL: [Layout; 9] = [
    layout("trace", &[], Micros, &[Offsets]),
    layout("hashes", &["hash-ptr"], Micros, &[Offsets, Pointers]),
    layout("sym-offset", &["sym-offset"], Micros, &[]),
    layout("sym-addr", &["sym-addr"], Micros, &[Offsets]),
    layout("without flags", &["noirq-info"], Micros, &[Offsets]),
    layout("thread groups", &["record-tgid"], Micros, &[Offsets]),
    layout("fields", &["fields"], Micros, &[Stacks, KernelText]),
    layout("latency", &["latency-format"], FromStart(1_500), &[Offsets, CommEnd]),
    layout("latency, verbose", &["latency-format", "verbose"], FromStart(1_500), &[Offsets]),
];

/// Of `trace-cmd report`.
pub const TRACE_CMD: [Layout; 8] = [
    layout("report", &[], Micros, &[Offsets, KernelText]),
    layout("report -t", &["-t"], Nanos, &[Offsets, KernelText]),
    layout("report -l", &["-l"], Micros, &[Offsets, KernelText, CommEnd]),
    layout("report -l -t", &["-l", "-t"], Nanos, &[Offsets, KernelText, CommEnd]),
    layout("report -N", &["-N"], Micros, &[Offsets, StackEnds, KernelText]),
    layout("report --ts-diff", &["--ts-diff"], Micros, &[Offsets, KernelText]),
    layout("report --align-ts -t", &["--align-ts", "-t"], FromStart(0), &[Offsets, KernelText]),
    layout("report -w --nodate", &["-w", "--nodate"], Micros, &[Offsets, KernelText]),
];

/// Of `perf script`.
pub const PERF: [Layout; 13] = [
    layout("script", &[], MicrosCut, &[KernelText]),
    layout("script --ns", &["--ns"], Nanos, &[KernelText]),
    layout("script -L", &["-L"], MicrosCut, &[CommEnd, KernelText]),
    layout("script --reltime", &["--reltime"], FromStart(1_500), &[KernelText]),
    layout("script --show-task-events", &["--show-task-events"], MicrosCut, &[KernelText]),
    layout("script -G", &["-G"], MicrosCut, &[Stacks, KernelText]),
    layout("tid", &["-F", "comm,tid,cpu,time,event,trace"], MicrosCut, &[Stacks, KernelText]),
    layout("pid,tid", &["-F", "comm,pid,tid,cpu,time,event,trace"], MicrosCut, &[Stacks, KernelText]),
    layout("without comm", &["-F", "tid,cpu,time,event,trace"], MicrosCut, &[Comm, Stacks, KernelText]),
    layout("without a task", &["-F", "cpu,time,event,trace"], MicrosCut, &[Comm, Pid, Stacks, KernelText]),
    layout("period", &["-F", "comm,tid,cpu,time,period,event,trace"], MicrosCut, &[Stacks, KernelText]),
    layout("ip,sym", &["-F", "comm,tid,cpu,time,event,trace,ip,sym"], MicrosCut, &[Offsets, KernelText]),
    layout(
        "ip,sym,symoff,dso",
        &["-F", "comm,tid,cpu,time,event,trace,ip,sym,symoff,dso"],
        MicrosCut,
        &[KernelText],
    ),
];

/// Arguments of `perf script` that leave out what an event needs, and a part of the refusal.
pub const PERF_REFUSED: [(&[&str], &str); 2] = [
    (&["-F", "comm,tid,time,event,trace"], "lack the CPU"),
    (&["-F", "comm,tid,cpu,event,trace"], "lack the time"),
];
