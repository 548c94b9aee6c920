//! /proc/slabinfo and /sys/kernel/slab in the recording, and all snapshots of them with their times.
//!
//! Counts bound live objects, layouts of slabs show unused bytes. A snapshot without a time bounds nothing.

use std::collections::{BTreeMap, HashMap};
use std::ops::Deref;
use std::sync::Arc;

use kmt_format::read::Metadata;

use crate::trace::sliced::Sliced;

/// One line of /proc/slabinfo, version 2.1 (mm/slab_common.c, 4.4 to 7.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlabInfoLine {
    /// Cache.
    pub name: String,
    /// Objects in use, counting whole CPU slabs and per-CPU sheaves. 6.10 and later estimate it if many slabs are
    /// partly full, see [`SlabInfoLine::in_use_max`].
    pub active_objs: u64,
    /// Capacity of the slabs in objects.
    pub num_objs: u64,
    /// Bytes of an object, including debug metadata.
    pub objsize: u64,
    /// Objects of a slab.
    pub objperslab: u64,
    /// Pages of a slab.
    pub pagesperslab: u64,
    pub num_slabs: u64,
}

/// Number of partly full slabs that the kernel counts; beyond it, it estimates the rest (`count_partial_free_approx()`,
/// mm/slub.c since 6.10, commit 046f4c69090c). The number of partly full slabs is not in the file.
const COUNTED_SLABS: u64 = 10_000;

impl SlabInfoLine {
    /// Largest number of objects in use: the capacity, if the kernel may have estimated.
    pub fn in_use_max(&self) -> u64 {
        if self.num_slabs > COUNTED_SLABS { self.num_objs } else { self.active_objs }
    }

    /// Bytes of each slab that no object can use.
    pub fn tail_bytes(&self, page_size: u64) -> u64 {
        let bytes = self.pagesperslab.saturating_mul(page_size);
        bytes.saturating_sub(self.objperslab.saturating_mul(self.objsize))
    }
}

/// Caches of one reading, by name; and their objects by the size in their names, for kmalloc's caches.
#[derive(Debug, Clone, Default)]
pub struct SlabCaches {
    by_name: BTreeMap<String, SlabInfoLine>,
    by_size: HashMap<String, Objects>,
}

/// Objects of several caches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Objects {
    /// Active objects.
    pub active: u64,
    /// Largest number of objects in use.
    pub in_use_max: u64,
}

impl Objects {
    /// Objects of one cache.
    pub fn of(info: &SlabInfoLine) -> Self {
        Self { active: info.active_objs, in_use_max: info.in_use_max() }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            active: self.active.saturating_add(other.active),
            in_use_max: self.in_use_max.saturating_add(other.in_use_max),
        }
    }
}

impl Deref for SlabCaches {
    type Target = BTreeMap<String, SlabInfoLine>;

    fn deref(&self) -> &Self::Target {
        &self.by_name
    }
}

impl SlabCaches {
    fn of(by_name: BTreeMap<String, SlabInfoLine>) -> Self {
        let mut by_size: HashMap<String, Objects> = HashMap::new();
        for (name, info) in &by_name {
            let size = name.rsplit_once('-').map(|(_, size)| size);
            if let Some(size) = size.filter(|size| size.starts_with(|c: char| c.is_ascii_digit())) {
                let sum = by_size.entry(size.to_owned()).or_default();
                *sum = sum.plus(Objects::of(info));
            }
        }
        Self { by_name, by_size }
    }

    /// Objects of all caches whose names end with one of the sizes, as kmalloc's do; `None`: there are no such caches.
    pub fn of_size(&self, sizes: [&str; 2]) -> Option<Objects> {
        let [first, second] = sizes;
        let other = self.by_size.get(second).filter(|_| first != second);
        let found = [self.by_size.get(first), other].into_iter().flatten();
        found.copied().reduce(Objects::plus)
    }
}

