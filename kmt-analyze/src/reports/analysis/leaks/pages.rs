//! Pages that are still allocated, by kind and by call site.

use std::collections::HashMap;

use super::evidence::Evidence;
use super::families::Family;
use super::judged::{Judged, growing, sort};
use super::judged_part::JudgedPart;
use super::kernel_names::{PAGE_CACHE, PAGE_TABLES, PERCPU_PAGES, SHARED_MEMORY};
use super::page_flags::{PAGE_CACHE_USE, UnreclaimedPages, is_block_cache, is_percpu, is_slab, use_of};
use super::page_survivals::PageSurvivals;
use super::rules::{Facts, judge, verdict};
use crate::collect::growth::{StepCounts, SurvivorSums};
use crate::collect::tasks::TaskEvents;
use crate::pass;
use crate::render::words::escaped;
use crate::reports::analysis::leaks::makers::{LiveWithMaker, in_common};
use crate::reports::analysis::leaks::survivor_curves::grow_together;
use crate::reports::analysis::leaks::tasks::{belong_to_tasks, grow_with_tasks};
use crate::reports::common::ReportContext;
use crate::trace::meminfo;

/// Tasks that started in the window, and the length of a step.
pub struct Started<'t> {
    pub tasks: &'t SurvivorSums,
    pub task_events: &'t TaskEvents,
    pub step: u64,
}

impl Started<'_> {
    /// True for what a task has for its memory: page tables, stacks.
    fn have(&self, evidence: &Evidence, survival: &SurvivorSums) -> bool {
        let growing = growing(evidence, survival);
        match judge(self.tasks, self.step).verdict.is_growth() {
            true => grow_with_tasks(&growing, evidence.part, self.tasks, self.task_events),
            false => belong_to_tasks(&growing, evidence.part, self.tasks, self.task_events, self.step),
        }
    }

    /// Verdict on pages, with facts on them besides their course.
    fn judge(&self, survival: &SurvivorSums, facts: Facts<'_>) -> Evidence {
        let evidence = judge(survival, self.step);
        let is_of_tasks = facts.is_of_tasks || evidence.verdict.is_growth() && self.have(&evidence, survival);
        Evidence { verdict: verdict(&evidence, &Facts { is_of_tasks, ..facts }), ..evidence }
    }
}

/// Pages by kind; `callers` are those by call site, where stacks were recorded.
pub fn page_rows<'g>(
    context: &ReportContext<'_, '_>,
    pages: &'g PageSurvivals,
    callers: &[Judged<'_>],
    started: &Started<'_>,
) -> Vec<Judged<'g>> {
    let result = context.analysis;
    // Call sites are judged by what they do: a kind grows only if one of them does.
    let most = callers.iter().max_by_key(|row| row.evidence.old_amount).map(|row| row.evidence.verdict);
    let explained = most.filter(|_| !callers.iter().any(|row| row.evidence.verdict.is_growth()));
    let memory = memory_of_tasks(result, pages);
    let unreclaimed = UnreclaimedPages::new(context.session, &result.interner, result.page_size.0);
    // Elsewhere slabs with objects are left out already.
    let has_rows_of_slabs = result.direct_map.is_none() && context.basis().allocs(None);
    let mut rows: Vec<Judged<'g>> = pages
        .kinds
        .iter()
        .map(|(number, survival)| {
            let site = result.interner.pages.get(*number).copied().unwrap_or_default();
            let migratetype = result.migratetypes.name(site.migratetype);
            let gfp = escaped(&result.interner.gfp_text(site.gfp_flags));
            let is_page_table = site.order == 0 && PAGE_TABLES.contains(&gfp.as_str());
            let flags = result.interner.gfp(site.gfp_flags);
            let is_kept = unreclaimed.has(&site, judge(survival, started.step).old);
            let is_movable = site.is_movable() || migratetype == "Reclaimable";
            let facts = Facts {
                is_slab_page: has_rows_of_slabs && is_slab(flags, site.order),
                is_of_tasks: is_page_table && goes_with_memory(survival, &memory),
                is_reclaimable: !is_kept && (is_movable || is_block_cache(flags, site.order)),
                ..Facts::default()
            };
            let mut evidence = started.judge(survival, facts);
            if let Some(verdict) = explained.filter(|_| evidence.verdict.is_growth()) {
                evidence.verdict = verdict;
            }
            let name = format!("order {}, {gfp}", site.order);
            Judged {
                is_percpu: is_percpu(flags, site.order),
                is_page_cache: use_of(flags, site.order) == PAGE_CACHE_USE,
                ..row((0, name, migratetype), evidence, survival)
            }
        })
        .collect();
    sort(&mut rows);
    rows
}

