//! Free pages and watermarks of zones from /proc/zoneinfo.

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
pub fn parse(text: &[u8]) -> Vec<ZoneInfo> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(parse(text), [zone(0, "DMA", [3776, 145, 174]), zone(12, "Normal", [7, 2, 3])]);
        for broken in
            [&b""[..], b"Node", b"Node x, zone DMA\n", b"Node 1, zone A\n  pages free z\n low 1\n high 2\n"]
        {
            assert_eq!(parse(broken), []);
        }
    }
}
