//! Kinds of lines, and their parts.

use super::columns::Stamp;

/// Highest number of a CPU plus one: the largest NR_CPUS of any kernel.
pub const CPUS_MAX: u32 = 8192;

/// Order of the columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Style {
    /// `[CPU] FLAGS TIME: EVENT: TEXT`, without the task.
    NoTask,
    /// `TID [CPU] TIME: SYSTEM:EVENT: TEXT` of perf script -F without comm.
    Tid,
    /// `COMM-PID (TGID) [CPU] FLAGS TIME: EVENT: TEXT` of ftrace and trace-cmd.
    Dash,
    /// `COMM PID [CPU] TIME: EVENT: TEXT` of perf script.
    Blank,
    /// `COMM-PID CPUFLAGS TIME: EVENT: TEXT`: the latency format.
    Latency,
    /// `COMM PID CPU FLAGS PREEMPT INDEX [TIME] MILLISECONDSms (+MILLISECONDSms): EVENT: TEXT`: the same with `verbose`.
    Verbose,
    /// `TIME | CPU) COMM-PID | ...` of the function graph tracer.
    Graph,
}

/// A line, and how sure that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parsed<'a> {
    /// The line.
    pub line: TextLine<'a>,
    /// True if another reading of its columns fits the text as well.
    pub is_ambiguous: bool,
}

/// A line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextLine<'a> {
    /// An event.
    Event(TextEvent<'a>),
    /// A call that the function tracer saw: the function, and who called it.
    Function(TextEvent<'a>, &'a [u8], &'a [u8]),
    /// The function graph tracer's begin or end of a function.
    Graph(TextEvent<'a>, Graph<'a>),
    /// Events of a CPU were lost before the next one of it; `None` where they were not counted.
    Lost(u32, Option<u64>),
    /// A log lost lines, which may have been events.
    LogGap,
    /// Name of a task since that time: of a record of perf.
    Comm(Comm<'a>),
    /// Counts of the header of a text.
    Written(EntryCounts),
    /// A frame of the stack that the event before has.
    Frame(&'a [u8]),
    /// A frame of the call chain of the event before, as perf prints it: address, 0 for frames that are not the
    /// kernel's; symbol where it is known.
    Chain(u64, Option<&'a [u8]>),
    /// A comment, an annotation, an empty line.
    Remark,
    /// None of these.
    Other,
}

/// Counts of the header of a text, of all CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryCounts {
    /// Events in the buffer.
    pub held: u64,
    /// Events that were written to it.
    pub written: u64,
}

/// Name of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Comm<'a> {
    /// Name.
    pub comm: &'a [u8],
    /// Process id.
    pub tgid: i32,
    /// Thread id.
    pub pid: i32,
    /// Since when; of tasks that run before the recording, 0.
    pub stamp: Stamp,
}

/// An event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextEvent<'a> {
    /// Name of the task.
    pub comm: &'a [u8],
    /// Thread id; [`NO_TASK`] where the text has no tasks.
    pub pid: i32,
    /// Process id, where the text has that column.
    pub tgid: Option<i32>,
    /// CPU.
    pub cpu: u32,
    /// Columns of flags: irqs-off, need-resched, hardirq/softirq, preempt-depth, migrate-disable.
    pub flags: &'a [u8],
    /// When.
    pub stamp: Stamp,
    /// System, where the text tells it.
    pub system: Option<&'a [u8]>,
    /// Name of the event.
    pub name: &'a [u8],
    /// Text of the event.
    pub text: &'a [u8],
}

impl TextEvent<'_> {
    /// One without any column.
    pub(super) const EMPTY: Self = TextEvent {
        comm: b"",
        pid: 0,
        tgid: None,
        cpu: 0,
        flags: b"",
        stamp: Stamp::Count(0),
        system: None,
        name: b"",
        text: b"",
    };
}

/// Thread id of a task that the text does not tell.
pub const NO_TASK: i32 = -1;

/// Begin or end of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Graph<'a> {
    /// Begin, end, or both.
    pub kind: GraphKind,
    /// Number of traced functions around it.
    pub depth: u64,
    /// The function, where the line has it.
    pub function: Option<&'a [u8]>,
    /// Duration in nanoseconds; not of a begin.
    pub duration_ns: Option<u64>,
}

/// Which end of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GraphKind {
    /// `function() {`.
    Begin,
    /// `function();`: nothing was traced within it.
    Leaf,
    /// `}`.
    End,
}
