//! Rows of memory that is still allocated: of one call site, or of one kind of pages.
//!
//! Kinds of pages, or call sites, whose pages the same task allocates are one growth: a queue of network buffers has pages of
//! four orders.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use super::named_parts::{Named, named_parts};
use crate::collect::growth::{Numbers, StepCounts};
use crate::collect::tasks::TaskEvents;
use crate::reports::common::labels::{Labels, Symbol};
use crate::reports::common::rows::Address;
use crate::reports::leaks::judge::evidence::SURVIVORS_MIN;
use crate::reports::leaks::judge::families::{are_of_one_time, per_second, per_window, until};
use crate::reports::leaks::judge::judged::{CacheShare, Judged, RowStack};
use crate::reports::leaks::judge::makers::LiveWithMaker;
use crate::reports::leaks::judge::verdict::Verdict;
use crate::sort_rows::SortRows;

/// Memory of one call site, or of one kind of pages, that is still allocated.
#[derive(Debug, Clone, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LeakRow {
    /// `grows`, `grows_in_batches`, `reclaimable` (in a family: pinned), `with_reclaimable` (one for each object of a
    /// reclaimable cache), `user_memory` (of processes, tmpfs or files, no growth), `with_tasks` (allocated when tasks started that still run), `with_slabs` (slab pages, and
    /// metadata of slabs and objects), `warming`, `burst`, `lazy` (freed all at once after a delay, by design),
    /// `frees_unseen` (frees have no event), `window_too_short`, `uncertain` (most cross a loss), `young`, `few`.
    #[cfg_attr(test, schemars(with = "String"))]
    pub verdict: Verdict,
    /// `kmalloc` or `cache`; `null`: pages.
    pub api: Option<&'static str>,
    /// Address of the call site; `null`: unknown.
    pub call_site: Option<Address>,
    /// Function and offset, or the kind of pages.
    #[serde(flatten)]
    pub symbol: Symbol,
    /// Cache or size class with most survivors, and the number of others, as `kmalloc-16 + 5`; of pages their migrate
    /// type, or `slab`.
    pub cache: String,
    /// Of a kind of pages: `page cache`, `anonymous memory`, `page tables`, `kernel` ...; `null`: a call site.
    #[serde(rename = "use")]
    pub page_use: Option<&'static str>,
    /// Caches of the survivors, those with most first; empty for pages.
    pub caches: Vec<CacheShare>,
    /// Objects, or pages, allocated in the window that are live at its end.
    pub survivors: u64,
    /// Bytes of the survivors.
    pub bytes: u64,
    /// Survivors older than `old_age`, of `judged_task` and after a first burst.
    pub old_survivors: u64,
    /// Bytes of the old survivors.
    pub old_bytes: u64,
    /// Bytes of the old survivors per second, or per 10^9 ticks, since growth began.
    pub old_bytes_per_second: u64,
    /// Age beyond which an object is old, in the clock's unit.
    pub old_age: u64,
    /// Allocations in the steps in which old survivors can have been allocated.
    pub allocations_of_that_age: u64,
    /// The first of the steps whose survivors are judged, of 32, and the one after the last; what is allocated later is too
    /// young, what is allocated before is a first burst.
    pub judged_steps: [usize; 2],
    /// Task whose survivors alone are judged: those of others fill the call site, or live long; `null`: all are.
    pub judged_task: Option<i32>,
    /// Steps with old survivors.
    pub steps_with_survivors: usize,
    /// Steps in which old survivors can have been allocated.
    pub steps: usize,
    /// Old survivors allocated in the first half of those steps.
    pub first_half: u64,
    /// Old survivors allocated in the second half.
    pub second_half: u64,
    /// Objects, or pages, allocated and freed in the window.
    pub freed: u64,
    /// Objects, or pages, allocated in the window and with an implied free in it.
    pub freed_unseen: u64,
    /// 99th percentile of the lifetimes of the freed ones, in the clock's unit; `null`: none was freed.
    pub lifetime_p99: Option<u64>,
    /// Survivors by the step of their allocation, of 32.
    pub survivors_by_birth: Numbers,
    /// 99th percentile of the ages at which implied frees were detected, in the clock's unit.
    pub unseen_age_p99: Option<u64>,
    /// Step in which steady growth began; `null`: at the start of the window, or no growth.
    pub began_step: Option<usize>,
    /// Batches of steps with old survivors.
    pub batches: usize,
    /// Number of its row in `families`, or of pages the family that they grow with; `null`: in no family.
    pub family: Option<usize>,
    /// Tasks that allocated most old survivors, or most survivors if none is old.
    pub holders: Vec<HolderRow>,
    /// Stacks with most survivors, where stacks were recorded.
    pub stacks: Vec<StackRow>,
    /// Time of `began_step`.
    #[serde(skip)]
    pub since: Option<u64>,
    /// Bytes that this growth adds in a whole window.
    #[serde(skip)]
    pub per_window: u64,
    /// Cgroup of the task with most of it, but for the root.
    #[serde(skip)]
    pub cgroup: Option<String>,
}

