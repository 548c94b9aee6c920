//! Rows of memory that is still allocated: by call site, by kind of pages, by family; and growth of caches that no event shows.
//!
//! They are made of the judged parts (`judge`). Unseen growth comes with tasks that may have caused it.

use kmt_common::unseen_allocs::unseen_allocs;
use kmt_format::kernel::ClockUnit;
use serde::Serialize;

use super::cache_growth::CacheGrowth;
use super::lossy::Lossy;
use super::makers::{self, FamilyHolder, FamilyRow};
use super::reclaimable;
use super::row::{LeakRow, LeakSum, RowMaker};
use super::text_parts::{TextParts, growth_by_task, text_parts};
use crate::collect::growth::GrowthSums;
use crate::pass::selection::recorder_threads;
use crate::render::words::duration;
use crate::reports::common::basis::{GROWTH_WINDOW_NS_MIN, lost};
use crate::reports::common::lead::MaybeRefused;
use crate::reports::common::{ReportContext, View, sliced};
use crate::reports::leaks::judge::families::{Family, families};
use crate::reports::leaks::judge::judged::Judged;
use crate::reports::leaks::judge::makers::{Ignore, Ignored};
use crate::reports::leaks::judge::pages::{Started, families_of, page_caller_rows, page_rows};
use crate::reports::leaks::judge::slab::{self, LeakSums};
use crate::reports::leaks::judge::survivors::PageSurvivals;
use crate::reports::leaks::judge::verdict::Verdict;
use crate::reports::slabinfo::{UnseenGrowth, unseen_growth};
use crate::sort_rows::SortRows;

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LeakRows {
    /// Memory that is still allocated, with verdicts; or the reason why there is no verdict.
    pub leaks: MaybeRefused<LeakTables>,
    /// Where events were lost and growth is not judged: leads, and the recording that has a verdict.
    #[serde(flatten)]
    pub lossy: Lossy,
}

impl LeakRows {
    /// The tables; `None`: the window is too short.
    pub fn tables(&self) -> Option<&LeakTables> {
        self.leaks.found()
    }

    /// True if slab memory or pages grow.
    pub fn grows(&self) -> bool {
        let grows = |text: &TextParts| !text.families.is_empty() || !text.page_growths.is_empty();
        self.tables().is_some_and(|tables| grows(&tables.text))
    }

    /// True if growth is not judged for lost events.
    pub fn lacks_events(&self) -> bool {
        self.tables().is_some_and(|tables| tables.text.lost.is_some())
    }

    /// True if no growth is a verdict: the window is long enough, and neither lost events nor damage forbid it.
    pub fn judges(&self) -> bool {
        self.tables().is_some_and(|tables| tables.text.lost.is_none() && !tables.text.is_damaged)
    }
}

/// Memory that is still allocated.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LeakTables {
    /// Length of the window, in the clock's unit.
    pub window: u64,
    /// Time at which the processes of the recorded command began to exit, and at which live memory is judged; `null`:
    /// judged at the end of the window.
    pub command_exit: Option<u64>,
    /// Live slab objects that were allocated before the clock ran: their age is unknown, but not shorter than the window.
    pub unknown_age: u64,
    /// Number of families, including those beyond the limit of rows.
    pub families_total: usize,
    /// Call sites that grow together: their objects are allocated at the same times by the same tasks; the largest first.
    pub families: Vec<FamilyRow>,
    /// Number of call sites, including those beyond the limit of rows.
    pub callers_total: usize,
    /// Slab objects by call site.
    pub callers: Vec<LeakRow>,
    /// Live pages that hold slab objects, which are in no row; `null`: unknown.
    pub slab_pages: Option<u64>,
    /// Number of call sites of pages, including those beyond the limit of rows.
    pub page_callers_total: usize,
    /// Pages by call site, where stacks were recorded.
    pub page_callers: Vec<LeakRow>,
    /// Number of kinds of pages, including those beyond the limit of rows.
    pub pages_total: usize,
    /// Pages by kind.
    pub pages: Vec<LeakRow>,
    /// Caches that grew without allocation events by the kernel's count, the largest growth first.
    pub unseen_growth: Vec<UnseenRow>,
    /// Findings hidden by `--ignore`; without that option there is no such key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignored: Option<Ignored>,
    /// Rows as the screen groups them.
    #[serde(skip)]
    pub text: TextParts,
}

