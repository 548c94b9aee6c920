//! Keys of the lines, and their names.

use crate::pass::caches::CacheNames;
use crate::reports::common::ReportContext;

/// Keys of the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum TimelineKey {
    /// kmalloc, caches and pages
    Kind,
    /// Call sites
    CallSite,
    /// Caches and size classes
    Cache,
    /// Tasks
    Task,
    /// CPUs
    Cpu,
    /// Requested nodes
    Node,
}

impl TimelineKey {
    /// True if lines are by the origin of the allocation, false if they are by its site.
    pub fn is_of_origins(self) -> bool {
        matches!(self, Self::Task | Self::Cpu)
    }
}

/// Name of the line of a site or origin.
pub fn name(
    context: &ReportContext<'_, '_>,
    caches: &CacheNames<'_>,
    by: TimelineKey,
    number: u32,
) -> String {
    let interner = &context.analysis.interner;
    let origin = interner.origins.get(number).copied().unwrap_or_default();
    match (by, interner.sites.get(number)) {
        (TimelineKey::Task, _) => context.labels().task(origin.pid),
        (TimelineKey::Cpu, _) => format!("CPU {}", origin.cpu),
        (_, None) => "?".to_owned(),
        (TimelineKey::Kind, Some(site)) => site.api.name().to_owned(),
        (TimelineKey::CallSite, Some(site)) => context.labels().symbol(site.call_site),
        (TimelineKey::Node, Some(site)) if site.node < 0 => "any node".to_owned(),
        (TimelineKey::Node, Some(site)) => format!("node {}", site.node),
        (TimelineKey::Cache, Some(_)) => caches.shown(number, None),
    }
}
