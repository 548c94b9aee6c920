//! Size classes of a simulated layout, with their slabs and live objects.
//!
//! A request has a class in each layout, and an object a slot in each. The classes that save most are suggested to `what-if`.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::Slot;
use crate::int_hash::IntHash;

/// Number of empty slabs that a class keeps: MIN_PARTIAL of mm/slub.c, 2.6.22 to 7.2.
const MIN_PARTIAL: usize = 5;
/// Largest number of objects of a slab: MAX_OBJS_PER_PAGE of mm/slub.c. A file may claim pages of any size.
const SLOTS_MAX: u64 = 32_767;
/// Largest order of a slab: default maximum of slab_order, PAGE_ALLOC_COSTLY_ORDER.
const ORDER_MAX: u32 = 3;

/// Slabs of one size, with their live objects.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Pool {
    /// Bytes of an object.
    pub size: u64,
    /// Objects of a slab.
    pub slots: u32,
    /// Bytes of a slab.
    pub slab_bytes: u64,
    slabs: Vec<Slab>,
    /// Lists of slabs with room, by number of live objects: the first slab of each, which got this number last.
    lists: Vec<u32>,
    /// A bit for each of these lists that is not empty.
    filled: Vec<u64>,
    unused: Vec<u32>,
}

/// A slab and its neighbours in its list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slab {
    /// Number of live objects.
    live: u32,
    before: u32,
    after: u32,
}

/// No slab.
const NONE: u32 = u32::MAX;

impl Slab {
    /// Of a slab that was freed, or is not used yet.
    const FREED: Self = Self { live: u32::MAX, before: NONE, after: NONE };
}

impl Pool {
    /// A pool for objects of that size.
    pub fn new(size: u64, page_size: u64) -> Self {
        let order = slab_order(size, page_size);
        let slab_bytes = page_size << order;
        let slots = (slab_bytes / size.max(1)).clamp(1, SLOTS_MAX) as u32;
        let (lists, filled) = (vec![NONE; slots as usize], vec![0; slots.div_ceil(64) as usize]);
        Self { size, slots, slab_bytes, slabs: Vec::new(), lists, filled, unused: Vec::new() }
    }

    /// Takes a slot; returns the slab, and true if it is new.
    pub fn take(&mut self) -> (u32, bool) {
        if let Some(slab) = self.fullest() {
            let live = self.unlink(slab);
            self.link(slab, live + 1);
            return (slab, false);
        }
        let slab = self.unused.pop().unwrap_or_else(|| {
            self.slabs.push(Slab::FREED);
            self.slabs.len() as u32 - 1
        });
        self.link(slab, 1);
        (slab, true)
    }

    /// The fullest slab with room.
    fn fullest(&self) -> Option<u32> {
        let (word, bits) = self.filled.iter().enumerate().rfind(|(_, bits)| **bits != 0)?;
        self.lists.get(word * 64 + bits.ilog2() as usize).copied()
    }

    fn mark(&mut self, live: u32, is_filled: bool) {
        if let Some(word) = self.filled.get_mut(live as usize / 64) {
            let bit = 1 << (live % 64);
            *word = if is_filled { *word | bit } else { *word & !bit };
        }
    }

    /// Adds a slab with that number of live objects to their list; a full one is in none.
    fn link(&mut self, slab: u32, live: u32) {
        let mut after = NONE;
        if let Some(first) = self.lists.get_mut(live as usize) {
            after = std::mem::replace(first, slab);
            match self.slabs.get_mut(after as usize) {
                Some(after) => after.before = slab,
                None => self.mark(live, true),
            }
        }
        if let Some(own) = self.slabs.get_mut(slab as usize) {
            *own = Slab { live, before: NONE, after };
        }
    }

