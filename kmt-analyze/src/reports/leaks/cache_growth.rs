//! Growth of caches by the kernel's counts, where lost events forbid a verdict: the cache that grew most of those that cannot be
//! reclaimed, its other names, and caches that grew with it.
//!
//! Sources: /proc/slabinfo of the begin and of the end, which losses do not change; names of merged caches; live objects of the events
//! that are left.

use super::reclaimable::rate;
use super::row::LeakRow;
use crate::render::words::{count, counted, escaped};
use crate::reports::common::basis::lost;
use crate::reports::common::labels::Labels;
use crate::reports::common::{Context, View};
use crate::reports::info::{CacheChange, cache_changes};
use crate::reports::leaks::judge::judged::{CacheShare, Judged};
use crate::reports::leaks::judge::slab::Reclaimable;
use crate::sort_rows::SortRows;
use crate::trace::aliases::Aliases;
use crate::trace::names::{cache_name, function_of};
use crate::trace::slabinfo;
use crate::trace::sliced::Sliced;

/// ` by timerd-22562`; empty: no task allocated most of them.
pub(super) fn by_task(row: &LeakRow) -> String {
    let most = row.holders.first().filter(|most| most.survivors.saturating_mul(2) > row.survivors);
    most.map_or(String::new(), |most| format!(" by {}", most.task))
}

/// Least growth of a cache, in bytes of its slabs: less is an eddy of per-CPU slabs.
const BYTES_MIN: u64 = 64 << 10;

/// Fewest objects of a cache that grew with another one.
const WITH_MIN: u64 = 100;

/// Difference of their numbers, as 1/N, up to which two caches grew by about as many objects.
const LIKE: u64 = 5;

/// Names in a list.
const NAMES: usize = 2;

/// Growth of the cache that grew most by /proc/slabinfo, of those that the kernel cannot reclaim.
#[derive(Debug, Clone, Default)]
pub struct CacheGrowth {
    cache: String,
    /// Other names of the same cache.
    aliases: Vec<String>,
    objects: u64,
    is_estimated: bool,
    bytes: u64,
    /// `None`: the file is a part of a recording of unknown length.
    bytes_per_second: Option<u64>,
    /// Caches that grew by about as many objects, and their numbers; those with most bytes first.
    with: Vec<(String, u64)>,
    /// Growth of the slabs of all of them together.
    bytes_together: u64,
    holder: Option<Holder>,
}

/// The task that allocated most of the recorded objects without a free event.
#[derive(Debug, Clone)]
struct Holder {
    task: String,
    /// Of the cache; false: of all slab memory that cannot be reclaimed.
    is_of_cache: bool,
}

impl CacheGrowth {
    /// Over a recording that lost events; `None`: no cache grew, the file lacks slabinfo, or a part is selected.
    pub fn of(context: &Context<'_, '_>) -> Option<Self> {
        let session = context.session;
        lost(context).filter(|_| !context.selection.is_active())?;
        let metadata = session.trace.metadata();
        let at = |when: &str| metadata.attachment(&format!("slabinfo.{when}")).map(slabinfo::parse);
        let (before, after) = (at("before")?, at("after")?);
        let reclaimable = Reclaimable::of(session);
        let changes = cache_changes(&before, &after, session.trace.header().page_size?);
        let grown = Self::most(&changes, |cache| reclaimable.has(cache), counted_time(context))?;
        let aliases = Aliases::of(metadata);
        let others = aliases.others(grown.cache.as_bytes()).unwrap_or_default();
        Some(Self { aliases: others.into_iter().map(cache_name).collect(), ..grown })
    }

