//! The line Percpu of /proc/meminfo: pages of the percpu allocator, used or not (`pcpu_nr_pages`, mm/percpu.c).

use serde::Serialize;

use crate::reports::common::ReportContext;

/// Change of the line.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PercpuLine {
    /// Bytes at the begin of the recording.
    pub bytes_before: u64,
    /// Bytes at its end.
    pub bytes_after: u64,
}

/// The line at the begin and the end; `None`: not read twice, or not in the kernel (before 4.19).
pub fn compute(context: &ReportContext<'_, '_>) -> Option<PercpuLine> {
    let metadata = context.session.trace.metadata();
    let line = |when: &str| bytes(metadata.attachment(&format!("meminfo.{when}"))?);
    Some(PercpuLine { bytes_before: line("before")?, bytes_after: line("after")? })
}

fn bytes(meminfo: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(meminfo);
    let line = text.lines().find_map(|line| line.strip_prefix("Percpu:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_line_is_in_kib() {
        assert_eq!(super::bytes(b"MemFree:  7 kB\nPercpu:          864 kB\n"), Some(864 * 1024));
        assert_eq!(super::bytes(b"MemFree:  7 kB\n"), None);
        assert_eq!(super::bytes(b"Percpu: 99999999999999999999 kB\n"), None);
    }
}
