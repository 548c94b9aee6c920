//! Slab objects that are still allocated, by call site.
//!
//! Each site gets evidence and a verdict. Objects that belong to reclaimable ones, and objects that keep reclaimable ones from
//! being reclaimed, are marked behind that.

use std::collections::HashMap;

use kmt_common::quantity::Span;
use kmt_common::unseen_frees::is_freed_in_bulk;

use super::evidence::{Evidence, without};
use super::judged::{self, CacheShare, Judged, LiveCaches, function, label, sort};
use super::kernel_names::{KNOWN_LIVES, MAKES_RECLAIMABLE, ONLY_MARKED, RECLAIMABLE};
use super::pinned::{is_pinnable, narrow_pinned, pins};
use super::rules::{Facts, judge, judge_known, verdict};
use super::verdict::{JudgedPart, Verdict};
use crate::collect::growth::{GrowthSums, STEPS, SurvivorSums};
use crate::collect::sums::{CallSums, Sums};
use crate::collect::tasks::TaskEvents;
use crate::reports::common::ReportContext;
use crate::reports::leaks::judge::families::{FamilyCandidate, come_in_pairs, family_leaders};
use crate::reports::leaks::judge::tasks::{belong_to_tasks, grow_with_tasks};
use crate::stream::Api;
use crate::trace::clock::Clock;
use crate::trace::session::Session;
use crate::trace::slabinfo::{self, Sysfs};

/// Results of a pass about live objects.
#[derive(Clone, Copy)]
pub struct LeakSums<'g> {
    pub growth: &'g GrowthSums,
    pub task_events: &'g TaskEvents,
    pub calls: Option<&'g CallSums>,
    /// Time at which they are judged, if before the end of the window.
    pub until: Option<u64>,
}

/// Slab objects by call site, in order of importance.
pub fn judged<'g>(context: &ReportContext<'_, '_>, collected: LeakSums<'g>) -> Vec<Judged<'g>> {
    let result = context.analysis;
    let LeakSums { growth, task_events, calls, until } = collected;
    let labels = context.labels();
    let names = LiveCaches::new(context);
    let reclaimable = Reclaimable::of(context.session);
    // The kernel's own counts are those of the end of the recording.
    let bounds = context.live_bounds().bounds.by_caller(|_| until.is_none());
    let mut stacks = judged::by_caller(result, labels, calls);
    let mut rows: Vec<Judged<'g>> = (0u32..)
        .zip(&growth.callers)
        .filter(|(_, survival)| survival.survivors.sum() > 0)
        .map(|(number, survival)| {
            let (api, address, name) = labels.caller(result, number);
            let caches = names.of(survival);
            let most = caches.first().map_or("?", |share| share.cache.as_str());
            let is_reclaimable = api == Api::Cache
                && (reclaimable.has(most) || reclaimable.is_made_by(function(&name), &caches));
            let live_max = bounds.get(&(api, address)).copied().flatten().map(|live| live.objects[1]);
            let known_life = known_life(function(&name), survival.survivors.sum(), &context.session.clock());
            let mut evidence = judge_known(survival, growth.step(), known_life);
            let function = function(&name);
            let facts = Facts { cache: most, function, is_reclaimable, live_max, ..Facts::default() };
            evidence.verdict = verdict(&evidence, &facts);
            let row = (address, name.into(), label(&caches));
            Judged {
                api: Some(api),
                caches,
                is_reclaimable,
                stacks: stacks.remove(&number).unwrap_or_default(),
                ..Judged::new(row, evidence, survival)
            }
        })
        .collect();
    follow(&mut rows, growth.step());
    follow_tasks(&mut rows, task_events, growth.step());
    sort(&mut rows);
    set_leaders(&mut rows, task_events);
    narrow_pinned(&mut rows, task_events, growth.step());
    rows
}

/// How long the kernel keeps what a function allocates, in the clock's unit; 0: unknown, or there are too many.
fn known_life(function: &str, survivors: u64, clock: &Clock) -> u64 {
    // Without what the compiler and the allocation profiler add.
    let function = function.split('.').next().unwrap_or_default().trim_end_matches("_noprof");
    let known = KNOWN_LIVES.iter().find(|(name, ..)| *name == function);
    let seconds = known.filter(|(.., most)| survivors <= *most).map(|(_, seconds, _)| *seconds);
    seconds.and_then(|s| clock.units(Span::Nanoseconds(s * 1_000_000_000)).ok()).unwrap_or(0)
}

