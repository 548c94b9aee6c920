//! Bounds of live objects, where frees lack events or events were lost.
//!
//! At most: objects not known to be freed, and for each cache no more than the active objects of the slabinfo after the
//! trace. At least: objects of caches and call sites whose frees all have events; others may be free.

use std::collections::{BTreeMap, HashMap};

use super::{Coverage, FreeEvents, in_use_max};
use crate::collect::sums::{Sums, sums};
use crate::ledger::totals::Totals;
use crate::pass::caches::parts_of;
use crate::pass::{Analysis, Needs};
use crate::stream::Api;
use crate::trace::names::CacheKey;
use crate::trace::slabinfo::SlabCaches;

/// Smallest number of ends for which a call site is judged apart from its cache.
const ENDS_OF_CALLER_MIN: u64 = 100;

/// Lower and upper bound of live objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LiveSpan {
    pub objects: [u64; 2],
    /// Bytes allocated for them.
    pub bytes: [u64; 2],
}

sums!(LiveSpan: objects, bytes);

impl LiveSpan {
    /// This span, limited to this number of objects of at most this size.
    fn at_most(self, objects: u64, size: u64) -> Self {
        let bytes = objects.saturating_mul(size);
        Self { objects: self.objects.map(|o| o.min(objects)), bytes: self.bytes.map(|b| b.min(bytes)) }
    }
}

/// Sums of a site in a cache.
struct BoundPart {
    site: u32,
    caller: (Api, u64),
    cache: usize,
    coverage: Coverage,
    bytes_live: u64,
    waiting: u64,
    bytes_waiting: u64,
    /// True if objects that seem live are live.
    is_certain: bool,
}

impl BoundPart {
    fn new(site: u32, caller: (Api, u64), cache: usize, totals: &Totals) -> Self {
        let Totals { bytes_live, waiting, bytes_waiting, .. } = *totals;
        let coverage = Coverage::of(totals);
        Self { site, caller, cache, coverage, bytes_live, waiting, bytes_waiting, is_certain: false }
    }
}

struct Cache {
    key: CacheKey,
    size_max: u64,
    /// Active objects in slabinfo.
    active: Option<u64>,
}

/// Bounds of all counted objects.
pub struct Bounds {
    parts: Vec<BoundPart>,
    caches: Vec<Cache>,
    has_losses: bool,
}

impl Bounds {
    /// Bounds by the slabinfo after the trace, if there is one and the selection ends there. The pass was asked for
    /// `Needs::CACHE_NAMES`: else they would follow from what other reports of the pass need.
    pub fn of(result: &Analysis, slabinfo: Option<&SlabCaches>, has_losses: bool) -> Self {
        debug_assert!(result.needs.contains(Needs::CACHE_NAMES), "bounds without names of caches");
        let mut caches: Vec<Cache> = Vec::new();
        let mut numbers: HashMap<CacheKey, usize> = HashMap::new();
        let count = result.balance.sites.iter().map(|parts| parts.len()).sum();
        let mut parts: Vec<BoundPart> = Vec::with_capacity(count);
        for part in parts_of(result) {
            let cache = *numbers.entry(part.key).or_insert_with_key(|key| {
                let active = slabinfo.and_then(|slabinfo| in_use_max(key, slabinfo));
                caches.push(Cache { key: key.clone(), size_max: 0, active });
                caches.len() - 1
            });
            let caller = (part.site.api, part.site.call_site);
            if let Some(cache) = caches.get_mut(cache) {
                cache.size_max = cache.size_max.max(part.site.bytes_alloc);
            }
            parts.push(BoundPart::new(part.number, caller, cache, part.totals));
        }
        let mut bounds = Self { parts, caches, has_losses };
        if !has_losses {
            bounds.find_certain();
        }
        bounds
    }

