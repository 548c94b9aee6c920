//! The allocations of the trace played to a slab allocator with other size classes.
//!
//! The model: an object takes the smallest class that holds it, and a slot of the fullest slab of its class that has
//! room; a slab without objects is given back, but for as many empty ones as SLUB keeps (min_partial, mm/slub.c). It
//! counts slabs, so that it prices classes in memory that is really held and not in bytes that are handed out.

use std::collections::{HashMap, HashSet};

use super::{Change, grown};
use crate::analysis::int_hash::IntHash;
use crate::analysis::ledger::Rules;
use crate::stream::Api;

/// One way of serving requests. By default as the traced kernel did.
#[derive(Debug, Clone, Default)]
pub struct Layout {
    /// What reports call it.
    pub name: String,
    /// All classes there are, in bytes, rising; `None`: the kernel's.
    pub only: Option<Vec<u64>>,
    /// Classes besides, rising.
    pub added: Vec<u64>,
    /// Classes that there are not.
    pub dropped: Vec<u64>,
    /// Numbers of call sites whose objects are kept apart from all others.
    pub apart: HashSet<u32, IntHash>,
}

/// Classes of kmalloc (mm/slab_common.c, kmalloc_info).
pub const CLASSES: [u64; 13] = [8, 16, 32, 64, 96, 128, 192, 256, 512, 1024, 2048, 4096, 8192];

impl Layout {
    /// Bytes that a request gets for which the kernel gave `bytes_alloc`; `None` if no class holds it.
    pub fn size(&self, bytes_req: u64, bytes_alloc: u64) -> Option<u64> {
        let smallest = |classes: &[u64]| classes.iter().copied().find(|&c| c >= bytes_req);
        if let Some(only) = &self.only {
            return smallest(only);
        }
        let kept = |c: &u64| !self.dropped.contains(c);
        let base = match kept(&bytes_alloc) {
            true => bytes_alloc,
            false => CLASSES.iter().copied().find(|c| *c > bytes_alloc && kept(c))?,
        };
        Some(smallest(&self.added).map_or(base, |added| added.min(base)))
    }
}

/// Empty slabs that a class keeps: MIN_PARTIAL of mm/slub.c, 2.6.22 to 7.2.
const MIN_PARTIAL: usize = 5;
/// Orders that a slab may have: slab_order's default maximum, PAGE_ALLOC_COSTLY_ORDER.
const ORDER_MAX: u32 = 3;

/// One layout, played.
#[derive(Debug, Default)]
pub struct Played {
    layout: Layout,
    page_size: u64,
    pools: Vec<Pool>,
    /// By size of the class, and whether it is for call sites apart.
    pool_of: HashMap<u64, u32, IntHash>,
    /// By address: pool, slab, bytes of the class.
    objects: HashMap<u64, (u32, u32, u64), IntHash>,
    /// Slab bytes held.
    pub bytes_held: u64,
    /// The most of them.
    pub bytes_held_max: u64,
    /// Bytes handed out.
    pub bytes_live: u64,
    /// The most of them.
    pub bytes_live_max: u64,
    /// Bytes handed out beyond those asked for, over all allocations.
    pub bytes_wasted: u64,
    /// Bytes handed out, over all allocations.
    pub bytes_alloc: u64,
    /// Sum over time of held bytes, in bytes times the clock's unit.
    pub held_time: u128,
    /// Requests that no class holds.
    pub not_served: u64,
    last: Option<u64>,
}

#[derive(Debug, Default)]
struct Pool {
    slots: u32,
    slab_bytes: u64,
    /// Live objects of each slab; `u32::MAX` for one that was given back.
    slabs: Vec<u32>,
    /// Slabs by number of live objects, those with room.
    by_live: Vec<Vec<u32>>,
    unused: Vec<u32>,
}

impl Pool {
    fn new(size: u64, page_size: u64) -> Self {
        let order = slab_order(size, page_size);
        let slab_bytes = page_size << order;
        let slots = (slab_bytes / size.max(1)).max(1) as u32;
        Self {
            slots,
            slab_bytes,
            slabs: Vec::new(),
            by_live: vec![Vec::new(); slots as usize + 1],
            unused: Vec::new(),
        }
    }

