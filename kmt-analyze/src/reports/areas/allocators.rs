//! The allocators of areas: names, and the kernel's own counts.

use std::fmt::Debug;

use super::kernel_counts::KernelCounts;
use super::percpu;
use super::vmallocinfo;
use crate::collect::AreaKind;
use crate::collect::area_groups::AreaGroupSums;
use crate::reports::common::ReportContext;

/// An allocator of areas.
pub trait Allocator: Debug + Send + Sync + 'static {
    /// Its events.
    const KIND: AreaKind;
    /// The command.
    const NAME: &'static str;
    /// Heading in the text of `all`.
    const TITLE: &'static str;
    /// Description in the list of commands.
    const ABOUT: &'static str;
    /// Its areas in sentences: one, several.
    const NOUNS: [&'static str; 2];

    /// The kernel's own counts at the begin and the end of the recording.
    fn kernel(context: &ReportContext<'_, '_>, sums: &AreaGroupSums) -> KernelCounts;
}

/// vmalloc, vmap, ioremap, kernel stacks.
#[derive(Debug)]
pub struct Vmalloc;

/// The percpu allocator.
#[derive(Debug)]
pub struct Percpu;

impl Allocator for Vmalloc {
    const KIND: AreaKind = AreaKind::Vmalloc;
    const NAME: &'static str = "vmalloc";
    const TITLE: &'static str = "vmalloc areas";
    const ABOUT: &'static str = "vmalloc areas by call site, beside /proc/vmallocinfo";
    const NOUNS: [&'static str; 2] = ["vmalloc area", "vmalloc areas"];

    fn kernel(context: &ReportContext<'_, '_>, sums: &AreaGroupSums) -> KernelCounts {
        KernelCounts { vmallocinfo: vmallocinfo::compute(context, sums), percpu: None }
    }
}

impl Allocator for Percpu {
    const KIND: AreaKind = AreaKind::Percpu;
    const NAME: &'static str = "percpu";
    const TITLE: &'static str = "percpu allocations";
    const ABOUT: &'static str = "Percpu allocations by call site, beside /proc/meminfo";
    const NOUNS: [&'static str; 2] = ["percpu allocation", "percpu allocations"];

    fn kernel(context: &ReportContext<'_, '_>, _: &AreaGroupSums) -> KernelCounts {
        KernelCounts { vmallocinfo: None, percpu: percpu::compute(context) }
    }
}
