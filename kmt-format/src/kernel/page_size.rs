//! The page size of a target that did not record it.

/// Page size in bytes from `/proc/meminfo` and `/proc/vmstat`, which count the same memory in KiB and in pages.
///
/// Pairs of counters are compared (free, anonymous, file pages); the two files were read at slightly different times,
/// so the ratio is rounded to a power of two from 4 KiB to 256 KiB. `None` unless the pairs agree.
pub fn page_size_from_snapshots(meminfo: &str, vmstat: &str) -> Option<u64> {
    const PAIRS: [(&str, &str); 4] = [
        ("MemFree:", "nr_free_pages"),
        ("AnonPages:", "nr_anon_pages"),
        ("Mapped:", "nr_mapped"),
        ("Active(file):", "nr_active_file"),
    ];
    let mut found: Option<u64> = None;
    for (kib_key, pages_key) in PAIRS {
        let (Some(kib), Some(pages)) = (counter(meminfo, kib_key), counter(vmstat, pages_key)) else {
            continue;
        };
        if pages < 64 {
            continue;
        }
        let size = kib.saturating_mul(1024).checked_div(pages).unwrap_or(0).max(1);
        // Round to the nearest power of two on a logarithmic scale.
        let rounded = size.saturating_add(size / 2).saturating_sub(size / 16).next_power_of_two() / 2;
        match found {
            None => found = Some(rounded),
            Some(other) if other == rounded => {}
            Some(_) => return None,
        }
    }
    found.filter(|size| (4096..=262_144).contains(size))
}

fn counter(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find(|l| l.split_ascii_whitespace().next() == Some(key))?;
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(page_size: u64) {
        let pages = 99_937u64;
        let meminfo = format!(
            "MemFree: {} kB\nMapped: {} kB\n",
            pages * page_size / 1024 + 300,
            500 * page_size / 1024
        );
        let vmstat = format!("nr_free_pages {pages}\nnr_mapped 501\n");
        assert_eq!(page_size_from_snapshots(&meminfo, &vmstat), Some(page_size));
    }

    #[test]
    fn finds_common_page_sizes() {
        for size in [4096, 16_384, 65_536] {
            check(size);
        }
        assert_eq!(page_size_from_snapshots("", ""), None);
    }
}
