//! A trace of Perfetto: packets of protobuf, with the events of traced_probes.
//!
//! Source: protos/perfetto/trace of Perfetto v15 to v53, and src/traced/probes/ftrace, which writes it.

mod bundle;
mod events;
mod fields;
mod functions;
mod layout;
mod merge;
mod packets;
mod reader;
mod sequence;
mod survey;
mod tasks;
mod tree;
mod wire;

use std::collections::BTreeMap;

use kmt_format::write::Loss;

pub use functions::Functions;
pub use reader::Reader;
pub use survey::{Counters, Survey};
pub use tree::Process;
pub use wire::is_trace;

use super::text::NO_TASK;

/// Highest number of a CPU plus one.
const CPUS_MAX: u32 = 8192;

/// Parts of a trace, in the order in which they are written.
#[derive(Debug, Clone, Copy)]
pub enum Item<'a> {
    /// A layout of records, before the first of them.
    Format {
        /// System.
        system: &'a str,
        /// Text of the `format`.
        format: &'a str,
    },
    /// An event.
    Event {
        /// CPU.
        cpu: u32,
        /// Time.
        time: u64,
        /// Record in the layout of an earlier format.
        record: &'a [u8],
    },
    /// Events are missing before the next one of a CPU.
    Lost {
        /// CPU.
        cpu: u32,
        /// The loss.
        loss: Loss,
    },
    /// A task has a name.
    Name {
        /// Task.
        pid: i32,
        /// Name.
        comm: &'a [u8],
        /// Thread group; 0 if unknown.
        tgid: i32,
        /// Time of the event with the name.
        since: u64,
    },
}

/// Counts of events that are not in the output.
#[derive(Debug, Default)]
pub struct Counts {
    /// Events, but those of the compact form.
    pub events: u64,
    /// Events of the compact form, which are left out.
    pub compact: u64,
    /// Events of kmem that have a message of their own.
    pub kmem: u64,
    /// Events that are left out, by the number of their message.
    pub left_out: BTreeMap<u32, u64>,
    /// Those beyond the numbers that are kept.
    pub left_out_others: u64,
    /// Bundles of other machines.
    pub other_machines: u64,
    /// Events in bundles without a CPU.
    pub without_cpu: u64,
    /// Events without a time or a message.
    pub incomplete: u64,
    /// Events without a task.
    pub without_pid: u64,
    /// Events with a field that cannot be read.
    pub unreadable: u64,
    /// Events beyond the limit of layouts.
    pub layouts_left_out: u64,
    /// Fields with a function that is not known.
    pub unknown_functions: u64,
}

impl Counts {
    /// Counts an event that is left out.
    fn leave_out(&mut self, number: u32) {
        /// Many more than there are messages.
        const NUMBERS_MAX: usize = 4096;
        if self.left_out.len() < NUMBERS_MAX || self.left_out.contains_key(&number) {
            *self.left_out.entry(number).or_default() += 1;
        } else {
            self.left_out_others += 1;
        }
    }

    /// Number of events that are left out.
    pub fn left_out(&self) -> u64 {
        self.left_out.values().sum::<u64>() + self.left_out_others + self.compact
    }
}
