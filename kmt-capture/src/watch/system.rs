//! Texts of /proc that make a sample, in buffers that are used again, marks of caches in /sys/kernel/slab, and CMA pages of drivers.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use kmt_common::kernel_stacks;
use kmt_common::reclaimable::is_reclaimable;
use kmt_common::watch::{Finding, Kind, Sample, Texts, Value, Watcher};

use crate::record::kernel_config;
use crate::record::samples::{self, Samples};

/// Bytes of a text that are read.
const LEN_MAX: u64 = 4 << 20;
/// Caches whose marks are remembered.
const CACHES_MAX: usize = 4096;
/// Time between samples that are kept for recordings.
const KEEP_EVERY_NS: u64 = 600_000_000_000;

/// The running system.
#[derive(Debug, Default)]
pub struct System {
    /// meminfo, slabinfo, zoneinfo, vmstat.
    texts: [String; 4],
    /// True for caches that are watched.
    watched: BTreeMap<String, bool>,
    /// Whether kernel stacks are areas of vmalloc, once that was looked up.
    vmap_stacks: Option<Option<bool>>,
    /// Samples for recordings.
    pub samples: Samples,
    /// When the last of them was taken.
    kept: Option<u64>,
}

impl System {
    /// Takes a sample and judges it. `None`: /proc/meminfo or the uptime cannot be read.
    pub fn sample(&mut self, watcher: &mut Watcher) -> Option<Vec<Finding>> {
        let before = samples::now();
        for (name, text) in ["meminfo", "slabinfo", "zoneinfo", "vmstat"].iter().zip(&mut self.texts) {
            read_into(&format!("/proc/{name}"), text);
        }
        let [meminfo, slabinfo, zoneinfo, vmstat] = &self.texts;
        let vmap_stacks = *self.vmap_stacks.get_or_insert_with(vmap_stacks);
        let cma_pages = cma_pages(Path::new("/sys/kernel/mm/cma"));
        let texts = Texts { meminfo, slabinfo, zoneinfo, vmstat, cma_pages, vmap_stacks };
        let after = samples::now();
        if self.kept.is_none_or(|kept| after.saturating_sub(kept) >= KEEP_EVERY_NS) {
            self.kept = Some(after);
            self.samples.keep((before, after), [meminfo, zoneinfo, vmstat]);
        }
        let sample = Sample::of(&texts, rustix::param::page_size() as u64, uptime()?)?;
        let watched = &mut self.watched;
        Some(watcher.take(&sample, |value| is_watched(value, watched)))
    }

    /// True if the last sample has caches.
    pub fn has_slabinfo(&self) -> bool {
        self.texts.get(1).is_some_and(|text| !text.is_empty())
    }
}

/// Reads a text; one that cannot be read is empty.
fn read_into(path: &str, text: &mut String) {
    text.clear();
    let read = File::open(path).and_then(|file| file.take(LEN_MAX).read_to_string(text));
    if read.is_err() {
        text.clear();
    }
}

/// True if kernel stacks are areas of vmalloc; `None`: unknown.
fn vmap_stacks() -> Option<bool> {
    let config = kernel_config();
    let mut areas = String::new();
    if config.is_none() {
        read_into("/proc/vmallocinfo", &mut areas);
    }
    kernel_stacks::are_areas(config.as_deref(), Some(&areas))
}

/// Pages of CMA areas that drivers have (mm/cma_sysfs.c, 6.9); `None`: the kernel does not report them. Those of hugetlb are in
/// Hugetlb (`hugetlb_cma_reserve`).
fn cma_pages(folder: &Path) -> Option<u64> {
    let areas = fs::read_dir(folder).ok()?.flatten();
    let mut pages = 0u64;
    for area in areas.filter(|area| !area.file_name().as_encoded_bytes().starts_with(b"hugetlb")) {
        let number = |name: &str| fs::read_to_string(area.path().join(name)).ok()?.trim().parse::<u64>().ok();
        let (taken, released) = (number("alloc_pages_success")?, number("release_pages_success")?);
        pages = pages.saturating_add(taken.saturating_sub(released));
    }
    Some(pages)
}

/// Seconds since boot, with those of a suspended machine.
fn uptime() -> Option<u64> {
    fs::read_to_string("/proc/uptime").ok()?.split('.').next()?.parse().ok()
}

/// Identifies the boot; empty if it cannot be read.
pub fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// Time of day in seconds.
pub fn unix() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

fn is_watched(value: &Value<'_>, watched: &mut BTreeMap<String, bool>) -> bool {
    if value.kind != Kind::Cache {
        return true;
    }
    if let Some(known) = watched.get(value.name) {
        return *known;
    }
    // Names of objects in sysfs have no slash (kobject_set_name_vargs, lib/kobject.c).
    let path = Path::new("/sys/kernel/slab").join(value.name.replace('/', "!")).join("reclaim_account");
    let mark = fs::read_to_string(path).ok().map(|text| text.trim() != "0");
    let is_watched = !is_reclaimable(value.name, mark);
    if watched.len() < CACHES_MAX {
        watched.insert(value.name.to_owned(), is_watched);
    }
    is_watched
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cma_pages_are_those_that_drivers_have_not_released() {
        let folder = std::env::temp_dir().join(format!("kmt-cma-{}", std::process::id()));
        assert_eq!(cma_pages(&folder), None);
        let area = |name: &str, numbers: &[(&str, &str)]| {
            fs::create_dir_all(folder.join(name)).unwrap();
            numbers.iter().for_each(|(file, text)| fs::write(folder.join(name).join(file), text).unwrap());
        };
        area("reserved", &[("alloc_pages_success", "900\n"), ("release_pages_success", "700\n")]);
        area("hugetlb0", &[("alloc_pages_success", "262144\n"), ("release_pages_success", "0\n")]);
        assert_eq!(cma_pages(&folder), Some(200));
        area("old", &[("alloc_pages_success", "5\n")]);
        assert_eq!(cma_pages(&folder), None, "before 6.9");
        fs::remove_dir_all(&folder).unwrap();
    }
}
