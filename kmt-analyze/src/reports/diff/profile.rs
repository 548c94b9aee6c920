//! Allocated and live bytes of a run, by names that another run has too.
//!
//! A run is one recording, or one window of it. A pass with the timeline collector gives allocated and live bytes by
//! call site and cache; names are by function, so that another build or boot has the same ones. `rows` compares the
//! profiles of both sides.

use std::collections::BTreeMap;

use serde::Serialize;

use super::DiffKey;
use crate::collect::timeline::Step;
use crate::collect::{Collectors, Timeline, steps};
use crate::failure::{Failure, Result};
use crate::pass::caches::CacheNames;
use crate::pass::folded::{needs_events, not_of_sums};
use crate::pass::selection::{Selection, recorder};
use crate::pass::{self, Needs, Request};
use crate::render::head::ClockHead;
use crate::render::words::escaped;
use crate::reports::common::labels::Labels;
use crate::reports::common::stated::events_of;
use crate::reports::diff::difference::{DiffFigure, PARTS};
use crate::reports::leaks::judge::kernel_names::MAKES_RECLAIMABLE;
use crate::reports::leaks::judge::slab::Reclaimable;
use crate::stream::Api;
use crate::trace::faults::Faults;
use crate::trace::folded;
use crate::trace::names::SizeClasses;
use crate::trace::session::Session;

/// Kind and name.
pub type ProfileKey = (&'static str, String);

/// Figures of one name in one run.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProfileRow {
    /// Bytes allocated.
    pub alloc: DiffFigure,
    /// Bytes live at the end, of those allocated in the trace.
    pub live: DiffFigure,
    /// True if the objects are of a cache that the kernel shrinks when memory is short.
    pub is_reclaimable: bool,
}

/// One run, or one window of it.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunRow {
    /// Number of events.
    pub events: u64,
    /// Length, in the clock's unit.
    pub length: u64,
    /// The clock.
    pub clock: ClockHead,
    /// Length in seconds; null: the clock counts ticks of unknown length.
    pub seconds: Option<f64>,
    /// True if memory that the recorder itself allocated is left out.
    pub without_recorder: bool,
    /// True if events were lost.
    pub lost_events: bool,
    /// Number of lost events, as far as they are counted: of the whole recording.
    pub lost_events_counted: u64,
}

/// One run, or one window of it.
#[derive(Debug)]
pub struct RunProfile {
    /// Figures by kind and name.
    pub rows: BTreeMap<ProfileKey, ProfileRow>,
    /// The run.
    pub run: RunRow,
}

/// Text that is equal in two files of the same kernel build: uname without the host's name. Functions of one build have
/// the same addresses and offsets.
pub fn build(session: &Session<'_>) -> Option<String> {
    let metadata = session.trace.metadata();
    let words: Vec<&str> = metadata.text("uname")?.split_ascii_whitespace().collect();
    let kept = words.iter().enumerate().filter(|(index, _)| *index != 1).map(|(_, word)| *word);
    (words.len() > 3).then(|| kept.collect::<Vec<_>>().join(" "))
}

/// How the runs of a comparison are named, so that each name is the same in all of them.
#[derive(Debug, Clone, Copy)]
pub struct Naming {
    pub by: DiffKey,
    /// Call sites are function and offset, else function alone.
    pub exact: bool,
    /// Names of size classes.
    pub classes: SizeClasses,
}

/// Refuses a file with lives that are sums where they cannot be told apart by what is asked for.
pub fn check_sums(session: &Session<'_>, selection: &Selection, by: DiffKey) -> Result<()> {
    if !session.trace.header().folded {
        return Ok(());
    }
    let reason = match by {
        DiffKey::Task => Some(not_of_sums("diff --by task")),
        _ => needs_events(selection),
    };
    reason.map_or(Ok(()), |reason| Err(Failure::new(format!("{}: {reason}", session.path.display()))))
}

