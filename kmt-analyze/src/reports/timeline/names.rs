//! Keys of the lines, and their names.

use crate::pass::Analysis;
use crate::pass::caches::usual_names;
use crate::render::text::escaped;
use crate::reports::common::ReportContext;
use crate::reports::common::labels::Labels;
use crate::stream::{Api, NameId, Site};

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

/// Names of lines.
pub struct LineNames<'c, 'r, 'd> {
    analysis: &'r Analysis,
    labels: &'c Labels<'r, 'd>,
    caches: Vec<Option<NameId>>,
}

impl<'c, 'r, 'd> LineNames<'c, 'r, 'd> {
    /// Of a trace.
    pub fn new(context: &'c ReportContext<'r, 'd>) -> Self {
        let analysis = context.analysis;
        Self { analysis, labels: context.labels(), caches: usual_names(analysis) }
    }

    /// Name of the line of a site or origin.
    pub fn of(&self, by: TimelineKey, number: u32) -> String {
        let interner = &self.analysis.interner;
        let origin = interner.origins.get(number).copied().unwrap_or_default();
        let site = interner.sites.get(number);
        match (by, site) {
            (TimelineKey::Task, _) => self.labels.task(origin.pid),
            (TimelineKey::Cpu, _) => format!("CPU {}", origin.cpu),
            (_, None) => "?".to_owned(),
            (TimelineKey::Kind, Some(site)) => site.api.name().to_owned(),
            (TimelineKey::CallSite, Some(site)) => self.labels.symbol(site.call_site),
            (TimelineKey::Node, Some(site)) if site.node < 0 => "any node".to_owned(),
            (TimelineKey::Node, Some(site)) => format!("node {}", site.node),
            (TimelineKey::Cache, Some(site)) => self.cache(site, number),
        }
    }

    fn cache(&self, site: &Site, number: u32) -> String {
        if site.api == Api::Kmalloc {
            return self.analysis.size_classes.name(site.bytes_alloc);
        }
        let name = site.cache.or(self.caches.get(number as usize).copied().flatten());
        let name = name.map(|name| escaped(self.analysis.interner.name(name)));
        name.unwrap_or_else(|| format!("? ({} bytes)", site.bytes_req))
    }
}