    /// Takes a slot; returns the slab, and whether it is new.
    fn take(&mut self) -> (u32, bool) {
        for live in (0..self.slots).rev() {
            while let Some(slab) = self.by_live.get_mut(live as usize).and_then(Vec::pop) {
                // What lies here may have moved on since.
                if self.slabs.get(slab as usize) == Some(&live) {
                    self.set(slab, live + 1);
                    return (slab, false);
                }
            }
        }
        let slab = self.unused.pop().unwrap_or_else(|| {
            self.slabs.push(0);
            self.slabs.len() as u32 - 1
        });
        self.set(slab, 1);
        (slab, true)
    }

    fn set(&mut self, slab: u32, live: u32) {
        if let Some(slot) = self.slabs.get_mut(slab as usize) {
            *slot = live;
        }
        if live < self.slots {
            if let Some(list) = self.by_live.get_mut(live as usize) {
                list.push(slab);
            }
        }
    }

    /// Gives a slot back; returns whether the slab went with it.
    fn give(&mut self, slab: u32) -> bool {
        let Some(live) = self.slabs.get(slab as usize).copied().filter(|&l| l != 0 && l != u32::MAX) else {
            return false;
        };
        let slabs = &self.slabs;
        if live == 1 {
            if let Some(empty) = self.by_live.first_mut() {
                empty.retain(|&s| slabs.get(s as usize) == Some(&0));
                if empty.len() >= MIN_PARTIAL {
                    if let Some(slot) = self.slabs.get_mut(slab as usize) {
                        *slot = u32::MAX;
                    }
                    self.unused.push(slab);
                    return true;
                }
            }
        }
        self.set(slab, live - 1);
        false
    }
}

/// The order of a slab: the smallest that wastes at most a sixteenth, then an eighth, then a quarter of it, and holds
/// some objects; as calculate_order of mm/slub.c does for a machine of few CPUs.
pub fn slab_order(size: u64, page_size: u64) -> u32 {
    const OBJECTS_MIN: u64 = 8;
    for objects in [OBJECTS_MIN, 4, 2, 1] {
        for fraction in [16, 8, 4] {
            for order in 0..=ORDER_MAX {
                let bytes = page_size << order;
                if bytes >= objects * size && (bytes % size) * fraction <= bytes {
                    return order;
                }
            }
        }
    }
    (0..16).find(|order| page_size << order >= size).unwrap_or(16)
}

impl Played {
    fn new(layout: Layout) -> Self {
        Self { layout, page_size: 4096, ..Self::default() }
    }

    /// What was played.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    fn pass(&mut self, time: u64) {
        if let Some(last) = self.last {
            self.held_time += u128::from(self.bytes_held) * u128::from(time.saturating_sub(last));
        }
        self.last = Some(time);
    }

    fn alloc(&mut self, change: &Change<'_>) {
        let req = change.site.bytes_req;
        let Some(size) = self.layout.size(req, change.site.bytes_alloc) else {
            self.not_served += 1;
            return;
        };
        let apart = self.layout.apart.contains(&change.site.caller);
        let key = size << 1 | u64::from(apart);
        let (pools, page_size) = (&mut self.pools, self.page_size);
        let number = *self.pool_of.entry(key).or_insert_with(|| {
            pools.push(Pool::new(size, page_size));
            pools.len() as u32 - 1
        });
        let Some(pool) = self.pools.get_mut(number as usize) else { return };
        let (slab, is_new) = pool.take();
        let slab_bytes = pool.slab_bytes;
        self.objects.insert(change.address, (number, slab, size));
        self.bytes_held += if is_new { slab_bytes } else { 0 };
        self.bytes_live += size;
        self.bytes_alloc += size;
        self.bytes_wasted += size.saturating_sub(req);
        self.bytes_held_max = self.bytes_held_max.max(self.bytes_held);
        self.bytes_live_max = self.bytes_live_max.max(self.bytes_live);
    }

    fn free(&mut self, address: u64) {
        let Some((pool, slab, size)) = self.objects.remove(&address) else { return };
        self.bytes_live = self.bytes_live.saturating_sub(size);
        if let Some(pool) = self.pools.get_mut(pool as usize) {
            if pool.give(slab) {
                self.bytes_held = self.bytes_held.saturating_sub(pool.slab_bytes);
            }
        }
    }
}

