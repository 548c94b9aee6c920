//! Results of a recording, for the messages at its end.

use std::path::PathBuf;

use kmt_format::kernel::CpuStats;
use kmt_format::write::Loss;

use super::watch::Window;
use crate::record::Cost;
use crate::record::console::Totals;

/// Results of a recording that has ended.
pub(in crate::record) struct Finished {
    pub totals: Totals,
    pub cost: Cost,
    pub counters: Vec<(u32, CpuStats)>,
    /// Losses that are marked in the file.
    pub lost: Loss,
    /// Events that are left in the ring buffers because the file has no room for them.
    pub left: u64,
    /// Exit status of the command, if it is the outcome.
    pub status: Option<u8>,
    pub notices: Vec<String>,
    /// Changes of the recording by other processes.
    pub changes: u64,
    /// The time that a ring holds.
    pub window: Option<Window>,
    /// Why the wait of a ring ended.
    pub cause: Option<String>,
    /// Events that a buffer that was found had overwritten before.
    pub overwritten_before: u64,
    /// True if no file was written: nothing happened while a ring waited again and again.
    pub is_unwanted: bool,
    /// The files of a recording with `--rotate` that are there.
    pub files: Vec<PathBuf>,
}
