//! The model of a vector: events, losses, and the rest.

use crate::classes::{Class, EXIT, STACK};

/// The value of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A number, already extended to 64 bits.
    Number(u64),
    /// The bytes of an array, in the vector's byte order.
    Array(Vec<u8>),
}

/// An event.
#[derive(Debug, Clone)]
pub struct Event {
    /// Time.
    pub time: u64,
    /// Class.
    pub class: &'static Class,
    /// Flags, preempt count, pid.
    pub context: [u64; 3],
    /// Values of the class's own fields.
    pub values: Vec<Value>,
}

impl Event {
    /// Values of all fields.
    pub fn all_values(&self) -> Vec<Value> {
        let common = [u64::from(self.class.id), self.context[0], self.context[1], self.context[2]];
        common.into_iter().map(Value::Number).chain(self.values.iter().cloned()).collect()
    }
}

/// A loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Loss {
    /// Counted events.
    pub counted: u64,
    /// True if more were lost.
    pub uncounted: bool,
    /// True if input was damaged.
    pub damaged: bool,
    /// True if it was overwritten by design.
    pub overwritten: bool,
}

impl Loss {
    /// As the specification numbers it.
    pub fn flags(&self) -> u64 {
        u64::from(self.counted > 0)
            | u64::from(self.uncounted) << 1
            | u64::from(self.damaged) << 2
            | u64::from(self.overwritten) << 3
    }
}

/// A symbol: address, size, kind, owner (0: the kernel), name.
pub type Symbol = (u64, u64, u8, u16, &'static str);

/// Totals of a time at a call site: times, call site, function, meaning, and the three numbers.
pub type Sums = ([u64; 2], u64, &'static str, u64, [Option<u64>; 3]);

/// Contents of a sub-buffer except events and their deltas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct How {
    /// Between two events a discarded one takes half of the time.
    pub discards: bool,
    /// Each event has an absolute time before it.
    pub absolute: bool,
    /// The bytes behind the last event.
    pub end: End,
    /// Bit 30 of the commit word alone.
    pub stored_alone: bool,
}

/// The bytes behind the last event of a sub-buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum End {
    /// Nothing.
    #[default]
    Data,
    /// A void rest of 12 bytes, which are committed.
    Void,
    /// A filler up to the end of the sub-buffer.
    Filler,
}

/// Lives of a row of folded lives, or frees of NULL.
#[derive(Debug, Clone)]
pub struct Lives {
    /// An allocation like theirs; its time, task and address count for nothing. `None`: frees of NULL.
    pub alloc: Option<Event>,
    /// A free like theirs.
    pub free: Event,
    /// count, cross_cpu, elsewhere, length_sum, length_max, over_ms, over_s.
    pub sums: [u64; 7],
    /// Bins and their counts.
    pub bins: Vec<(u32, u32)>,
}

/// An interval of folded lives.
#[derive(Debug, Clone)]
pub struct Fold {
    /// Its number.
    pub number: u64,
    /// t_begin.
    pub begin: u64,
    /// t_end.
    pub end: u64,
    /// Longest life that is folded.
    pub threshold: u64,
    /// True if lives were left as events in part of it.
    pub written_through: bool,
    /// By CPU: events that were folded.
    pub cpus: Vec<(u32, u64)>,
    /// The rows.
    pub rows: Vec<Lives>,
}

impl Fold {
    /// Events of all CPUs that were folded, 2^64 - 1 at most.
    pub fn events(&self) -> u64 {
        self.cpus.iter().fold(0, |sum, (_, events)| sum.saturating_add(*events))
    }
}

/// A call of a writer, in order.
#[derive(Debug, Clone)]
pub enum Op {
    /// An event of a CPU.
    Event(u32, Event),
    /// A loss of a CPU.
    Lost(u32, Loss),
    /// The open chunk of a CPU is closed.
    Flush(u32),
    /// A sub-buffer of a CPU with these events, and what it says was lost.
    SubBuffer(u32, Vec<Event>, Loss),
    /// The same, with what a kernel writes besides.
    SubBufferWith(u32, Vec<Event>, Loss, How),
    /// The clock: name, ticks, comparable.
    Clock(&'static str, bool, bool),
    /// Keys and values.
    Meta(Vec<(&'static str, &'static [u8])>),
    /// A file of the target, and between which times it was read.
    File(&'static str, &'static [u8], Option<(u64, u64)>),
    /// Source lines: address, function, file, line, depth.
    Lines(Vec<(u64, &'static str, &'static str, u64, u64)>),
    /// Cgroups: time, id, pid, hierarchy, path.
    Cgroups(Vec<(u64, u64, i32, u64, &'static str)>),
    /// Totals by call site: times, call site, function, meaning, and the three numbers.
    Sums(Vec<Sums>),
    /// Tasks: time, pid, tgid, name.
    Tasks(Vec<(u64, i32, i32, &'static str)>),
    /// Counters: CPU, taken, and the eleven numbers.
    Stats(Vec<(u32, u64, [Option<u64>; 11])>),
    /// Symbols: owners (name, base, size), symbols, bounds of the image.
    Symbols(Vec<(&'static str, u64, u64)>, Vec<Symbol>, (u64, u64)),
    /// An interval of folded lives.
    Fold(Fold),
    /// A chunk of an unknown kind: code, flags, body.
    Unknown([u8; 4], u8, &'static [u8]),
    /// The file ends here and is continued.
    Append,
}

/// Layout of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Byte order.
    pub big: bool,
    /// Size of long.
    pub long: usize,
    /// Codec: 0 none, 1 LZ4, 2 zstd.
    pub codec: u8,
    /// Every structure that may grow is longer, and the minor version higher.
    pub padded: bool,
    /// True if there is an index.
    pub index: bool,
    /// True if there is a trailer.
    pub trailer: bool,
    /// Tables of event chunks in another order, records first.
    pub records_first: bool,
    /// Bytes of a sub-buffer.
    pub sub_buffer_len: usize,
    /// Zstandard frames of a body.
    pub frames: usize,
}

impl Layout {
    /// As the library writes it.
    pub const fn plain(big: bool, long: usize) -> Self {
        let (codec, padded, records_first, sub_buffer_len) = (0, false, false, 1024);
        let (index, trailer, frames) = (true, true, 1);
        Self { big, long, codec, padded, index, trailer, records_first, sub_buffer_len, frames }
    }

    /// True if the library's writer makes the same bytes.
    pub fn is_writers(&self) -> bool {
        self.codec == 0 && !self.padded && self.index && self.trailer && !self.records_first
    }
}

/// True if a field's size is in another field: a stack's.
pub fn is_stack(class: &Class, field: &str) -> bool {
    class.name == STACK.name && field == "caller"
}

/// True if the class keeps two times in the value word.
pub fn is_timed(class: &Class, long: usize) -> bool {
    class.name == EXIT.name && long == 8
}