    /// Removes a slab from its list; returns its number of live objects.
    fn unlink(&mut self, slab: u32) -> u32 {
        let Some(Slab { live, before, after }) = self.slabs.get(slab as usize).copied() else { return 0 };
        if let Some(before) = self.slabs.get_mut(before as usize) {
            before.after = after;
        } else if let Some(first) = self.lists.get_mut(live as usize) {
            *first = after;
            if after == NONE {
                self.mark(live, false);
            }
        }
        if let Some(after) = self.slabs.get_mut(after as usize) {
            after.before = before;
        }
        live
    }

    /// Frees a slot; returns true if the slab was freed with it.
    pub fn give(&mut self, slab: u32) -> bool {
        if !self.slabs.get(slab as usize).is_some_and(|s| s.live != 0 && s.live != Slab::FREED.live) {
            return false;
        }
        let live = self.unlink(slab);
        let is_freed = live == 1 && self.has_empty_slabs();
        if is_freed {
            self.unused.push(slab);
            if let Some(own) = self.slabs.get_mut(slab as usize) {
                *own = Slab::FREED;
            }
        } else {
            self.link(slab, live - 1);
        }
        is_freed
    }

    /// True if as many slabs are empty as are kept.
    fn has_empty_slabs(&self) -> bool {
        let slab = |number: u32| self.slabs.get(number as usize).map(|slab| (number, slab.after));
        let first = self.lists.first().and_then(|first| slab(*first));
        std::iter::successors(first, |(_, after)| slab(*after)).nth(MIN_PARTIAL - 1).is_some()
    }
}

/// Order of a slab: the smallest that wastes at most a sixteenth, else an eighth, else a quarter of it, and holds some
/// objects; as calculate_order of mm/slub.c on a machine with few CPUs.
pub fn slab_order(size: u64, page_size: u64) -> u32 {
    const OBJECTS_MIN: u64 = 8;
    for objects in [OBJECTS_MIN, 4, 2, 1] {
        for fraction in [16, 8, 4] {
            for order in 0..=ORDER_MAX {
                let bytes = page_size << order;
                if bytes / objects >= size && (bytes % size.max(1)).saturating_mul(fraction) <= bytes {
                    return order;
                }
            }
        }
    }
    (0..16).find(|order| page_size << order >= size).unwrap_or(16)
}

/// Live objects.
#[derive(Debug, Default)]
pub struct Objects {
    by_address: HashMap<u64, Object, IntHash>,
    /// Slots of all objects, one for each layout, in blocks.
    slots: Vec<Slot>,
    /// Blocks of no object.
    unused: Vec<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Object {
    born: u64,
    site: u32,
    block: u32,
}

impl Objects {
    /// Adds an object, and returns its slots. An object at the same address loses its time and site, and its slots where a
    /// layout gives others.
    pub fn insert(&mut self, address: u64, born: u64, site: u32, layouts: usize) -> &mut [Slot] {
        let (block, is_new) = match self.by_address.entry(address) {
            Entry::Occupied(mut entry) => {
                let object = entry.get_mut();
                (object.born, object.site) = (born, site);
                (object.block, false)
            }
            Entry::Vacant(entry) => {
                let slots = &mut self.slots;
                let block = self.unused.pop().unwrap_or_else(|| {
                    let block = slots.len().checked_div(layouts).unwrap_or(0);
                    slots.resize(slots.len().saturating_add(layouts), Slot::NONE);
                    block as u32
                });
                entry.insert(Object { born, site, block });
                (block, true)
            }
        };
        let slots = self.slots.get_mut(range(block, layouts)).unwrap_or_default();
        if is_new {
            slots.fill(Slot::NONE);
        }
        slots
    }

    /// Removes an object, and returns its time of birth and its slots; there are none without such an object.
    pub fn remove(&mut self, address: u64, layouts: usize) -> (Option<u64>, &[Slot]) {
        let Some(object) = self.by_address.remove(&address) else { return (None, &[]) };
        self.unused.push(object.block);
        let slots = self.slots.get(range(object.block, layouts)).unwrap_or_default();
        (Some(object.born), slots)
    }

