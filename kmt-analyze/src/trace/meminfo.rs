//! /proc/meminfo in the recording: the kernel's counts of memory at its begin and its end.

use kmt_format::read::Metadata;

/// Bytes of a line such as `Shmem:  123 kB`.
pub fn bytes(meminfo: &[u8], name: &str) -> Option<u64> {
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

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn lines_are_in_kib() {
        assert_eq!(bytes(b"MemFree:  7 kB\nPercpu:          864 kB\n", "Percpu"), Some(864 * 1024));
        assert_eq!(bytes(b"MemFree:  7 kB\nShmemHugePages: 8 kB\n", "Shmem"), None);
        assert_eq!(bytes(b"Percpu: 99999999999999999999 kB\n", "Percpu"), None);
        assert_eq!(bytes(b"HugePages_Total: 3\n", "HugePages_Total"), None);
    }
}