/// A task that allocated survivors.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HolderRow {
    /// Thread id.
    pub pid: i32,
    /// Name and id.
    pub task: String,
    /// Survivors that the task allocated.
    pub survivors: u64,
    /// Survivors of the task older than `old_age`, if the row has enough of them for a verdict.
    pub old_survivors: u64,
}

/// Survivors of one call stack.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StackRow {
    /// Survivors.
    pub survivors: u64,
    /// Bytes of the survivors.
    pub bytes: u64,
    /// Functions, the innermost first, without those of the allocator.
    pub frames: Vec<String>,
}

/// Tasks of a row at most.
const HOLDERS: usize = 5;

/// Makes rows of judged call sites.
pub(super) struct RowMaker<'m, 's, 'd> {
    pub(super) labels: &'m Labels<'s, 'd>,
    /// Number of the family of each leader.
    pub(super) families: &'m HashMap<usize, usize>,
    pub(super) start: u64,
    pub(super) length: u64,
    pub(super) page_size: u64,
}

/// Sum of several rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeakSum {
    /// Number of rows.
    pub rows: usize,
    pub bytes: u64,
    /// Growth in bytes per second, or per 10^9 ticks; 0 where it is not needed.
    pub bytes_per_second: u64,
}

/// Growth of the rows of a group, as shares of it are counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Growth {
    /// Bytes that the growth of all its rows adds in a whole window: shares are of this.
    pub per_window: u64,
    /// True if the rows grew in the same time. Otherwise their bytes were allocated in no one time.
    pub is_of_one_time: bool,
}

impl LeakSum {
    /// Adds bytes.
    pub fn add(self, bytes: u64, bytes_per_second: u64) -> Self {
        Self {
            rows: self.rows + 1,
            bytes: self.bytes.saturating_add(bytes),
            bytes_per_second: self.bytes_per_second.saturating_add(bytes_per_second),
        }
    }
}

impl RowMaker<'_, '_, '_> {
    /// Bytes of an amount of a row.
    fn bytes(&self, row: &Judged<'_>, amount: u64) -> u64 {
        if row.api.is_some() { amount } else { amount.saturating_mul(self.page_size) }
    }

    /// Live bytes of rows.
    pub(super) fn live<'r>(&self, rows: impl IntoIterator<Item = &'r Judged<'r>>) -> LeakSum {
        let add = |sum: LeakSum, row: &Judged<'_>| sum.add(self.bytes(row, row.evidence.amount), 0);
        rows.into_iter().fold(LeakSum::default(), add)
    }

    /// Old bytes of rows, and their growth.
    pub(super) fn old<'r>(&self, rows: impl IntoIterator<Item = &'r Judged<'r>>) -> LeakSum {
        let add = |sum: LeakSum, row: &Judged<'_>| {
            let old_bytes = self.bytes(row, row.evidence.old_amount);
            sum.add(old_bytes, per_second(&row.evidence, old_bytes, self.length))
        };
        rows.into_iter().fold(LeakSum::default(), add)
    }

    /// Growth of a row in a whole window, or of the part of it that some of its old objects are.
    pub(super) fn per_window(&self, row: &Judged<'_>, objects: u64) -> u64 {
        let whole = per_window(&row.evidence, self.bytes(row, row.evidence.old_amount), self.length);
        // Objects of one call site have one size.
        let part = u128::from(whole) * u128::from(objects) / u128::from(row.evidence.old.max(1));
        u64::try_from(part).unwrap_or(u64::MAX)
    }

    /// Growth of the rows of a group.
    pub(super) fn growth<'r>(&self, rows: &[&'r Judged<'r>]) -> Growth {
        let of_row = |row: &&Judged<'_>| self.per_window(row, row.evidence.old);
        let per_window = rows.iter().map(of_row).fold(0, u64::saturating_add);
        Growth { per_window, is_of_one_time: are_of_one_time(rows.iter().copied()) }
    }

    /// A row.
    pub(super) fn row(&self, r: &Judged<'_>) -> LeakRow {
        let e = &r.evidence;
        let bytes = |amount: u64| self.bytes(r, amount);
        let old_bytes = bytes(e.old_amount);
        LeakRow {
            verdict: e.verdict,
            api: r.api.map(|api| api.name()),
            call_site: (r.address != 0).then_some(Address(r.address)),
            symbol: self.labels.named(r.name.clone(), r.address),
            cache: r.cache.clone(),
            page_use: r.page_use,
            caches: r.caches.clone(),
            survivors: e.survivors,
            bytes: bytes(e.amount),
            old_survivors: e.old,
            old_bytes,
            old_bytes_per_second: per_second(e, old_bytes, self.length),
            old_age: e.old_age,
            allocations_of_that_age: e.old_births,
            judged_steps: [e.part.from, e.part.to],
            judged_task: e.part.task,
            steps_with_survivors: e.steps.0,
            steps: e.steps.1,
            first_half: e.halves.0,
            second_half: e.halves.1,
            freed: e.freed.0,
            freed_unseen: e.freed.1,
            lifetime_p99: r.survival.lifetimes.quantile(990),
            survivors_by_birth: r.survival.survivors.all(),
            unseen_age_p99: r.survival.implied_free_ages.quantile(990),
            began_step: e.began,
            batches: e.batches,
            family: r.leader.and_then(|leader| self.families.get(&leader).copied()).or(r.grows_with),
            holders: self.holders(r),
            stacks: self.stacks(r),
            since: e.began.map(|step| self.start.saturating_add(until(step, self.length))),
            per_window: self.per_window(r, e.old),
            cgroup: self.cgroup(r),
        }
    }

    /// Cgroup of the task with most old survivors of growth; `None`: unknown, or the root.
    fn cgroup(&self, row: &Judged<'_>) -> Option<String> {
        let old = |(_, steps): &(i32, &StepCounts)| steps.sum();
        let (pid, _) = row.growing.tasks().max_by_key(old).filter(|_| row.evidence.verdict.is_growth())?;
        self.labels.cgroup(pid).filter(|path| path != "/")
    }

    /// Tasks that allocated most old survivors.
    fn holders(&self, row: &Judged<'_>) -> Vec<HolderRow> {
        let old = |pid: i32| row.growing.task(pid).map_or(0, StepCounts::sum);
        let mut all: Vec<(u64, u64, i32)> =
            row.survival.tasks().map(|(pid, steps)| (old(pid), steps.sum(), pid)).collect();
        all.sort_rows_by_key(|&(old, survivors, pid)| (std::cmp::Reverse((old, survivors)), pid));
        let holder = |&(old, survivors, pid): &(u64, u64, i32)| HolderRow {
            pid,
            task: self.labels.task(pid),
            survivors,
            old_survivors: if row.evidence.old < SURVIVORS_MIN { 0 } else { old },
        };
        all.iter().take(HOLDERS).map(holder).collect()
    }

    /// Stacks with most survivors.
    fn stacks(&self, row: &Judged<'_>) -> Vec<StackRow> {
        let stack = |stack: &RowStack| StackRow {
            survivors: stack.live,
            bytes: stack.bytes_live,
            frames: stack.frames.iter().map(|&address| self.labels.symbol(address)).collect(),
        };
        row.stacks.iter().map(stack).collect()
    }
}