    /// Time of birth and site of all objects.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        self.by_address.values().map(|object| (object.born, object.site))
    }
}

/// Places of the slots of a block.
fn range(block: u32, layouts: usize) -> Range<usize> {
    let first = (block as usize).saturating_mul(layouts);
    first..first.saturating_add(layouts)
}

/// A set of size classes. By default that of the traced kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layout {
    /// Name in reports.
    pub name: String,
    /// All classes in bytes, rising; `None`: the kernel's.
    pub only: Option<Vec<u64>>,
    /// Additional classes, rising.
    pub added: Vec<u64>,
    /// Removed classes.
    pub dropped: Vec<u64>,
    /// Numbers of call sites whose objects get their own slabs.
    pub apart: HashSet<u32, IntHash>,
}

/// Classes of kmalloc (mm/slab_common.c, kmalloc_info).
pub const CLASSES: [u64; 13] = [8, 16, 32, 64, 96, 128, 192, 256, 512, 1024, 2048, 4096, 8192];

impl Layout {
    /// Bytes of the class of a request for which the kernel allocated `bytes_alloc`; `None`: no class can serve it.
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

/// The `count` additional classes that save most, by object time of each request: exact, by dynamic programming over
/// the requested sizes, rounded up to 8 bytes.
///
/// `requests` are bytes requested, bytes allocated, weight.
pub fn best_classes(requests: &[(u64, u64, u128)], count: usize) -> Vec<u64> {
    /// Number of candidate sizes, those that waste most: the time grows with the square of their number.
    const SIZES_MAX: usize = 160;
    let mut heavy: Vec<&(u64, u64, u128)> = requests.iter().filter(|r| r.1 > r.0).collect();
    heavy.sort_by_key(|r| (std::cmp::Reverse(u128::from(r.1 - r.0).saturating_mul(r.2)), r.0));
    let mut sizes: Vec<u64> = heavy.iter().take(SIZES_MAX).map(|r| r.0.next_multiple_of(8)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    // saved(j, next): classes sizes[j] and sizes[next] are neighbours; a size between them gets sizes[next], or less by
    // the kernel's own classes.
    let cost = |low: Option<u64>, high: u64| -> u128 {
        let within = requests.iter().filter(|r| r.0 <= high && low.is_none_or(|l| r.0 > l));
        within.map(|r| u128::from(high.min(r.1)).saturating_mul(r.2)).fold(0, u128::saturating_add)
    };
    let Some(&largest) = sizes.last() else { return Vec::new() };
    let tail = |low: Option<u64>| -> u128 {
        let within = requests.iter().filter(|r| low.is_none_or(|l| r.0 > l) && r.0 <= largest);
        within.map(|r| u128::from(r.1).saturating_mul(r.2)).fold(0, u128::saturating_add)
    };
    // best[j]: lowest cost of all requests up to sizes[j] with sizes[j] as a class, and the classes.
    let mut best: Vec<(u128, Vec<u64>)> = sizes.iter().map(|&s| (cost(None, s), vec![s])).collect();
    let mut winner = (tail(None), Vec::new());
    for _ in 0..count {
        for (size, (upto, classes)) in sizes.iter().zip(&best) {
            let all = upto.saturating_add(tail(Some(*size)));
            if all < winner.0 {
                winner = (all, classes.clone());
            }
        }
        best = (0..sizes.len())
            .map(|j| {
                let mut choice = best.get(j).cloned().unwrap_or_default();
                for (low, (upto, classes)) in sizes.iter().zip(&best).take(j) {
                    let Some(&high) = sizes.get(j) else { continue };
                    let all = upto.saturating_add(cost(Some(*low), high));
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
    fn absurd_sizes_are_bounded() {
        for (size, page_size) in [(0, 4096), (1, 1 << 62), (u64::MAX, 4096), (u64::MAX, 1 << 63)] {
            assert!(u64::from(Pool::new(size, page_size).slots) <= SLOTS_MAX);
        }
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

    /// Slabs with their live objects and the time of the last change of that number: 0 for those that are not used.
    #[derive(Default)]
    struct Model {
        slabs: Vec<(u32, u64)>,
        unused: Vec<u32>,
        time: u64,
    }

    impl Model {
        fn set(&mut self, slab: u32, live: u32) {
            self.time += 1;
            self.slabs[slab as usize] = (live, self.time);
        }

        fn take(&mut self, slots: u32) -> (u32, bool) {
            let room = self.slabs.iter().zip(0..).filter(|((live, time), _)| *live < slots && *time > 0);
            if let Some((&(live, _), slab)) = room.max_by_key(|(slab, _)| **slab) {
                self.set(slab, live + 1);
                return (slab, false);
            }
            let slab = self.unused.pop().unwrap_or(self.slabs.len() as u32);
            self.slabs.resize(self.slabs.len().max(slab as usize + 1), (0, 0));
            self.set(slab, 1);
            (slab, true)
        }

        fn give(&mut self, slab: u32) -> bool {
            let empty = self.slabs.iter().filter(|(live, time)| *live == 0 && *time > 0).count();
            let live = self.slabs[slab as usize].0;
            if live == 1 && empty >= MIN_PARTIAL {
                self.slabs[slab as usize] = (0, 0);
                self.unused.push(slab);
                return true;
            }
            self.set(slab, live - 1);
            false
        }
    }

    #[test]
    fn slots_are_those_of_a_slow_model() {
        let mut freed = 0;
        for (size, objects) in [(4096, 120), (1024, 300), (192, 400), (48, 450), (70_000, 20)] {
            let (mut pool, mut model) = (Pool::new(size, 4096), Model::default());
            let (mut seed, mut held) = (size, Vec::new());
            for step in 0..6_000 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                // Most of the time few objects come and go, sometimes nearly all go.
                let goal = if step % 2_000 < 1_500 { objects } else { 3 };
                let random = (seed >> 33) as usize;
                if held.is_empty() || random % 97 > 48 * held.len() / goal {
                    let taken = pool.take();
                    assert_eq!(taken, model.take(pool.slots), "{size}: {step}");
                    held.push(taken.0);
                } else {
                    let slab = held.swap_remove(random / 97 % held.len());
                    let is_freed = pool.give(slab);
                    assert_eq!(is_freed, model.give(slab), "{size}: {step}");
                    freed += usize::from(is_freed);
                }
            }
        }
        assert!(freed > 50, "{freed}");
    }

    #[test]
    fn a_block_is_used_again_without_the_slots_of_the_object_before() {
        let mut objects = Objects::default();
        let at = |pool| Slot { pool, slab: 7 };
        objects.insert(0x10, 100, 1, 2).fill(at(3));
        // The same address again: a layout that gives no slot leaves the old one.
        objects.insert(0x10, 200, 2, 2)[0] = at(4);
        assert_eq!(objects.remove(0x10, 2), (Some(200), &[at(4), at(3)][..]));
        assert_eq!(objects.remove(0x10, 2), (None, &[][..]));
        assert_eq!(*objects.insert(0x20, 300, 1, 2), [Slot::NONE; 2]);
        assert_eq!(objects.slots.len(), 2);
        assert_eq!(objects.iter().collect::<Vec<_>>(), [(300, 1)]);
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
        // 130 bytes held for long, in 192; 300 bytes held shorter, in 512.
        let requests = [(130, 192, 1000), (300, 512, 100), (64, 64, 5000)];
        assert_eq!(best_classes(&requests, 1), [136], "saves 56,000, the other 20,800");
        assert_eq!(best_classes(&requests, 2), [136, 304]);
        assert_eq!(best_classes(&requests, 5), [136, 304], "more would save nothing");
        assert!(best_classes(&[(64, 64, 1)], 3).is_empty());
    }
}