/// True if it grows where a leak of the same tasks does: its frees have no event, or come late by design and none came.
fn may_grow(row: &Judged<'_>) -> bool {
    if row.evidence.verdict == Verdict::Lazy {
        return row.evidence.freed == (0, 0);
    }
    let is_bulk = row.caches.first().is_some_and(|share| is_freed_in_bulk(&share.cache));
    row.evidence.verdict == Verdict::ImpliedFrees
        && row.evidence.is_unsure()
        && has_course(&row.evidence)
        && !is_bulk
}

/// True for old objects from at least half of the window, no fewer late than early.
fn has_course(evidence: &Evidence) -> bool {
    let (early, late) = evidence.halves;
    evidence.steps.0 * 2 >= evidence.steps.1 && late * 2 >= early
}

/// Groups call sites to families. What started tasks keep is one, if the number of tasks grows.
fn set_leaders(rows: &mut [Judged<'_>], task_events: &TaskEvents) {
    let candidates: Vec<FamilyCandidate<'_>> = rows
        .iter()
        .map(|row| FamilyCandidate {
            // Those of tasks have a family of their own.
            verdict: if row.is_of_tasks { Verdict::WithTasks } else { row.evidence.verdict },
            survival: &row.growing,
            function: row.function(),
            old: row.evidence.old,
            old_amount: row.evidence.old_amount,
            old_births: row.evidence.old_births,
            part: row.evidence.part,
            is_unsure: may_grow(row),
            pins: pins(row),
            is_pinnable: is_pinnable(row),
        })
        .collect();
    let mut leaders = family_leaders(&candidates, task_events);
    let of_tasks = |row: &&Judged<'_>| row.is_of_tasks;
    let first = rows.iter().filter(of_tasks).max_by_key(|row| (row.is_task(), row.evidence.old_amount));
    let first = first.and_then(|first| rows.iter().position(|row| std::ptr::eq(row, first)));
    rows.iter().zip(&mut leaders).filter(|(row, _)| row.is_of_tasks).for_each(|(_, leader)| *leader = first);
    for (row, leader) in rows.iter_mut().zip(leaders) {
        row.leader = leader;
        if leader.is_some() && may_grow(row) {
            row.evidence.verdict = Verdict::Grows;
        }
    }
}

/// Tasks that started in the window and still run, or were not reaped, by their task_struct.
pub fn tasks_started(rows: &[Judged<'_>]) -> SurvivorSums {
    let mut tasks = SurvivorSums::default();
    rows.iter().filter(|row| row.is_task()).for_each(|row| tasks.absorb(row.survival.clone()));
    tasks
}

/// Marks objects that belong to tasks that started in the window.
fn follow_tasks(rows: &mut [Judged<'_>], task_events: &TaskEvents, step: u64) {
    let tasks = tasks_started(rows);
    let do_grow = judge(&tasks, step).verdict.is_growth();
    let is_theirs =
        |row: &Judged<'_>| row.evidence.verdict.is_growth() || row.evidence.verdict == Verdict::Burst;
    for row in rows.iter_mut().filter(|row| is_theirs(row) && !row.is_reclaimable) {
        if do_grow && row.evidence.verdict.is_growth() {
            row.is_of_tasks =
                row.is_task() || grow_with_tasks(&row.growing, row.evidence.part, &tasks, task_events);
            continue;
        }
        // Of a burst few steps are old: all of them say more.
        let (survivors, part) = match row.evidence.verdict.is_growth() {
            true => (row.growing.as_ref(), row.evidence.part),
            false => (row.survival, JudgedPart { to: STEPS, ..JudgedPart::default() }),
        };
        if belong_to_tasks(survivors, part, &tasks, task_events, step) {
            row.evidence.verdict = Verdict::WithTasks;
        }
    }
}

/// Caches that the kernel shrinks when memory is short.
pub struct Reclaimable {
    sysfs: Option<Sysfs>,
}

impl Reclaimable {
    /// By the flags in a trace, or else by name.
    pub fn of(session: &Session<'_>) -> Self {
        let metadata = session.trace.metadata();
        let sysfs = ["slab_sysfs.after", "slab_sysfs.before"].iter().find_map(|n| metadata.attachment(n));
        Self { sysfs: sysfs.map(slabinfo::parse_sysfs) }
    }

    /// True if the function allocates objects that are reclaimed, and no event names their cache.
    fn is_made_by(&self, function: &str, caches: &[CacheShare]) -> bool {
        let function = function.split('.').next().unwrap_or_default().trim_end_matches("_noprof");
        MAKES_RECLAIMABLE.contains(&function) && caches.first().is_none_or(|share| !share.is_named)
    }

    /// True if its objects are reclaimed.
    pub fn has(&self, cache: &str) -> bool {
        let flags = self.sysfs.as_ref().and_then(|sysfs| sysfs.get(cache));
        !ONLY_MARKED.contains(&cache)
            && match flags.and_then(|flags| flags.get("reclaim_account")) {
                Some(&value) => value != 0,
                None => RECLAIMABLE.contains(&cache),
            }
    }
}

/// Largest number of call sites of security modules that are compared with all others; kernels have a dozen.
const BLOBS_MAX: usize = 64;

/// Marks objects that belong to reclaimable ones: names allocated where dentries are, what a file system keeps for its
/// inodes, and the blobs that security modules allocate for each inode.
fn follow(rows: &mut [Judged<'_>], step: u64) {
    follow_names(rows);
    follow_file_systems(rows);
    // Security modules allocate a blob for each inode or file and free it with that. Inodes are of many caches.
    let is_blob = |row: &Judged<'_>| row.name.starts_with("security_") || row.name.starts_with("lsm_");
    let mut inodes = SurvivorSums::default();
    rows.iter()
        .filter(|row| row.cache.contains("inode") && !is_blob(row) && !row.evidence.verdict.is_growth())
        .for_each(|row| inodes.absorb(row.survival.clone()));
    let hosts: Vec<(Verdict, &SurvivorSums)> =
        rows.iter().filter(|r| !is_blob(r)).map(|r| (r.evidence.verdict, r.survival)).collect();
    let mut of_hosts = Vec::new();
    let blobs = rows.iter().enumerate().filter(|(_, r)| r.evidence.verdict.is_growth() && is_blob(r));
    for (number, row) in blobs.take(BLOBS_MAX) {
        let goes = |verdict| hosts.iter().any(|(v, host)| *v == verdict && come_in_pairs(row.survival, host));
        // Inodes that do not grow explain most of the blobs: the rest does not grow either.
        let goes_with_inodes = row.name.contains("inode")
            && !judge(&without(row.survival, &inodes.survivors.all()), step).verdict.is_growth();
        if (goes(Verdict::Reclaimable) || goes_with_inodes) && !goes(Verdict::Grows) {
            of_hosts.push(number);
        }
    }
    for number in of_hosts {
        if let Some(row) = rows.get_mut(number) {
            row.evidence.verdict = Verdict::WithReclaimable;
        }
    }
}

fn may_follow(row: &Judged<'_>) -> bool {
    row.evidence.verdict.is_growth() || row.evidence.verdict == Verdict::Burst
}

/// Long names are allocated where dentries are.
fn follow_names(rows: &mut [Judged<'_>]) {
    // Of any verdict: names of dentries may have no free event, and look like growth.
    let mut hosts: HashMap<String, u64> = HashMap::new();
    for row in rows.iter().filter(|row| row.is_reclaimable) {
        let most = hosts.entry(function(&row.name).to_owned()).or_default();
        *most = row.evidence.survivors.max(*most);
    }
    let belongs = |row: &Judged<'_>| {
        let survivors = row.evidence.survivors;
        row.api == Some(Api::Kmalloc) && hosts.get(function(&row.name)).is_some_and(|most| survivors <= *most)
    };
    for row in rows.iter_mut().filter(|row| may_follow(row)) {
        if belongs(row) {
            row.evidence.verdict = Verdict::WithReclaimable;
        }
    }
}

/// A file system keeps link targets, lists and journal entries for an inode, and frees them with it: what its functions
/// allocate together with the inodes of its cache, no more than one for each.
fn follow_file_systems(rows: &mut [Judged<'_>]) {
    let mut hosts: HashMap<String, SurvivorSums> = HashMap::new();
    for row in rows.iter().filter(|row| row.is_reclaimable) {
        if let Some((file_system, _)) = row.cache.split_once("_inode") {
            hosts.entry(format!("{file_system}_")).or_default().absorb(row.survival.clone());
        }
    }
    for row in rows.iter_mut().filter(|row| may_follow(row) && !row.is_reclaimable) {
        let prefix = row.name.find('_').and_then(|at| row.name.get(..=at)).unwrap_or_default();
        let is_host = |host: &&SurvivorSums| {
            row.survival.survivors.sum() <= host.survivors.sum() && come_in_pairs(row.survival, host)
        };
        if hosts.get(prefix).filter(is_host).is_some() {
            row.evidence.verdict = Verdict::WithReclaimable;
        }
    }
}
