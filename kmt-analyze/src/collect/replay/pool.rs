//! The slabs of one size class.

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
    /// Live objects of each slab; `u32::MAX`: freed.
    slabs: Vec<u32>,
    /// Slabs with room, by number of live objects.
    by_live: Vec<Vec<u32>>,
    /// A bit for each of these lists that is not empty.
    filled: Vec<u64>,
    unused: Vec<u32>,
}

impl Pool {
    /// A pool for objects of that size.
    pub fn new(size: u64, page_size: u64) -> Self {
        let order = slab_order(size, page_size);
        let slab_bytes = page_size << order;
        let slots = (slab_bytes / size.max(1)).clamp(1, SLOTS_MAX) as u32;
        let lists = slots as usize + 1;
        Self {
            size,
            slots,
            slab_bytes,
            slabs: Vec::new(),
            by_live: vec![Vec::new(); lists],
            filled: vec![0; lists.div_ceil(64)],
            unused: Vec::new(),
        }
    }

    /// Takes a slot; returns the slab, and true if it is new.
    pub fn take(&mut self) -> (u32, bool) {
        while let Some(live) = self.fullest() {
            while let Some(slab) = self.by_live.get_mut(live as usize).and_then(Vec::pop) {
                // The entry may be outdated.
                if self.slabs.get(slab as usize) == Some(&live) {
                    self.set(slab, live + 1);
                    return (slab, false);
                }
            }
            self.mark(live, false);
        }
        let slab = self.unused.pop().unwrap_or_else(|| {
            self.slabs.push(0);
            self.slabs.len() as u32 - 1
        });
        self.set(slab, 1);
        (slab, true)
    }

    /// Number of live objects of the fullest list that may have a slab.
    fn fullest(&self) -> Option<u32> {
        let (word, bits) = self.filled.iter().enumerate().rfind(|(_, bits)| **bits != 0)?;
        Some(word as u32 * 64 + bits.ilog2())
    }

    fn mark(&mut self, live: u32, is_filled: bool) {
        if let Some(word) = self.filled.get_mut(live as usize / 64) {
            let bit = 1 << (live % 64);
            *word = if is_filled { *word | bit } else { *word & !bit };
        }
    }

    fn set(&mut self, slab: u32, live: u32) {
        if let Some(slot) = self.slabs.get_mut(slab as usize) {
            *slot = live;
        }
        if live < self.slots {
            if let Some(list) = self.by_live.get_mut(live as usize) {
                list.push(slab);
            }
            self.mark(live, true);
        }
    }

    /// Frees a slot; returns true if the slab was freed with it.
    pub fn give(&mut self, slab: u32) -> bool {
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
}