/// Rows of a trace.
pub fn compute(
    context: &ReportContext<'_, '_>,
    collected: LeakSums<'_>,
    ignore: Option<&Ignore>,
) -> LeakRows {
    let analysis = context.analysis;
    let LeakSums { growth, task_events, until, .. } = collected;
    let (first, last) = context.selection.span(context.session);
    let length = until.unwrap_or(last).saturating_sub(first);
    if context.session.unit() == ClockUnit::Nanoseconds && length < GROWTH_WINDOW_NS_MIN {
        let refused = format!(
            "the window of {} is too short: timers, writeback and RCU alone keep memory for {}",
            duration(length, context.session.unit()),
            duration(GROWTH_WINDOW_NS_MIN, context.session.unit())
        );
        return LeakRows { leaks: MaybeRefused::Refused { refused }, lossy: Lossy::default() };
    }
    let survivals = PageSurvivals::new(context, growth);
    let mut judged = slab::judged(context, collected);
    let tasks = slab::tasks_started(&judged);
    let started = Started { tasks: &tasks, task_events, step: growth.step() };
    let mut callers = page_caller_rows(context, &survivals, &started);
    let mut pages = page_rows(context, &survivals, &callers, &started);
    let labels = context.labels();
    let hide = |ignore: &Ignore| ignore.hide_all([&mut judged, &mut callers, &mut pages], labels);
    let ignored = ignore.map(hide);
    let families = families(&judged, length);
    for rows in [&mut callers, &mut pages] {
        let of_families = families_of(rows, &families, task_events);
        rows.iter_mut().zip(of_families).for_each(|(row, family)| row.grows_with = family);
    }
    let page_size = analysis.page_size.0;
    let numbers = families.iter().enumerate().map(|(number, family)| (family.leader, number)).collect();
    let maker = RowMaker { labels, families: &numbers, start: first, length, page_size };
    let basis = context.basis();
    let rows = |judged: &[Judged<'_>]| judged.iter().take(context.limit).map(|r| maker.row(r)).collect();
    let exits = makers::has_exits(context);
    let family = |family: &Family<'_>| FamilyRow {
        makers: makers::makers(family, task_events, exits, labels),
        holder: holder(&maker, family),
        tasks: makers::tasks(family, &tasks, task_events, exits),
        call_sites: family.rows.len(),
        leader: family.rows.first().map(|row| row.name.clone()),
        old_bytes: family.bytes,
        old_bytes_per_second: family.per_second,
    };
    let found: Vec<FamilyRow> = families.iter().map(family).collect();
    let mut text =
        text_parts(&maker, [&judged, &callers, &pages], &families, &found, task_events, context.limit);
    if !basis.page_ends() {
        // Without frees all pages seem to stay.
        text.reclaimable.page_cache = LeakSum::default();
    }
    let has_all_time = !context.selection.is_active() && sliced::sentence(context.session).is_none();
    text.reclaimable.shrank =
        if has_all_time { reclaimable::shrank(context.session.trace.metadata()) } else { 0 };
    let lost = lost(context).filter(|(share, _)| *share != Some(0.0)).map(|(_, words)| words);
    let of_all = [&judged, &callers, &pages].into_iter().flatten();
    let has_uncertain = of_all.into_iter().any(|row| row.evidence.verdict == Verdict::Uncertain);
    let is_damaged = analysis.faults.damaged_places(context.session.trace) > 0;
    let tables = LeakTables {
        window: length,
        command_exit: until,
        unknown_age: growth.unknown_age,
        families_total: families.len(),
        families: found.iter().take(context.limit).cloned().collect(),
        callers_total: judged.len(),
        callers: rows(&judged),
        slab_pages: analysis.direct_map.map(|_| growth.slab_pages),
        page_callers_total: callers.len(),
        page_callers: rows(&callers),
        pages_total: pages.len(),
        pages: rows(&pages),
        unseen_growth: Vec::new(),
        ignored,
        text: TextParts {
            has_slab: basis.allocs(None),
            has_pages: basis.page_ends(),
            omits_recorder: !context.selection.without_recorder
                && !recorder_threads(context.session).is_empty(),
            lost: lost.filter(|_| has_uncertain),
            grown: CacheGrowth::of(context).map(|grown| grown.with_holder(&judged, labels)),
            is_damaged,
            is_cut: is_damaged || context.session.losses.ended_early,
            ..text
        },
    };
    LeakRows { leaks: MaybeRefused::Found(Box::new(tables)), lossy: Lossy::default() }
}

/// The task with most of a family.
fn holder(maker: &RowMaker<'_, '_, '_>, family: &Family<'_>) -> Option<FamilyHolder> {
    let parts = growth_by_task(maker, family).into_iter();
    let (pid, growth) = parts.max_by_key(|&(pid, growth)| (growth, std::cmp::Reverse(pid)))?;
    let whole = maker.growth(&family.rows).per_window.max(1);
    let share_percent = 100.0 * growth as f64 / whole as f64;
    Some(FamilyHolder { pid, task: maker.labels.task(pid), share_percent })
}

/// Tasks of a cache that are named.
const TASKS_MAX: usize = 3;

/// A cache that grew without allocation events.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UnseenRow {
    /// The growth.
    #[serde(flatten)]
    pub growth: UnseenGrowth,
    /// Tasks that hold other objects of the part of the kernel that uses the cache, those with most of them first; three
    /// at most. Of io_uring only.
    pub tasks: Vec<String>,
}

impl UnseenRow {
    /// The growth, its tasks, and the recording that shows the caller.
    pub fn sentence(&self, view: &View) -> String {
        self.growth.sentence(&self.tasks, view)
    }
}

/// Growth over the recording, the largest first.
pub fn unseen(context: &ReportContext<'_, '_>, growth: &GrowthSums, unmatched: &[u64]) -> Vec<UnseenRow> {
    let row = |found: UnseenGrowth| {
        let functions = unseen_allocs(&found.cache).map_or(&[][..], |known| known.functions);
        UnseenRow { growth: found, tasks: tasks_at(context, growth, functions) }
    };
    unseen_growth(context, unmatched).into_iter().map(row).collect()
}

/// Tasks with live objects of functions whose names begin so.
fn tasks_at(context: &ReportContext<'_, '_>, growth: &GrowthSums, functions: &[&str]) -> Vec<String> {
    if functions.is_empty() {
        return Vec::new();
    }
    let labels = context.labels();
    let mut found: std::collections::BTreeMap<i32, u64> = std::collections::BTreeMap::new();
    for (number, survival) in (0u32..).zip(&growth.callers) {
        let (.., symbol) = labels.caller(context.analysis, number);
        if functions.iter().any(|start| symbol.starts_with(start)) {
            for (pid, steps) in survival.tasks() {
                *found.entry(pid).or_default() += steps.sum();
            }
        }
    }
    let mut tasks: Vec<(i32, u64)> = found.into_iter().collect();
    tasks.sort_rows_by_key(|&(pid, objects)| (std::cmp::Reverse(objects), pid));
    tasks.iter().take(TASKS_MAX).map(|&(pid, _)| labels.task(pid)).collect()
}
