//! How large the ring buffers have to be.

use std::time::{Duration, Instant};

use kmt_format::kernel::CpuStats;

use super::setup::Setup;
use super::snapshot::available_to_kernel;
use crate::failure::Result;

/// How long the event rate is looked at.
const PROBE: Duration = Duration::from_millis(60);
/// Ring buffer of each CPU during the probe, in KiB.
const PROBE_KB: u64 = 512;
/// Time that a buffer lasts at the rate of the probe.
const LASTS_S: u64 = 4;
/// Buffer of each CPU at least, where there is memory: a load may start after the probe.
const LEN_MIN: u64 = 16 << 20;
/// Share of the available memory for all buffers together.
const SHARE: u64 = 16;

/// Bytes for each CPU, from the bytes a second that the busiest one wrote.
fn from_rate(bytes_per_s: u64, available: Option<u64>, cpus: u64) -> u64 {
    let wanted = bytes_per_s.saturating_mul(LASTS_S).max(LEN_MIN);
    let most = available.map_or(LEN_MIN, |bytes| bytes / SHARE / cpus.max(1));
    wanted.min(most).max(64 << 10)
}

/// Looks at the event rate, and says how many KiB each CPU's buffer should have. The buffer is empty afterwards.
pub fn probe(setup: &mut Setup, cpus: usize) -> Result<u64> {
    setup.buffer_size_kb(PROBE_KB.min(from_rate(0, available_to_kernel(), cpus as u64) >> 10))?;
    let start = Instant::now();
    setup.start()?;
    std::thread::sleep(PROBE);
    setup.stop()?;
    let elapsed_ms = start.elapsed().as_millis().max(1) as u64;
    let written = |cpu: &u32| {
        let stats = CpuStats::parse(&setup.dir.read(&format!("per_cpu/cpu{cpu}/stats"))?)?;
        let (entries, overrun) = (stats.entries?, stats.overrun.unwrap_or(0));
        // Events that were overwritten were as long as those that are there.
        Some(stats.bytes? / entries.max(1) * entries.saturating_add(overrun))
    };
    let most = setup.dir.cpus().iter().filter_map(written).max().unwrap_or(0);
    setup.clear()?;
    let rate = most.saturating_mul(1000) / elapsed_ms;
    Ok(from_rate(rate, available_to_kernel(), cpus as u64) >> 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_last_seconds_and_leave_memory() {
        let gib = Some(1 << 30);
        assert_eq!(from_rate(0, gib, 2), 16 << 20, "what a load may need that is not there yet");
        assert_eq!(from_rate(30 << 20, Some(64 << 30), 2), 120 << 20, "four seconds");
        assert_eq!(from_rate(30 << 20, gib, 8), 8 << 20, "a sixteenth of the memory for all");
        assert_eq!(from_rate(30 << 20, Some(40 << 20), 1), 5 << 19, "a board of 64 MB");
        assert_eq!(from_rate(0, Some(1 << 20), 4), 64 << 10);
        assert_eq!(from_rate(1 << 30, None, 1), 16 << 20);
    }
}