/// The sink: layouts side by side, all of kmalloc's objects but those of whole pages.
#[derive(Debug, Default)]
pub struct Replay {
    /// Each layout, played.
    pub played: Vec<Played>,
    /// By bytes asked for and bytes handed out.
    pub requests: HashMap<(u64, u64), Requests, IntHash>,
    /// By number of the call site: objects, and how long all of them together were held.
    pub callers: Vec<Requests>,
    /// By address: when it was born; bytes asked for, bytes handed out, call site.
    births: HashMap<u64, (u64, (u64, u64, u32)), IntHash>,
    window: (u64, u64),
}

/// Requests that have something in common.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Requests {
    /// Allocations.
    pub allocs: u64,
    /// Now live.
    pub live: u64,
    /// Object time, in the clock's unit.
    pub held: u128,
}

impl Replay {
    /// For these layouts.
    pub fn new(layouts: Vec<Layout>) -> Self {
        let window = (0, u64::MAX);
        Self { played: layouts.into_iter().map(Played::new).collect(), window, ..Self::default() }
    }

    /// Takes over what the rules depend on.
    pub fn learn(&mut self, rules: &Rules) {
        self.window = rules.window;
        self.played.iter_mut().for_each(|p| p.page_size = rules.page_size);
    }

    /// An object begins or ends.
    pub fn changed(&mut self, change: &Change<'_>) {
        let site = change.site;
        if site.api != Api::Kmalloc || site.is_large || !change.selected || change.time > self.window.1 {
            return;
        }
        self.played.iter_mut().for_each(|p| p.pass(change.time));
        let requests = self.requests.entry((site.bytes_req, site.bytes_alloc)).or_default();
        let caller = grown(&mut self.callers, site.caller);
        if change.is_birth {
            requests.allocs += 1;
            requests.live += 1;
            caller.allocs += 1;
            caller.live += 1;
            let kind = (site.bytes_req, site.bytes_alloc, site.caller);
            self.births.insert(change.address, (change.time, kind));
            self.played.iter_mut().for_each(|p| p.alloc(change));
        } else {
            requests.live = requests.live.saturating_sub(1);
            caller.live = caller.live.saturating_sub(1);
            let born = self.births.remove(&change.address).map_or(change.time, |b| b.0);
            let held = u128::from(change.time.saturating_sub(born));
            requests.held += held;
            caller.held += held;
            self.played.iter_mut().for_each(|p| p.free(change.address));
        }
    }

    /// What is still live is held to the end.
    pub fn finish(&mut self, end: u64) {
        self.played.iter_mut().for_each(|p| p.pass(end));
        for (born, site) in std::mem::take(&mut self.births).into_values() {
            let held = u128::from(end.saturating_sub(born));
            if let Some(requests) = self.requests.get_mut(&(site.0, site.1)) {
                requests.held += held;
            }
            grown(&mut self.callers, site.2).held += held;
        }
    }
}