/// Parses /proc/slabinfo by cache; other lines are skipped.
pub fn parse(text: &[u8]) -> SlabCaches {
    let text = String::from_utf8_lossy(text);
    let line = |line: &str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let number = |at: usize| words.get(at)?.parse::<u64>().ok();
        let slabdata = words.iter().position(|w| *w == "slabdata")?;
        Some(SlabInfoLine {
            name: (*words.first()?).to_owned(),
            active_objs: number(1)?,
            num_objs: number(2)?,
            objsize: number(3)?,
            objperslab: number(4)?,
            pagesperslab: number(5)?,
            num_slabs: number(slabdata + 2)?,
        })
    };
    let lines = text.lines().filter(|l| !l.starts_with('#')).filter_map(line);
    SlabCaches::of(lines.map(|i| (i.name.clone(), i)).collect())
}

/// Parses `CACHE FILE=VALUE FILE=VALUE …`, a line of /sys/kernel/slab: cache, and files with their values.
///
/// Values by node (` N0=5`, `show_slab_objects()`, mm/slub.c) are left out.
pub fn sysfs_line(line: &str) -> Option<(&str, impl Iterator<Item = (&str, &str)>)> {
    let (cache, rest) = line.split_once(' ').filter(|(_, rest)| !rest.starts_with("-> "))?;
    let is_file = |file: &str| file.bytes().any(|b| b.is_ascii_lowercase());
    let pairs = rest.split_ascii_whitespace().filter_map(|word| word.split_once('='));
    Some((cache, pairs.filter(move |(file, _)| is_file(file))))
}

/// Numbers of /sys/kernel/slab: by cache, then by file.
pub type Sysfs = BTreeMap<String, Arc<BTreeMap<String, u64>>>;

/// Parses the snapshot of /sys/kernel/slab.
pub fn parse_sysfs(text: &[u8]) -> Sysfs {
    let text = String::from_utf8_lossy(text);
    let mut caches: BTreeMap<&str, BTreeMap<String, u64>> = BTreeMap::new();
    for line in text.lines() {
        let Some((cache, files)) = sysfs_line(line) else { continue };
        for (file, value) in files {
            if let Ok(value) = value.parse() {
                caches.entry(cache).or_default().insert(file.to_owned(), value);
            }
        }
    }
    let mut out: Sysfs =
        caches.into_iter().map(|(cache, values)| (cache.to_owned(), Arc::new(values))).collect();
    // A link has the values of its cache.
    for line in text.lines() {
        let Some((alias, target)) = line.split_once(" -> ") else { continue };
        if let Some(values) = out.get(target).cloned() {
            out.insert(alias.to_owned(), values);
        }
    }
    out
}

/// /proc/slabinfo at one time.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Begin of reading, in the trace clock's time.
    pub from: u64,
    /// End of reading.
    pub to: u64,
    /// Contents.
    pub caches: SlabCaches,
}

/// Largest delay after the last event at which a snapshot still is of the trace: one second.
const LATE_NS: u64 = 1_000_000_000;

/// Snapshots read while events were recorded, and the one after the last event, at `last`; sorted by time.
///
/// They are `slabinfo` with its times, and `slabinfo.after` (format-spec/registry.md). The latter is used only if the
/// recorder read it at once: in a saved directory, and in a part of a recording, it may be from much later.
pub fn snapshots(metadata: &Metadata<'_>, last: u64) -> Vec<Snapshot> {
    let meanwhile = metadata.attachments.iter().filter_map(|attachment| {
        let (from, to) = attachment.times.filter(|_| attachment.name == "slabinfo")?;
        (from <= to).then(|| Snapshot { from, to, caches: parse(&attachment.contents) })
    });
    let (mut all, mut behind): (Vec<Snapshot>, Vec<Snapshot>) = meanwhile.partition(|s| s.to <= last);
    all.sort_by_key(|s| s.to);
    behind.retain(|s| s.from.saturating_sub(last) <= LATE_NS);
    let is_late = Sliced::of(metadata).is_some_and(|sliced| sliced.ends_before(last, LATE_NS));
    let is_live = metadata.text("source") == Some("live") && !is_late;
    let after = metadata.attachment("slabinfo.after").filter(|_| is_live).map(parse);
    let after = after.or_else(|| behind.into_iter().min_by_key(|s| s.to).map(|s| s.caches));
    all.extend(after.map(|caches| Snapshot { from: last, to: last, caches }));
    all
}