    /// The cache with most growth in that time, of those that the kernel cannot reclaim.
    fn most(
        changes: &[CacheChange],
        is_reclaimable: impl Fn(&str) -> bool,
        length: Option<u64>,
    ) -> Option<Self> {
        let grown = |change: &CacheChange| {
            let [bytes, objects] = [change.bytes_change, change.active_change].map(u64::try_from);
            Some((bytes.ok()?, objects.ok().filter(|objects| *objects > 0)?))
        };
        let is_it = |change: &&CacheChange| {
            grown(change).is_some_and(|(bytes, _)| bytes >= BYTES_MIN) && !is_reclaimable(&change.cache)
        };
        // They are sorted by their change, and the first of equal ones counts.
        let most = changes.iter().filter(is_it).rev().max_by_key(|change| change.bytes_change)?;
        let (bytes, objects) = grown(most)?;
        let others =
            changes.iter().filter(|change| change.cache != most.cache && !is_reclaimable(&change.cache));
        let with = others.filter_map(|change| {
            let (bytes, number) = grown(change)?;
            let is_like = number.abs_diff(objects).saturating_mul(LIKE) <= objects;
            (is_like && bytes > 0 && number >= WITH_MIN).then(|| (bytes, change.cache.clone(), number))
        });
        let mut with: Vec<(u64, String, u64)> = with.collect();
        with.sort_rows_by_key(|(bytes, ..)| std::cmp::Reverse(*bytes));
        let bytes_together = with.iter().map(|(bytes, ..)| *bytes).fold(bytes, u64::saturating_add);
        let per_second = length.map(|length| u128::from(bytes) * 1_000_000_000 / u128::from(length.max(1)));
        Some(Self {
            bytes_together,
            cache: most.cache.clone(),
            objects,
            is_estimated: most.active_estimated,
            bytes,
            bytes_per_second: per_second.map(|rate| u64::try_from(rate).unwrap_or(u64::MAX)),
            with: with.into_iter().map(|(_, cache, number)| (cache, number)).collect(),
            ..Self::default()
        })
    }