/// Live movable pages of each task: its memory.
fn memory_of_tasks(result: &pass::Analysis, pages: &PageSurvivals) -> HashMap<i32, u64> {
    let mut memory: HashMap<i32, u64> = HashMap::new();
    for (number, survival) in &pages.kinds {
        if result.interner.pages.get(*number).is_some_and(|site| site.is_movable()) {
            for (pid, steps) in survival.tasks() {
                *memory.entry(pid).or_default() += steps.sum();
            }
        }
    }
    memory
}

/// True if most of these pages are of tasks that have at least as many pages of memory.
fn goes_with_memory(survival: &SurvivorSums, memory: &HashMap<i32, u64>) -> bool {
    let of_memory =
        |(pid, steps): (i32, &StepCounts)| steps.sum().min(memory.get(&pid).copied().unwrap_or(0));
    let sum: u64 = survival.tasks().map(of_memory).sum();
    sum.saturating_mul(2) >= survival.survivors.sum()
}

/// Pages by call site.
pub fn page_caller_rows<'g>(
    context: &ReportContext<'_, '_>,
    pages: &'g PageSurvivals,
    started: &Started<'_>,
) -> Vec<Judged<'g>> {
    let labels = context.labels();
    let has_swap = meminfo::has_swap(context.session.trace.metadata()) == Some(true);
    let mut rows: Vec<Judged<'g>> = pages
        .callers
        .iter()
        .filter(|(_, survival)| survival.survivors.sum() > 0)
        .map(|(&(address, is_slab), survival)| {
            let name = if address == 0 { "(the allocator)".to_owned() } else { labels.symbol(address) };
            let is_page_cache = PAGE_CACHE.iter().any(|start| name.starts_with(start))
                || has_swap && name.starts_with(SHARED_MEMORY);
            let evidence = started.judge(
                survival,
                Facts { is_slab_page: is_slab, is_reclaimable: is_page_cache, ..Facts::default() },
            );
            let cache = if is_slab { "slab" } else { "" }.to_owned();
            let is_percpu = PERCPU_PAGES.iter().any(|start| name.starts_with(start));
            Judged { is_percpu, ..row((address, name, cache), evidence, survival) }
        })
        .collect();
    sort(&mut rows);
    rows
}

/// Largest number of families that pages are compared with.
const FAMILIES_MAX: usize = 64;

/// Marks pages that the tasks of a family allocate at the pace of its leader: they are of the same leak. Those for the percpu
/// allocator may be of any task. Returns the
/// number of the family for each row.
pub fn families_of(
    rows: &[Judged<'_>],
    families: &[Family<'_>],
    task_events: &TaskEvents,
) -> Vec<Option<usize>> {
    let leaders = families.iter().take(FAMILIES_MAX).filter_map(|family| family.rows.first());
    let leaders: Vec<(LiveWithMaker<'_>, JudgedPart)> =
        leaders.map(|row| (LiveWithMaker::of(&row.growing, task_events), row.evidence.part)).collect();
    let family = |row: &Judged<'_>| {
        let made = LiveWithMaker::of(&row.growing, task_events);
        leaders.iter().position(|(leader, part)| {
            if row.is_percpu {
                let (steps, own) = (leader.steps(), row.growing.survivors.all());
                return grow_together(&steps, &own, row.evidence.part.common(*part)) == Some(true);
            }
            let common = in_common(leader, &made);
            common.and_then(|(a, b)| grow_together(&a, &b, row.evidence.part.common(*part))) == Some(true)
        })
    };
    rows.iter().map(|row| family(row).filter(|_| row.evidence.verdict.is_growth())).collect()
}

fn row(
    (address, name, cache): (u64, String, String),
    evidence: Evidence,
    survival: &SurvivorSums,
) -> Judged<'_> {
    Judged {
        api: None,
        address,
        name,
        cache,
        caches: Vec::new(),
        evidence,
        is_reclaimable: false,
        is_of_tasks: false,
        stacks: Vec::new(),
        survival,
        growing: growing(&evidence, survival),
        leader: None,
        is_percpu: false,
        is_page_cache: false,
        grows_with: None,
    }
}
