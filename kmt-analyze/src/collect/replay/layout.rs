//! Size classes: the class of a request, and the classes that save most.

use std::collections::HashSet;

use crate::int_hash::IntHash;

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