    /// The growth with the task that allocated most of the objects without a free event: of the cache, else of all memory that
    /// cannot be reclaimed.
    pub fn with_holder(self, rows: &[Judged<'_>], labels: &Labels<'_, '_>) -> Self {
        let is_of_cache = |row: &Judged<'_>| row.caches.first().is_some_and(|share| self.is_of(share));
        // Who has a small part of the growth is not its cause.
        let explains =
            |(task, objects): (String, u64)| (objects.saturating_mul(2) >= self.objects).then_some(task);
        let of_cache = most_of(rows, labels, is_of_cache);
        let holder = match of_cache {
            Some(most) => explains(most).map(|task| Holder { task, is_of_cache: true }),
            None => most_of(rows, labels, |row| !row.is_reclaimable)
                .and_then(explains)
                .map(|task| Holder { task, is_of_cache: false }),
        };
        Self { holder, ..self }
    }

    /// True if objects of a call site are of this cache.
    fn is_of(&self, share: &CacheShare) -> bool {
        share.cache == self.cache
            || self.aliases.contains(&share.cache)
            || share.aliases.iter().flatten().any(|name| *name == self.cache)
    }

    /// `mnt_cache (also posix_timers_cache)`.
    fn name(&self) -> String {
        let cache = escaped(self.cache.as_bytes());
        let aliases: Vec<String> = self.aliases.iter().map(|name| escaped(name.as_bytes())).collect();
        if aliases.is_empty() { cache } else { format!("{cache} (also {})", some(&aliases)) }
    }

    /// `10,013 objects (3.71 MiB of slabs, 190 KiB/s)`.
    fn amount(&self, view: &View) -> String {
        let about = if self.is_estimated { "about " } else { "" };
        let objects = counted(self.objects, "object", "objects");
        let rate = self.bytes_per_second.map_or(String::new(), |bytes| format!(", {}", rate(bytes, view)));
        format!("{about}{objects} ({} of slabs{rate})", view.bytes(self.bytes))
    }

    /// `; sock_inode_cache (+6,004) and filp (+5,229) with it, 8.00 MiB together`; empty: no other cache grew by about as many objects.
    fn others(&self, view: &View) -> String {
        let name =
            |(cache, number): &(String, u64)| format!("{} (+{})", escaped(cache.as_bytes()), count(*number));
        let names: Vec<String> = self.with.iter().map(name).collect();
        match names.is_empty() {
            true => String::new(),
            false => format!("; {} with it, {} together", some(&names), view.bytes(self.bytes_together)),
        }
    }

    /// `By /proc/slabinfo, which losses do not change, filp grew most of the caches that cannot be reclaimed: by 1,269 objects
    /// (320 KiB of slabs, 80.0 KiB/s) (of recorded objects of it without a free event, most are of connd-9880: not proven).`
    pub fn sentence(&self, view: &View) -> String {
        let holder = self.holder.as_ref().map_or(String::new(), |holder| {
            let of_cache = if holder.is_of_cache { " of this cache" } else { "" };
            format!(
                " (of recorded objects{of_cache} without a free event, most are of {}: not proven)",
                holder.task
            )
        });
        format!(
            "By /proc/slabinfo, which losses do not change, {} grew most of the caches that cannot be reclaimed: by {}{}{holder}.",
            self.name(),
            self.amount(view),
            self.others(view)
        )
    }

    /// One sentence on the growth and on a call site that may be a leak, if its objects explain at least half of the growth.
    ///
    /// `mnt_cache (also posix_timers_cache) grew by 10,013 objects (3.71 MiB of slabs, 190 KiB/s) by /proc/slabinfo, which losses do not
    /// change; 9,114 recorded ones by timerd-22562 at do_timer_create have no free event: probably this leak.`
    pub fn with_suspect(&self, row: &LeakRow, view: &View) -> Option<String> {
        let share = row.caches.first().filter(|share| self.is_of(share))?;
        let explains = share.survivors <= self.objects && share.survivors.saturating_mul(2) >= self.objects;
        explains.then(|| {
            format!(
                "{} grew by {} by /proc/slabinfo, which losses do not change{}; {} recorded ones{} at {} have no free event: probably this leak.",
                self.name(),
                self.amount(view),
                self.others(view),
                count(share.survivors),
                by_task(row),
                function_of(&row.symbol)
            )
        })
    }
}

/// The time that the kernel's counts are of: that of the recording, of which the file may be a part. `None`: unknown.
fn counted_time(context: &Context<'_, '_>) -> Option<u64> {
    let session = context.session;
    let span = context.selection.span(session);
    let sliced = Sliced::of(session.trace.metadata()).filter(|sliced| sliced.lacks_time(span));
    let (first, last) = sliced.map_or(Some(span), |sliced| sliced.whole)?;
    Some(last.saturating_sub(first))
}

/// The first two names, and the number of the others: `a and b`, `a, b and 3 others`.
fn some(names: &[String]) -> String {
    let more = names.len().saturating_sub(NAMES) as u64;
    let shown: Vec<&str> = names.iter().take(NAMES).map(String::as_str).collect();
    match more {
        0 => shown.join(" and "),
        more => format!("{} and {}", shown.join(", "), counted(more, "other", "others")),
    }
}

/// The task that allocated more than half of the live objects of these call sites, and their number; `None`: no task did.
fn most_of(
    rows: &[Judged<'_>],
    labels: &Labels<'_, '_>,
    is_it: impl Fn(&Judged<'_>) -> bool,
) -> Option<(String, u64)> {
    let mut tasks = std::collections::BTreeMap::<i32, u64>::new();
    for row in rows.iter().filter(|row| row.api.is_some() && is_it(row)) {
        for (pid, steps) in row.survival.tasks() {
            let sum = tasks.entry(pid).or_default();
            *sum = sum.saturating_add(steps.sum());
        }
    }
    let all = tasks.values().copied().fold(0, u64::saturating_add);
    let (pid, most) = tasks.into_iter().max_by_key(|(_, objects)| *objects)?;
    (most.saturating_mul(2) > all).then(|| (labels.task(pid), most))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(cache: &str, active_change: i64, kib: i64) -> CacheChange {
        CacheChange {
            cache: cache.to_owned(),
            active_before: 100,
            active_after: 100u64.saturating_add_signed(active_change),
            active_change,
            active_estimated: false,
            bytes_before: 1 << 20,
            bytes_after: (1u64 << 20).saturating_add_signed(kib << 10),
            bytes_change: kib << 10,
        }
    }

    const LENGTH: Option<u64> = Some(4_000_000_000);

    #[test]
    fn the_cache_that_grew_most_is_named() {
        let changes = [
            change("dentry", 9_000, 1_700),
            change("kmalloc-8k", -40, -512),
            change("filp", 1_269, 320),
            change("kmalloc-256", 390, 96),
        ];
        let most = CacheGrowth::most(&changes, |cache| cache == "dentry", LENGTH).unwrap();
        assert_eq!(
            most.sentence(&View::plain()),
            "By /proc/slabinfo, which losses do not change, filp grew most of the caches that cannot be reclaimed: by 1,269 objects (320 KiB of slabs, 80.0 KiB/s)."
        );
        let part = CacheGrowth::most(&changes, |cache| cache == "dentry", None).unwrap();
        assert_eq!(part.amount(&View::plain()), "1,269 objects (320 KiB of slabs)");
        assert!(CacheGrowth::most(&[change("filp", 60, 16)], |_| false, LENGTH).is_none(), "little");
        let no_objects = [change("filp", -3, 128)];
        assert!(CacheGrowth::most(&no_objects, |_| false, LENGTH).is_none(), "slabs without more objects");
    }

    #[test]
    fn caches_that_grew_by_about_as_many_objects_are_named() {
        let changes = [
            change("signal_cache", 6_020, 6_880),
            change("sock_inode_cache", 6_004, 4_700),
            change("filp", 5_229, 1_300),
            change("dentry", 4_900, 900),
            change("kmalloc-8k", 4_700, 800),
        ];
        let others = |reclaimable: &str| {
            let most = CacheGrowth::most(&changes, |cache| cache == reclaimable, LENGTH).unwrap();
            most.others(&View::plain())
        };
        let three = "; sock_inode_cache (+6,004), filp (+5,229) and 1 other with it, 13.5 MiB together";
        assert_eq!(others("none"), three);
        let two = "; sock_inode_cache (+6,004) and filp (+5,229) with it, 12.6 MiB together";
        assert_eq!(others("dentry"), two, "without what can be reclaimed");
        let few = [change("task_struct", 20, 400), change("signal_cache", 20, 80)];
        assert_eq!(
            CacheGrowth::most(&few, |_| false, LENGTH).unwrap().others(&View::plain()),
            "",
            "by chance"
        );
    }

    fn of_timers(survivors: u64) -> LeakRow {
        let share =
            CacheShare { cache: "mnt_cache".into(), survivors, aliases: Some(Vec::new()), is_named: true };
        LeakRow {
            symbol: "do_timer_create+0x5d".into(),
            caches: vec![share],
            survivors,
            bytes: 3 << 20,
            ..LeakRow::default()
        }
    }

    #[test]
    fn a_call_site_that_explains_the_growth_is_one_finding_with_it() {
        let growth = CacheGrowth {
            cache: "mnt_cache".into(),
            aliases: vec!["posix_timers_cache".into()],
            objects: 10_013,
            bytes: 4 << 20,
            bytes_per_second: Some(190 << 10),
            ..CacheGrowth::default()
        };
        let view = View::plain();
        assert_eq!(
            growth.with_suspect(&of_timers(9_114), &view).unwrap(),
            "mnt_cache (also posix_timers_cache) grew by 10,013 objects (4.00 MiB of slabs, 190 KiB/s) by /proc/slabinfo, which losses do not change; 9,114 recorded ones at do_timer_create have no free event: probably this leak."
        );
        for survivors in [10_014, 5_006] {
            assert!(growth.with_suspect(&of_timers(survivors), &view).is_none(), "{survivors}");
        }
        // Events may name the cache by another of its names.
        let named = |cache: &str| CacheGrowth { cache: cache.into(), ..growth.clone() };
        assert!(named("filp").with_suspect(&of_timers(9_114), &view).is_none());
        let merged = CacheGrowth { aliases: vec!["mnt_cache".into()], ..named("filp") };
        assert!(merged.with_suspect(&of_timers(9_114), &view).is_some());
    }

    #[test]
    fn other_names_are_at_most_two() {
        let growth = |aliases: &[&str]| CacheGrowth {
            cache: "signal_cache".into(),
            aliases: aliases.iter().map(|&name| name.to_owned()).collect(),
            ..CacheGrowth::default()
        };
        assert_eq!(growth(&[]).name(), "signal_cache");
        assert_eq!(growth(&["UNIX", "UNIX-STREAM"]).name(), "signal_cache (also UNIX and UNIX-STREAM)");
        assert_eq!(growth(&["a", "b", "c", "d"]).name(), "signal_cache (also a, b and 2 others)");
    }
}
