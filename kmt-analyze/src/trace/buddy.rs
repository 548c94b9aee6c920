//! Free memory from /proc/buddyinfo and /proc/pagetypeinfo, and the kernel's indices of its fragmentation.

/// Free blocks of one zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone {
    pub node: u32,
    /// Zone.
    pub name: String,
    /// Free blocks by order.
    pub free: Vec<u64>,
}

/// Parses /proc/buddyinfo; other lines are skipped. Its numbers exclude pages on per-CPU lists.
pub fn parse(text: &[u8]) -> Vec<Zone> {
    let text = String::from_utf8_lossy(text);
    let line = |line: &str| {
        // Node 0, zone    DMA32      1      0      3 ...
        let (node, rest) = line.strip_prefix("Node")?.split_once(", zone")?;
        let mut words = rest.split_ascii_whitespace();
        let name = words.next()?.to_owned();
        let free: Option<Vec<u64>> = words.map(|w| w.parse().ok()).collect();
        Some(Zone { node: node.trim().parse().ok()?, name, free: free.filter(|f| f.len() <= 64)? })
    };
    text.lines().filter_map(line).collect()
}

impl Zone {
    /// Free pages.
    pub fn pages(&self) -> u64 {
        self.free
            .iter()
            .enumerate()
            .fold(0, |sum, (order, &n)| sum.saturating_add(n.saturating_mul(1 << order)))
    }

    /// Free blocks of that order that larger ones can be split into.
    fn suitable(&self, order: usize) -> u64 {
        let parts = self.free.iter().enumerate().skip(order);
        parts.fold(0, |sum, (o, &n)| sum.saturating_add(n.saturating_mul(1 << (o - order))))
    }

    /// Share of the free pages that an allocation of that order cannot use, in thousandths: `unusable_free_index` of
    /// mm/vmstat.c (2.6.35 to 7.2). 0: all can be used.
    pub fn unusable_index(&self, order: usize) -> u64 {
        let pages = self.pages();
        if pages == 0 {
            return 1000;
        }
        let suitable = self.suitable(order).saturating_mul(1 << order);
        (pages - suitable.min(pages)).saturating_mul(1000) / pages
    }

    /// Index from failure for lack of memory (towards 0) to failure for fragmentation (towards 1000); -1000: the
    /// allocation would succeed. `__fragmentation_index` of mm/vmstat.c (2.6.35 to 7.2).
    pub fn extfrag_index(&self, order: usize) -> i64 {
        let blocks = self.free.iter().copied().fold(0, u64::saturating_add);
        if blocks == 0 {
            return 0;
        }
        if self.suitable(order) > 0 {
            return -1000;
        }
        let wanted = self.pages().saturating_mul(1000) / (1u64 << order);
        1000i64.saturating_sub(i64::try_from(wanted.saturating_add(1000) / blocks).unwrap_or(i64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_are_those_of_the_kernel() {
        let zones =
            parse(b"Node 0, zone      DMA      4      0      0      1\nNode 1, zone Normal 0 0 0 0\nx\n");
        let [zone, empty] = zones.as_slice() else { panic!("{zones:?}") };
        assert_eq!((zone.pages(), empty.node, empty.pages()), (12, 1, 0));
        // Order 1 can use the block of order 3, 8 of 12 pages.
        assert_eq!((zone.unusable_index(0), zone.unusable_index(1), zone.unusable_index(4)), (0, 333, 1000));
        assert_eq!(
            (zone.extfrag_index(3), empty.extfrag_index(3), empty.unusable_index(0)),
            (-1000, 0, 1000)
        );
        // 12 pages in 5 blocks, 16 requested: 1000 - (1000 + 750) / 5.
        assert_eq!(zone.extfrag_index(4), 650);
    }
}
