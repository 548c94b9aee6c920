//! The largest process when the OOM killer ended the wait of a ring: who held memory, before anything that grew.
//!
//! Sources: the table of the OOM report in the kernel log; without it, the list of processes that the recorder read after the
//! kill, or the line of the victim.

use serde::Serialize;

use super::top_pages::TopPagesRow;
use super::top_table;
use crate::render::words::{counted, shown};
use crate::reports::common::{ReportContext, View};
use crate::trace::oom_log::{self, Largest};

/// Cause of a wait that the OOM killer ended (`--stop-when oom`).
const OOM: &str = "oom";

/// The process with the most resident memory when the OOM killer ended the wait of a ring.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HeldRow {
    /// Name of the process.
    pub task: String,
    /// Id of the process.
    pub pid: u32,
    /// Resident memory of the process: anonymous pages, and pages of files and of shared memory.
    pub bytes_resident: u64,
    /// Number of processes of which it is the largest; `null`: the memory of others is unknown.
    pub processes: Option<u64>,
    /// `kernel_log`: the table of the OOM report; `processes`: the list that was read after the kill; `victim`: the line of
    /// the killed process.
    pub source: &'static str,
}

impl HeldRow {
    /// The process; `None`: no OOM kill ended a wait, or the file has no resident memory.
    pub fn of(context: &ReportContext<'_, '_>) -> Option<Self> {
        let metadata = context.session.trace.metadata();
        let cause = metadata.text("record.stopped_by")?;
        let text = |name: &str| metadata.attachment(name).map(String::from_utf8_lossy).unwrap_or_default();
        let log = text("kmsg");
        let killed = oom_log::killed(&log);
        if cause != OOM && killed.is_empty() {
            return None;
        }
        let of = |largest: Largest, source| Self::new(&largest.process, Some(largest.processes), source);
        if let Some(found) = oom_log::of_last_table(&log, context.analysis.page_size.0) {
            return of(found, "kernel_log");
        }
        // The victim may have freed its memory before the list was read.
        let listed = oom_log::of_list(&text("processes.after")).and_then(|found| of(found, "processes"));
        let victims = killed.iter().filter_map(|victim| Self::new(victim, None, "victim"));
        listed.into_iter().chain(victims).rev().max_by_key(|row| row.bytes_resident)
    }

    fn new(process: &oom_log::Process, processes: Option<u64>, source: &'static str) -> Option<Self> {
        let (task, pid) = (shown(process.name.as_bytes()), process.pid);
        Some(Self { task, pid, bytes_resident: process.resident?, processes, source })
    }

    /// `At the kill, python3 (process 93) had 335 MiB resident, the most of 61 processes.`
    pub fn sentence(&self, pages: Option<&TopPagesRow>, view: &View) -> String {
        let when = if self.source == "processes" { "After" } else { "At" };
        let most = self.processes.filter(|&number| number > 1).map_or_else(String::new, |number| {
            format!(", the most of {}", counted(number, "process", "processes"))
        });
        let resident = view.bytes(self.bytes_resident);
        let pages = pages.map_or_else(String::new, |pages| self::pages(pages, view));
        format!("{when} the kill, {} (process {}) had {resident} resident{most}.{pages}", self.task, self.pid)
    }

    /// The command that shows the list.
    pub fn command(&self) -> &'static str {
        if self.source == "processes" { "info --show processes.after" } else { "info --show kmsg" }
    }
}

/// ` Of 2.1 MiB of pages still allocated, python3 [93] allocated the most: 2 MiB.`
fn pages(pages: &TopPagesRow, view: &View) -> String {
    let Some(task) = &pages.holders.task else { return String::new() };
    format!(
        " Of {} of pages {}, {} allocated the most: {}.",
        view.bytes(pages.holders.bytes),
        top_table::live_heading(view),
        task.shown(),
        view.bytes(task.bytes)
    )
}