/// The `count` classes that save most besides the kernel's, by object time of each request: exact, by dynamic
/// programming over the sizes that were asked for, rounded up to 8 bytes.
///
/// `requests` are bytes asked for, bytes handed out, weight.
pub fn best_classes(requests: &[(u64, u64, u128)], count: usize) -> Vec<u64> {
    /// Sizes that are looked at, those that waste most: the time grows with the square of their number.
    const SIZES_MAX: usize = 160;
    let mut heavy: Vec<&(u64, u64, u128)> = requests.iter().filter(|r| r.1 > r.0).collect();
    heavy.sort_by_key(|r| (std::cmp::Reverse(u128::from(r.1 - r.0).saturating_mul(r.2)), r.0));
    let mut sizes: Vec<u64> = heavy.iter().take(SIZES_MAX).map(|r| r.0.next_multiple_of(8)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    // saved(j, next): classes sizes[j] and sizes[next] are neighbours; what lies between gets sizes[next], or less by
    // the kernel's own classes.
    let cost = |low: Option<u64>, high: u64| -> u128 {
        let within = requests.iter().filter(|r| r.0 <= high && low.is_none_or(|l| r.0 > l));
        within.map(|r| u128::from(high.min(r.1)) * r.2).sum()
    };
    let Some(&largest) = sizes.last() else { return Vec::new() };
    let tail = |low: Option<u64>| -> u128 {
        let within = requests.iter().filter(|r| low.is_none_or(|l| r.0 > l) && r.0 <= largest);
        within.map(|r| u128::from(r.1) * r.2).sum()
    };
    // best[j]: lowest cost of all requests up to sizes[j] with that as a class, and the classes.
    let mut best: Vec<(u128, Vec<u64>)> = sizes.iter().map(|&s| (cost(None, s), vec![s])).collect();
    let mut winner = (tail(None), Vec::new());
    for _ in 0..count {
        for (size, (upto, classes)) in sizes.iter().zip(&best) {
            let all = upto + tail(Some(*size));
            if all < winner.0 {
                winner = (all, classes.clone());
            }
        }
        best = (0..sizes.len())
            .map(|j| {
                let mut choice = best.get(j).cloned().unwrap_or_default();
                for (low, (upto, classes)) in sizes.iter().zip(&best).take(j) {
                    let Some(&high) = sizes.get(j) else { continue };
                    let all = upto + cost(Some(*low), high);
                    if all < choice.0 {
                        let mut classes = classes.clone();
                        classes.push(high);
                        choice = (all, classes);
                    }
                }
                choice
            })
            .collect();
    }
    winner.1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_those_of_the_kernel() {
        // pagesperslab of /proc/slabinfo on kernels of 4 CPUs (x86-64 6.1): kmalloc-64 to kmalloc-8k.
        let orders: Vec<u32> = [64, 96, 128, 256, 4096, 8192].map(|size| slab_order(size, 4096)).to_vec();
        assert_eq!(orders, [0, 0, 0, 0, 3, 3]);
    }

    #[test]
    fn layouts_change_what_the_kernel_gave() {
        let layout = Layout { added: vec![160, 320], dropped: vec![96], ..Layout::default() };
        assert_eq!(layout.size(150, 192), Some(160));
        assert_eq!(layout.size(161, 192), Some(192));
        assert_eq!(layout.size(90, 96), Some(128));
        assert_eq!(layout.size(5000, 8192), Some(8192));
        assert_eq!(Layout::default().size(5, 64), Some(64), "as the kernel did, whatever its smallest class");
        let only = Layout { only: Some(vec![128]), ..Layout::default() };
        assert_eq!((only.size(100, 128), only.size(200, 256)), (Some(128), None));
    }

    #[test]
    fn the_best_classes_are_found() {
        // 130 bytes for long, in 192; 300 bytes for shorter, in 512.
        let requests = [(130, 192, 1000), (300, 512, 100), (64, 64, 5000)];
        assert_eq!(best_classes(&requests, 1), [136], "saves 56,000, the other 20,800");
        assert_eq!(best_classes(&requests, 2), [136, 304]);
        assert_eq!(best_classes(&requests, 5), [136, 304], "more would save nothing");
        assert!(best_classes(&[(64, 64, 1)], 3).is_empty());
    }

    #[test]
    fn a_pool_fills_the_fullest_slab_and_gives_empty_ones_back() {
        let mut pool = Pool::new(1024, 4096);
        let slots = pool.slots;
        let taken: Vec<(u32, bool)> = (0..slots * 8).map(|_| pool.take()).collect();
        assert_eq!(taken.iter().filter(|t| t.1).count(), 8);
        let given = taken.iter().filter(|t| pool.give(t.0)).count();
        assert_eq!(given, 8 - MIN_PARTIAL);
        assert!(!pool.take().1, "an empty one that was kept");
    }
}
