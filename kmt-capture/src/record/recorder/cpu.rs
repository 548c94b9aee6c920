//! One CPU of a recording.

use kmt_format::kernel::CpuStats;
use kmt_format::write::WriterStats;

use crate::record::ring::Ring;

/// A CPU: its ring buffer, and its counts. It stays when the CPU goes offline.
#[derive(Debug)]
pub(super) struct Cpu {
    pub ring: Ring,
    /// Events and bytes that were read of it.
    pub stats: WriterStats,
    /// The kernel's counters as they were read last.
    pub counters: Option<CpuStats>,
    /// Bytes read in this round.
    pub drained: u64,
}

impl Cpu {
    /// Nothing is read yet.
    pub fn new(ring: Ring) -> Self {
        Self { ring, stats: WriterStats::default(), counters: None, drained: 0 }
    }

    /// Its number.
    pub fn number(&self) -> u32 {
        self.ring.cpu
    }
}
