//! The kernel's counts of memory in the recording, at its begin and its end.
//!
//! /proc/meminfo has sums, /proc/zoneinfo free pages and watermarks of zones, /proc/buddyinfo and /proc/pagetypeinfo free memory
//! by order and type. The kernel's indices of fragmentation are computed from the last two.

use kmt_format::read::Metadata;

/// Bytes of a line such as `Shmem:  123 kB`.
fn bytes(meminfo: &[u8], name: &str) -> Option<u64> {
    let text = String::from_utf8_lossy(meminfo);
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// Bytes of a line at the begin and at the end of the recording.
pub fn twice(metadata: &Metadata<'_>, name: &str) -> Option<(u64, u64)> {
    let at = |when: &str| bytes(metadata.attachment(&format!("meminfo.{when}"))?, name);
    Some((at("before")?, at("after")?))
}

/// True if the kernel has swap, at the begin or the end; `None`: unknown.
pub fn has_swap(metadata: &Metadata<'_>) -> Option<bool> {
    twice(metadata, "SwapTotal").map(|swap| swap != (0, 0))
}

/// Pages of one zone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ZoneInfo {
    pub node: u32,
    /// Zone.
    pub name: String,
    /// Free pages.
    pub free: u64,
    /// Below this number of free pages kswapd wakes up.
    pub low: u64,
    /// At this number of free pages kswapd stops.
    pub high: u64,
}

/// Parses /proc/zoneinfo; zones without free pages and watermarks are left out. Its lines are those of
/// `zoneinfo_show_print` (mm/vmstat.c, 4.4 to 7.2). Watermarks of per-CPU lists have a colon.
pub fn zoneinfo(text: &[u8]) -> Vec<ZoneInfo> {
    let text = String::from_utf8_lossy(text);
    let zones = text.split("\nNode ").map(|zone| zone.strip_prefix("Node ").unwrap_or(zone));
    zones.filter_map(zone).collect()
}

/// One zone, from its number of node on.
fn zone(text: &str) -> Option<ZoneInfo> {
    let (head, body) = text.split_once('\n')?;
    let (node, name) = head.split_once(", zone")?;
    let number = |key: &[&str]| {
        body.lines().find_map(|line| {
            let mut words = line.split_ascii_whitespace();
            key.iter().all(|word| words.next() == Some(word)).then(|| words.next()?.parse().ok())?
        })
    };
    Some(ZoneInfo {
        node: node.trim().parse().ok()?,
        name: name.trim().to_owned(),
        free: number(&["pages", "free"])?,
        low: number(&["low"])?,
        high: number(&["high"])?,
    })
}

/// Pages of all zones, of /proc/zoneinfo.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ZonePages {
    /// Pages that the page allocator manages: MemTotal.
    pub managed: u64,
    /// Free pages in lists of CPUs. They are neither in `free` of a zone nor in MemFree.
    pub on_cpu_lists: u64,
}

/// Sums over the zones of /proc/zoneinfo; `None`: there are no zones with lists of CPUs. Its lines are those of
/// `zoneinfo_show_print` (mm/vmstat.c, 4.4 to 7.2).
pub fn zone_pages(text: &[u8]) -> Option<ZonePages> {
    let text = String::from_utf8_lossy(text);
    let (mut sums, mut has_lists) = (ZonePages::default(), false);
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let (key, number) = (words.next(), words.next().and_then(|word| word.parse::<u64>().ok()));
        match (key, number) {
            (Some("managed"), Some(pages)) => sums.managed = sums.managed.saturating_add(pages),
            (Some("count:"), Some(pages)) => {
                has_lists = true;
                sums.on_cpu_lists = sums.on_cpu_lists.saturating_add(pages);
            }
            _ => {}
        }
    }
    has_lists.then_some(sums)
}

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
pub fn buddy(text: &[u8]) -> Vec<Zone> {
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
    use super::{bytes, *};

    #[test]
    fn lines_are_in_kib() {
        assert_eq!(bytes(b"MemFree:  7 kB\nPercpu:          864 kB\n", "Percpu"), Some(864 * 1024));
        assert_eq!(bytes(b"MemFree:  7 kB\nShmemHugePages: 8 kB\n", "Shmem"), None);
        assert_eq!(bytes(b"Percpu: 99999999999999999999 kB\n", "Percpu"), None);
        assert_eq!(bytes(b"HugePages_Total: 3\n", "HugePages_Total"), None);
    }

    #[test]
    fn zones_are_read_in_old_and_new_forms() {
        let text = b"Node 0, zone      DMA\n  per-node stats\n      nr_x 50\n  pages free     3776\n        boost    0\n        \
            min      116\n        low      145\n        high     174\n  pagesets\n    cpu: 0\n              count: 1\n              \
            high:  9\nNode 0, zone  Movable\n  pages free     0\nNode 12, zone   Normal\n  pages free     7\n        min      \
            1\n        low      2\n        high     3\n        scanned  0\n";
        let zone = |node, name: &str, [free, low, high]: [u64; 3]| ZoneInfo {
            node,
            name: name.to_owned(),
            free,
            low,
            high,
        };
        assert_eq!(zoneinfo(text), [zone(0, "DMA", [3776, 145, 174]), zone(12, "Normal", [7, 2, 3])]);
        for broken in
            [&b""[..], b"Node", b"Node x, zone DMA\n", b"Node 1, zone A\n  pages free z\n low 1\n high 2\n"]
        {
            assert_eq!(zoneinfo(broken), []);
        }
    }

    #[test]
    fn pages_on_lists_of_cpus_are_those_of_all_zones() {
        let text = b"Node 0, zone DMA\n  pages free 3\n        managed  3840\n  pagesets\n    cpu: 0\n              \
            count: 24\n              high:  36\n    cpu: 1\n              count:    5\nNode 0, zone Normal\n        \
            managed  100\n  pagesets\n    cpu: 0\n              count: 1\nNode 0, zone Movable\n        managed  0\n";
        assert_eq!(zone_pages(text), Some(ZonePages { managed: 3940, on_cpu_lists: 30 }));
        assert_eq!(zone_pages(b"Node 0, zone DMA\n  managed 7\n"), None);
    }

    #[test]
    fn indices_are_those_of_the_kernel() {
        let zones =
            buddy(b"Node 0, zone      DMA      4      0      0      1\nNode 1, zone Normal 0 0 0 0\nx\n");
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
