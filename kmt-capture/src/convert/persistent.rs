//! A persistent ring buffer that was saved in a later boot, also by `kmt-capture collect`.
//!
//! Its counters of losses began again with that boot, so that they do not show whether the buffer overwrote its oldest events. A
//! buffer that is full may have done so: the events before its first one are unknown.

use kmt_format::kernel::{CpuStats, HeaderPage};

use super::boots::last_boot_note;
use crate::failure::Result;
use crate::input::{CpuFiles, Directory};

/// Remarks of `kmt-capture collect`, a line each.
const COLLECTED: &str = "collected";
/// Key of such a remark.
const NOTE: &str = "record.note";
/// Lines of a fact that are taken.
const LINES_MAX: usize = 64;
/// Sub-buffers that a full buffer may lack: the one that is written, and the rounding of `buffer_size_kb`.
const LACKING: u64 = 2;

/// Facts of the boot that filled the buffer, by keys of the registry: its identity, its time of day, and remarks.
pub fn facts(directory: &Directory) -> Result<Vec<(String, Vec<u8>)>> {
    let mut pairs = Vec::new();
    for (name, key) in [("boot_id", "boot_id"), ("clock_pair", "clock.pair"), (COLLECTED, NOTE)] {
        let text = directory.target_text(name)?.unwrap_or_default();
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty()).take(LINES_MAX);
        pairs.extend(lines.map(|line| (key.to_owned(), line.as_bytes().to_vec())));
    }
    Ok(pairs)
}

/// The note on a persistent buffer whose kallsyms may be of another boot. `collect` has moved them.
pub fn note(directory: &Directory) -> Result<Option<String>> {
    if directory.target_file(COLLECTED)?.is_some() {
        return Ok(None);
    }
    Ok(directory.target_file("last_boot_info")?.and_then(|text| last_boot_note(&text)))
}

/// True if the buffer of that CPU is persistent, and so full that it may have overwritten events that nothing counts.
pub fn may_have_overwritten(directory: &Directory, files: &CpuFiles, layout: &HeaderPage) -> Result<bool> {
    let counted = files.stats.as_deref().and_then(CpuStats::parse).and_then(|stats| stats.overrun);
    if counted.is_some_and(|overrun| overrun > 0) || directory.target_file("last_boot_info")?.is_none() {
        return Ok(false);
    }
    let of_cpu = directory.text(&format!("per_cpu/cpu{}/buffer_size_kb", files.cpu))?;
    let text = match of_cpu {
        Some(text) => Some(text),
        None => directory.text("buffer_size_kb")?,
    };
    let size = text.and_then(|text| text.trim().parse::<u64>().ok());
    Ok(size.is_some_and(|kb| is_full(kb, files.raw_len, layout)))
}

/// True if all sub-buffers of a buffer of that size have events. The size is that of their data (`ring_buffer_size`).
fn is_full(size_kb: u64, raw_len: u64, layout: &HeaderPage) -> bool {
    let (data_len, len) = (layout.data_size.max(1) as u64, layout.sub_buffer_len().max(1) as u64);
    let sub_buffers = size_kb.saturating_mul(1024).div_ceil(data_len);
    sub_buffers > 0 && (raw_len / len).saturating_add(LACKING) >= sub_buffers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_full_when_all_its_sub_buffers_came_back() {
        // 6.12, x86-64: reserve_mem=24M for two CPUs.
        let (size_kb, sub_buffers) = (12_220, 3_067);
        let layout = |long: usize, len: usize| HeaderPage {
            timestamp_offset: 0,
            commit_offset: 8,
            commit_size: long,
            data_offset: 8 + long,
            data_size: len - 8 - long,
        };
        let page = layout(8, 4096);
        let full = |sub_buffers: u64| is_full(size_kb, sub_buffers * 4096, &page);
        assert!(full(sub_buffers) && full(sub_buffers - 1) && !full(sub_buffers - 10));
        assert!(!is_full(0, 4096, &page) && is_full(1, 4096, &layout(8, 65_536)));
        assert!(!is_full(u64::MAX, 4096, &page));
        // A 32-bit kernel has 4 bytes more in each sub-buffer: 1,003 of them for 4,000 KiB, not 1,004.
        let page = layout(4, 4096);
        assert!(is_full(4_000, 1_001 * 4096, &page) && !is_full(4_000, 1_000 * 4096, &page));
    }
}