/// A snapshot from an unknown time after the trace, of a saved directory: it bounds nothing. At `last`, so that it is
/// beside what is live at the end.
pub fn untimed(metadata: &Metadata<'_>, last: u64) -> Option<Snapshot> {
    let without_times = metadata.attachments.iter().find(|a| a.name == "slabinfo" && a.times.is_none());
    let contents = metadata.attachment("slabinfo.after").or(without_times.map(|a| a.contents.as_ref()))?;
    let caches = parse(contents);
    (!caches.is_empty()).then_some(Snapshot { from: last, to: last, caches })
}

/// The snapshot after the last event.
pub fn at_end(metadata: &Metadata<'_>, last: u64) -> Option<Snapshot> {
    snapshots(metadata, last).pop().filter(|snapshot| snapshot.to == last)
}

#[cfg(test)]
mod tests {
    use kmt_format::read::Attachment;

    use super::*;

    #[test]
    fn lines_are_taken_apart() {
        let text = b"slabinfo - version: 2.1\n# name ...\nv9fs_inode_cache      66     67    728   22    4 : tunables    0    0    0 : slabdata      3      4      0\nbroken 1\n";
        let all = parse(text);
        assert_eq!(all.len(), 1);
        let one = &all["v9fs_inode_cache"];
        assert_eq!((one.active_objs, one.num_objs, one.objsize, one.num_slabs), (66, 67, 728, 4));
        assert_eq!(one.in_use_max(), 66);
        let many = SlabInfoLine { num_slabs: 10_001, ..one.clone() };
        assert_eq!(many.in_use_max(), 67, "the kernel may have looked at some of the slabs only");
        assert_eq!(one.tail_bytes(4096), 4 * 4096 - 22 * 728);
    }

    #[test]
    fn links_stand_for_their_cache() {
        let all = parse_sysfs(
            b":0000192 object_size=192 partial=2 N0=1 N1=1\n:0000192 slab_size=256\nbio-184 -> :0000192\n",
        );
        assert_eq!(all["bio-184"]["slab_size"], 256);
    }

    #[test]
    fn a_snapshot_from_much_later_bounds_nothing() {
        let attachment = |name: &str, times, active: u64| {
            let text = format!("epi {active} 9 128 32 1 : tunables 0 0 0 : slabdata 1 1 0\n");
            let mut made = Attachment::new(name.to_owned(), text.into_bytes());
            made.times = times;
            made
        };
        let second = 1_000_000_000;
        let with = |attachments: Vec<Attachment<'static>>| {
            let mut metadata = Metadata::default();
            metadata.attachments = attachments;
            metadata
        };
        let active = |metadata: &Metadata<'_>| {
            let all = snapshots(metadata, 50 * second).into_iter();
            all.map(|s| (s.to / second, s.caches["epi"].active_objs)).collect::<Vec<_>>()
        };
        let at = |from, to, active| attachment("slabinfo", Some((from, to)), active);
        let mut saved = with(vec![attachment("slabinfo.after", None, 3), at(55 * second, 56 * second, 4)]);
        assert_eq!(active(&saved), [], "from somebody's directory");
        saved.attachments.push(at(50 * second + 7, 51 * second, 5));
        saved.attachments.push(at(20 * second, 21 * second, 6));
        saved.attachments.push(at(21, 20, 7));
        assert_eq!(active(&saved), [(21, 6), (50, 5)]);
        saved.pairs.push(("source".into(), b"live"[..].into()));
        assert_eq!(active(&saved), [(21, 6), (50, 3)], "the recorder's own");
    }
}