    /// Marks parts whose cache or call site has events for all frees, unless more objects would be live than slabinfo
    /// has.
    fn find_certain(&mut self) {
        let mut of_caches: Vec<Coverage> = vec![Coverage::default(); self.caches.len()];
        let mut of_callers: HashMap<((Api, u64), usize), Coverage> = HashMap::new();
        for part in &self.parts {
            let coverage = part.coverage;
            if let Some(sum) = of_caches.get_mut(part.cache) {
                sum.absorb(coverage);
            }
            of_callers.entry((part.caller, part.cache)).or_default().absorb(coverage);
        }
        let is_all = |coverage: Option<&Coverage>, least: u64| {
            coverage.is_some_and(|c| c.ends >= least && c.free_events() == FreeEvents::All)
        };
        let mut certain = vec![0u64; self.caches.len()];
        for part in &mut self.parts {
            let of_caller = of_callers.get(&(part.caller, part.cache));
            part.is_certain = is_all(of_caches.get(part.cache), 1) || is_all(of_caller, ENDS_OF_CALLER_MIN);
            if let Some(sum) = certain.get_mut(part.cache).filter(|_| part.is_certain) {
                *sum = sum.saturating_add(part.coverage.live);
            }
        }
        for part in &mut self.parts {
            let active = self.caches.get(part.cache).and_then(|cache| cache.active);
            let sum = certain.get(part.cache).copied().unwrap_or(0);
            part.is_certain &= active.is_none_or(|active| sum <= active);
        }
    }

    /// Sum of some parts; `None`: events were lost and no snapshot bounds it.
    fn sum<'p>(&'p self, chosen: impl Iterator<Item = &'p BoundPart>) -> Option<LiveSpan> {
        let mut by_cache: BTreeMap<usize, LiveSpan> = BTreeMap::new();
        for BoundPart { cache, coverage, bytes_live, waiting, bytes_waiting, is_certain, .. } in chosen {
            let least = |value: u64| if *is_certain { [value, value] } else { [0, value] };
            let mut live = LiveSpan { objects: least(coverage.live), bytes: least(*bytes_live) };
            live.objects[1] = live.objects[1].saturating_add(*waiting);
            live.bytes[1] = live.bytes[1].saturating_add(*bytes_waiting);
            by_cache.entry(*cache).or_default().absorb(live);
        }
        by_cache.into_iter().try_fold(LiveSpan::default(), |mut sum, (cache, live)| {
            let Cache { active, size_max, .. } = self.caches.get(cache)?;
            let live = match (self.has_losses, active) {
                (false, None) => live,
                (false, Some(active)) => live.at_most(*active, *size_max),
                (true, active) => {
                    let most = (*active)?;
                    LiveSpan { objects: [0, most], bytes: [0, most.saturating_mul(*size_max)] }
                }
            };
            sum.absorb(live);
            Some(sum)
        })
    }

    /// Bounds of each cache.
    pub fn by_cache(&self) -> HashMap<&CacheKey, Option<LiveSpan>> {
        let mut parts: Vec<Vec<&BoundPart>> = self.caches.iter().map(|_| Vec::new()).collect();
        for part in &self.parts {
            if let Some(parts) = parts.get_mut(part.cache) {
                parts.push(part);
            }
        }
        let sums = parts.into_iter().map(|parts| self.sum(parts.into_iter()));
        self.caches.iter().map(|cache| &cache.key).zip(sums).collect()
    }

    /// Bounds of each call site for which `is_wanted` is true.
    pub fn by_caller(&self, is_wanted: impl Fn((Api, u64)) -> bool) -> HashMap<(Api, u64), Option<LiveSpan>> {
        let mut parts: Vec<&BoundPart> = self.parts.iter().filter(|part| is_wanted(part.caller)).collect();
        parts.sort_by_key(|part| part.caller);
        let callers = parts.chunk_by(|a, b| a.caller == b.caller);
        let sum = |parts: &[&BoundPart]| Some((parts.first()?.caller, self.sum(parts.iter().copied())));
        callers.filter_map(sum).collect()
    }

    /// Bounds of an interface, or of both.
    pub fn of_api(&self, api: Option<Api>) -> Option<LiveSpan> {
        self.sum(self.parts.iter().filter(|part| api.is_none_or(|api| part.caller.0 == api)))
    }

    /// True if events were lost: more objects may be live than counted.
    pub fn has_losses(&self) -> bool {
        self.has_losses
    }

    /// By number of site: true if all objects that seem live at any time are.
    pub fn certain_sites(&self) -> Vec<bool> {
        let len = self.parts.iter().map(|part| part.site as usize + 1).max().unwrap_or(0);
        let mut certain = vec![true; len];
        for part in &self.parts {
            if let Some(site) = certain.get_mut(part.site as usize) {
                *site &= part.is_certain;
            }
        }
        certain
    }
}
