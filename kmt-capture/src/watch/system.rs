//! Texts of /proc that make a sample, in buffers that are used again, and marks of caches in /sys/kernel/slab.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use kmt_common::reclaimable::is_reclaimable;
use kmt_common::watch::{Finding, Kind, Sample, Texts, Value, Watcher};

/// Bytes of a text that are read.
const LEN_MAX: u64 = 4 << 20;
/// Caches whose marks are remembered.
const CACHES_MAX: usize = 4096;

/// The running system.
#[derive(Debug, Default)]
pub struct System {
    /// meminfo, slabinfo, zoneinfo, vmstat.
    texts: [String; 4],
    /// True for caches that are watched.
    watched: BTreeMap<String, bool>,
}

impl System {
    /// Takes a sample and judges it. `None`: /proc/meminfo or the uptime cannot be read.
    pub fn sample(&mut self, watcher: &mut Watcher) -> Option<Vec<Finding>> {
        for (name, text) in ["meminfo", "slabinfo", "zoneinfo", "vmstat"].iter().zip(&mut self.texts) {
            read_into(&format!("/proc/{name}"), text);
        }
        let [meminfo, slabinfo, zoneinfo, vmstat] = &self.texts;
        let texts = Texts { meminfo, slabinfo, zoneinfo, vmstat };
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
