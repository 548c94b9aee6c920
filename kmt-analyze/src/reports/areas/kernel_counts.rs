//! The kernel's own counts of areas.

use serde::Serialize;

use super::percpu::PercpuLine;
use super::vmallocinfo::VmallocInfoChange;

/// The kernel's own counts at the begin and the end of a recording.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct KernelCounts {
    /// Change of /proc/vmallocinfo; absent: not of this allocator, not read twice, or with a selection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vmallocinfo: Option<VmallocInfoChange>,
    /// The line Percpu of /proc/meminfo: pages of the percpu allocator, used or not; absent: not of this allocator, or not
    /// read twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percpu: Option<PercpuLine>,
}