/// Pages that grow, of one task or of one row.
#[derive(Debug, Clone, Default)]
pub struct PageGrowth {
    /// The row with most growing pages.
    pub most: LeakRow,
    /// Old bytes and growth of all its rows.
    pub sum: LeakSum,
    /// Growth of all its rows, as shares are counted.
    pub growth: Growth,
    /// The makers of most of it, two at most, with their parts of `growth`.
    pub holders: Vec<(String, u64)>,
    /// Number of tasks with old pages.
    pub tasks: usize,
    /// Name of all of them; `None`: they have several.
    pub name: Option<String>,
}

/// Growths of these rows, the largest first.
pub(super) fn page_growths(
    maker: &RowMaker<'_, '_, '_>,
    rows: &[&Judged<'_>],
    task_events: &TaskEvents,
) -> Vec<PageGrowth> {
    let mut rows: Vec<&Judged<'_>> = rows.to_vec();
    rows.sort_rows_by_key(|row| Reverse(row.evidence.old_amount));
    let mut groups: Vec<(LiveWithMaker<'_>, Vec<&Judged<'_>>)> = Vec::new();
    for row in rows {
        let made = LiveWithMaker::of(&row.growing, task_events);
        match groups.iter_mut().find(|(first, _)| first.is_by_task_of(&made)) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((made, vec![row])),
        }
    }
    let mut growths: Vec<PageGrowth> =
        groups.into_iter().filter_map(|(_, rows)| page_growth(maker, &rows, task_events)).collect();
    growths.sort_rows_by_key(|growth| Reverse(growth.sum.bytes));
    growths
}

/// Growth of these rows together; `None`: there are none.
pub(super) fn page_growth(
    maker: &RowMaker<'_, '_, '_>,
    rows: &[&Judged<'_>],
    task_events: &TaskEvents,
) -> Option<PageGrowth> {
    let mut growth_of: BTreeMap<i32, u64> = BTreeMap::new();
    for row in rows {
        for (pid, steps) in row.growing.tasks().filter(|(_, steps)| steps.sum() > 0) {
            let growth = growth_of.entry(pid).or_default();
            *growth = growth.saturating_add(maker.per_window(row, steps.sum()));
        }
    }
    let tasks = growth_of.len();
    let names: BTreeSet<String> = growth_of.keys().map(|pid| maker.labels.name(*pid)).collect();
    let name = names.first().filter(|_| names.len() == 1).cloned();
    let growth = maker.growth(rows);
    let named = |pid: i32| Named::of(pid, maker.labels, task_events);
    Some(PageGrowth {
        most: maker.row(rows.first()?),
        sum: maker.old(rows.iter().copied()),
        growth,
        holders: named_parts(growth_of, growth.per_window, named),
        tasks,
        name,
    })
}
