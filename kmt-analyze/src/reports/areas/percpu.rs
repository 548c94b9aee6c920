//! The line Percpu of /proc/meminfo: pages of the percpu allocator, used or not (`pcpu_nr_pages`, mm/percpu.c).

use serde::Serialize;

use crate::reports::common::ReportContext;
use crate::trace::meminfo;

/// Change of the line.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PercpuLine {
    /// Bytes at the begin of the recording.
    pub bytes_before: u64,
    /// Bytes at its end.
    pub bytes_after: u64,
}

/// The line at the begin and the end; `None`: not read twice, or not in the kernel (before 4.19).
pub fn compute(context: &ReportContext<'_, '_>) -> Option<PercpuLine> {
    let metadata = context.session.trace.metadata();
    let (bytes_before, bytes_after) = meminfo::twice(metadata, "Percpu")?;
    Some(PercpuLine { bytes_before, bytes_after })
}
