//! Estimates from samples, where perf recorded only some events.
//!
//! Each sample has its period: the number of events that it represents. Sums of samples weighted by them estimate sums
//! of all events (Horvitz and Thompson, JASA 47, 1952). `convert` stores the periods by call site and size; if a
//! condition selects part of a site, its mean is used.

use std::collections::HashMap;

use kmt_format::read::Metadata;

use crate::ledger::totals::Totals;
use crate::stream::{Api, Site};

/// Names of the events, by interface.
const NAMES: [&str; 2] = ["kmem:kmalloc", "kmem:kmem_cache_alloc"];

/// Numbers of allocations that samples stand for.
#[derive(Debug, Clone, Default)]
pub struct Weights {
    /// By interface, call site, bytes requested and allocated.
    sites: HashMap<(Api, u64, u64, u64), f64>,
    /// By interface; `None`: all events were recorded.
    mean: [Option<f64>; 2],
}

impl Weights {
    /// Weights of a trace.
    pub fn of(metadata: &Metadata<'_>) -> Self {
        let lines = |key| metadata.text(key).unwrap_or_default().lines().map(|l| l.split(' '));
        let mut sums = [(0.0, 0.0); 2];
        for mut words in lines("perf/sampled") {
            let (Some(api), Some(samples), Some(events)) =
                (words.next().and_then(api_of), number(words.next()), number(words.next()))
            else {
                continue;
            };
            let sum = &mut sums[api as usize];
            *sum = (sum.0 + samples, sum.1 + events);
        }
        let mean = sums.map(|(samples, events)| (samples > 0.0).then(|| events / samples));
        let mut sites: HashMap<_, (f64, f64)> = HashMap::new();
        for mut words in lines("perf/sampled_sites") {
            let Some(api) = words.next().and_then(api_of) else { continue };
            let call_site = words.next().and_then(|w| u64::from_str_radix(w.strip_prefix("0x")?, 16).ok());
            let mut integer = || words.next().and_then(|w| w.parse::<u64>().ok());
            let (Some(call_site), Some(req), Some(alloc)) = (call_site, integer(), integer()) else {
                continue;
            };
            let (Some(samples), Some(events)) = (number(words.next()), number(words.next())) else {
                continue;
            };
            let sum = sites.entry((api, call_site, req, alloc)).or_default();
            *sum = (sum.0 + samples, sum.1 + events);
        }
        let sites = sites.into_iter().filter(|(_, sum)| sum.0 > 0.0);
        Self { sites: sites.map(|(site, (samples, events))| (site, events / samples)).collect(), mean }
    }

    /// Weight of the samples of a site; `None`: all events were recorded.
    fn of_site(&self, site: &Site) -> Option<f64> {
        let mean = self.mean[site.api as usize]?;
        let key = (site.api, site.call_site, site.bytes_req, site.bytes_alloc);
        Some(self.sites.get(&key).copied().unwrap_or(mean))
    }

    /// Adds the estimate of a site, if it was sampled.
    pub fn add(&self, site: &Site, totals: &Totals, to: &mut Option<Estimate>) {
        let Some(times) = self.of_site(site) else { return };
        let sum = to.get_or_insert_default();
        sum.alloc_events += totals.alloc_events as f64 * times;
        sum.bytes_req += totals.bytes_req as f64 * times;
        sum.bytes_alloc += totals.bytes_alloc as f64 * times;
    }
}

fn number(word: Option<&str>) -> Option<f64> {
    word?.parse::<u64>().ok().map(|n| n as f64)
}

/// Interface of an event, including those with a node (before 6.1).
fn api_of(name: &str) -> Option<Api> {
    let name = name.strip_suffix("_node").unwrap_or(name);
    Api::ALL.into_iter().find(|&api| NAMES[api as usize] == name)
}

/// Sums that samples stand for.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Estimate {
    /// Allocations.
    pub alloc_events: f64,
    /// Bytes requested.
    pub bytes_req: f64,
    /// Bytes allocated.
    pub bytes_alloc: f64,
}

/// Sums for the order of rows: estimates for samples.
pub fn in_order(estimate: Option<Estimate>, totals: Totals) -> Totals {
    let Some(estimate) = estimate else { return totals };
    let whole = |number: f64| number.round() as u64;
    Totals {
        alloc_events: whole(estimate.alloc_events),
        bytes_req: whole(estimate.bytes_req),
        bytes_alloc: whole(estimate.bytes_alloc),
        ..totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_counts_as_its_own_samples_do() {
        let site = |call_site| Site {
            api: Api::Kmalloc,
            class: 0,
            call_site,
            bytes_req: 60,
            bytes_alloc: 64,
            gfp_flags: 0,
            node: -1,
            accounted: None,
            cache: None,
        };
        let weights = Weights {
            sites: [((Api::Kmalloc, 1, 60, 64), 1000.0)].into_iter().collect(),
            mean: [Some(10.0), None],
        };
        let totals = Totals { alloc_events: 2, bytes_req: 120, bytes_alloc: 128, ..Totals::default() };
        let mut sum = None;
        weights.add(&site(1), &totals, &mut sum);
        weights.add(&site(2), &totals, &mut sum);
        assert_eq!(
            sum.map(|s| (s.alloc_events, s.bytes_req)),
            Some((2020.0, 121_200.0)),
            "the second has the mean"
        );
        let mut none = None;
        weights.add(&Site { api: Api::Cache, ..site(1) }, &totals, &mut none);
        assert_eq!(none, None, "all of its events were recorded");
        assert_eq!(api_of("kmem:kmalloc_node"), Some(Api::Kmalloc));
    }
}
