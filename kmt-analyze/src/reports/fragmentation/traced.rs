//! Inputs of all parts of the report.

use std::collections::BTreeMap;

use crate::collect::sums::Sums;
use crate::pass::coverage::Coverage;
use crate::reports::common::ReportContext;

/// Inputs of all parts of the report.
pub struct Traced<'v, 's, 'd> {
    /// The trace and the selection.
    pub context: &'v ReportContext<'s, 'd>,
    /// Name of the cache of each site.
    pub caches: &'v [String],
    /// By number of the site, true if its live objects are certain; `None`: events were lost.
    pub certain: Option<Vec<bool>>,
}

impl<'v, 's, 'd> Traced<'v, 's, 'd> {
    /// Those of a trace, with the name of the cache of each site.
    pub fn of(context: &'v ReportContext<'s, 'd>, caches: &'v [String]) -> Self {
        let is_whole = !context.session.losses.any();
        let certain = is_whole.then(|| context.live_bounds().bounds.certain_sites());
        Self { context, caches, certain }
    }
}

impl Traced<'_, '_, '_> {
    /// First of these attached files that exists.
    pub fn attachment(&self, names: &[&str]) -> Option<&[u8]> {
        names.iter().find_map(|name| self.context.session.trace.metadata().attachment(name))
    }

    /// Certain live bytes of a site with `live` live bytes; `None`: events were lost.
    pub fn least(&self, site: u32, live: u64) -> Option<u64> {
        let is_certain = self.certain.as_ref()?.get(site as usize) == Some(&true);
        Some(if is_certain { live } else { 0 })
    }

    /// By name of the cache: coverage of its frees, and bytes that wait for a grace period.
    pub fn coverage(&self) -> BTreeMap<&str, (Coverage, u64)> {
        let mut out: BTreeMap<&str, (Coverage, u64)> = BTreeMap::new();
        for (site, parts) in (0u32..).zip(&self.context.analysis.balance.sites) {
            for (_, totals) in parts {
                out.entry(self.cache(site)).or_default().absorb((Coverage::of(totals), totals.bytes_waiting));
            }
        }
        out
    }

    /// Name of the cache of a site.
    pub fn cache(&self, site: u32) -> &str {
        self.caches.get(site as usize).map_or("?", String::as_str)
    }
}