/// Profile of a run.
pub fn compute(session: &Session<'_>, selection: &Selection, naming: Naming) -> (RunProfile, Faults) {
    let Naming { by, exact, classes } = naming;
    let (first, last) = selection.span(session);
    let mut collectors = Collectors::default();
    let steps = Timeline::new(first, last, PARTS, by == DiffKey::Task);
    let timeline = collectors.add(Timeline { keeps_before: true, ..steps });
    let needs = match by {
        DiffKey::Task => Needs::TASK_NAMES,
        DiffKey::Cache => Needs::CACHE_NAMES | Needs::FLAG_NAMES,
        DiffKey::CallSite | DiffKey::Module => Needs::FLAG_NAMES,
    };
    let result = pass::run(session, &Request::new(selection, &collectors).with(needs));
    let mut out = RunProfile {
        run: RunRow {
            events: events_of(session, selection)
                .saturating_add(folded::events_within(session.trace, selection.bounds(session))),
            length: last.saturating_sub(first),
            clock: ClockHead::of(session.trace.metadata()),
            seconds: session.clock().seconds(last.saturating_sub(first)),
            without_recorder: selection.without_recorder && recorder(session).is_some(),
            lost_events: session.losses.any(),
            lost_events_counted: session.losses.lost_since_first(),
        },
        rows: BTreeMap::new(),
    };
    let timeline = result.get(timeline);
    let labels = Labels::new(session);
    let caches = CacheNames::of(&result).in_style(classes);
    let interner = &result.interner;
    let task = |origin: usize| {
        let origin = interner.origins.get(origin as u32).copied().unwrap_or_default();
        // Numbers of tasks differ between runs, names do not.
        escaped(session.names().shown(origin.pid, origin.name))
    };
    let reclaimable = Reclaimable::of(session);
    let is_reclaimable = |number: u32| {
        let site = interner.sites.get(number).filter(|site| site.api == Api::Cache);
        let is_made = |call_site| MAKES_RECLAIMABLE.contains(&labels.function(call_site).as_str());
        let is_of_one = matches!(by, DiffKey::Cache | DiffKey::CallSite);
        is_of_one
            && site
                .is_some_and(|site| reclaimable.has(&caches.shown(number, None)) || is_made(site.call_site))
    };
    for (number, steps) in timeline.slab.iter().enumerate().filter(|(_, s)| !s.is_empty()) {
        let key = match by {
            DiffKey::Task => ("slab", task(number)),
            DiffKey::Module => {
                let Some(site) = interner.sites.get(number as u32) else { continue };
                ("slab", labels.module(site.call_site).unwrap_or_else(|| "? (no symbol)".to_owned()))
            }
            DiffKey::Cache | DiffKey::CallSite => {
                let Some(site) = interner.sites.get(number as u32) else { continue };
                let kind = if site.api == Api::Kmalloc { "kmalloc" } else { "cache" };
                let name = match by {
                    DiffKey::CallSite if exact => labels.symbol(site.call_site),
                    DiffKey::CallSite => labels.function(site.call_site),
                    _ => caches.shown(number as u32, None),
                };
                (kind, name)
            }
        };
        let row = out.rows.entry(key).or_default();
        row.add(steps, 1.0);
        row.is_reclaimable = is_reclaimable(number as u32);
    }
    let page_size = result.page_size.0 as f64;
    for (number, steps) in timeline.pages.iter().enumerate().filter(|(_, s)| !s.is_empty()) {
        let name = match by {
            DiffKey::Task => task(number),
            DiffKey::Cache | DiffKey::CallSite | DiffKey::Module => {
                let site = interner.pages.get(number as u32).copied().unwrap_or_default();
                let gfp = escaped(&interner.gfp_text(site.gfp_flags));
                format!("order {}, {}, {gfp}", site.order, result.migratetypes.name(site.migratetype))
            }
        };
        out.rows.entry(("pages", name)).or_default().add(steps, page_size);
    }
    (out, result.faults)
}

impl ProfileRow {
    fn add(&mut self, steps: &steps::Row<Step>, unit: f64) {
        let (mut alloc, mut live) = (DiffFigure::default(), DiffFigure::default());
        for (part, step) in steps.iter() {
            let (bytes, change) = (step.bytes_alloc as f64 * unit, step.live_change as f64 * unit);
            alloc.total += bytes;
            live.total += change;
            // Steps of pages do not count allocations: the number of frames is used instead.
            alloc.count += if step.allocs > 0 { step.allocs as f64 } else { step.bytes_alloc as f64 };
            if let (Some(a), Some(l)) = (alloc.parts.get_mut(part), live.parts.get_mut(part)) {
                *a += bytes;
                *l += change;
            }
        }
        live.count =
            if alloc.total > 0.0 { (live.total.abs() / alloc.total * alloc.count).max(1.0) } else { 0.0 };
        self.alloc.add(&alloc);
        self.live.add(&live);
    }

    /// Same figures for a run of another length.
    pub fn scaled(&self, factor: f64) -> Self {
        Self { alloc: self.alloc.scaled(factor), live: self.live.scaled(factor), ..*self }
    }
}
