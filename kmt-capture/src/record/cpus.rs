//! CPUs that come and go.

use super::setup::Setup;

/// CPUs that are there now; all that have a buffer where the kernel does not tell.
pub fn online(setup: &Setup) -> Vec<u32> {
    let all = setup.dir.cpus();
    let Ok(text) = std::fs::read_to_string("/sys/devices/system/cpu/online") else { return all };
    let ranges: Vec<(u32, u32)> = text
        .trim()
        .split(',')
        .filter_map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            Some((first.parse().ok()?, last.parse().ok()?))
        })
        .collect();
    if ranges.is_empty() {
        return all;
    }
    all.into_iter().filter(|cpu| ranges.iter().any(|(first, last)| (first..=last).contains(&cpu))).collect()
}
