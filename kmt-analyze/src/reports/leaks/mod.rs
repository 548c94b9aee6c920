//! `leaks`: slab objects and pages that are still allocated, with a verdict on their growth.
//!
//! The collectors `Growth` and `TaskLifetimes` count survivors by time of allocation, `judge` gives each part a verdict, and `rows`
//! makes rows of the judged parts, for JSON and CSV. `text` has the screen. `findings` uses the same rows. Where most events
//! were lost, the report refuses, and `lossy` has the kernel's own counts.

mod cache_growth;
pub mod judge;
mod lossy;
mod makers;
mod named_parts;
mod reclaimable;
mod row;
mod rows;
mod sentence;
mod text;
mod text_parts;
mod text_tables;
mod who;

use cache_growth::CacheGrowth;
use lossy::Lossy;
pub use reclaimable::{ReclaimableGrowth, rate};
pub use row::LeakRow;
pub use rows::{LeakRows, LeakTables, UnseenRow};
pub use sentence::{growth_sentence, may_grow_sentence, page_growth_sentence};
pub use text::{little_growth, no_growth_sentence, reclaimable_growth};

use std::collections::BTreeMap;
use std::sync::Arc;

use clap::builder::{PathBufValueParser, TypedValueParser};

use crate::collect::{Calls, Collectors, Growth, Handle, TaskLifetimes, Unmatched};
use crate::pass::Needs;
use crate::pass::selection::{command_exit, recorder_threads};
use crate::render::look::Look;
use crate::render::screen::Screen;
use crate::reports::common::basis::{Input, too_lossy};
use crate::reports::common::lead::MaybeRefused;
use crate::reports::common::stated::Keys;
use crate::reports::common::{Context, ReportContext, View};
use crate::reports::leaks::judge::makers::Ignore;
use crate::reports::leaks::judge::verdict::Verdict;
use crate::reports::leaks::judge::{judged, slab};
use crate::reports::report::Report;
use crate::trace::session::Session;

/// Objects and pages that are still allocated.
#[derive(Debug, Default, clap::Args)]
pub struct Leaks {
    /// Hide findings that match a pattern in FILE
    ///
    /// FILE has one pattern per line, with * and ?; lines that begin with # are comments. A pattern matches a call site
    /// (alloc_pipe_info+0xd7/0x230), a function (alloc_pipe_info), a cache (kmalloc-1k), or the task that holds at
    /// least half of the memory (python3-*). A group of call sites that grow together is hidden if its largest call
    /// site matches. The number of hidden findings is reported.
    #[arg(long, value_name = "FILE", value_parser = PathBufValueParser::new().try_map(Ignore::read))]
    ignore: Option<Ignore>,
}

/// Results of the pass.
#[derive(Debug)]
pub struct LeaksHandles {
    growth: Handle<Growth>,
    task_lifetimes: Handle<TaskLifetimes>,
    calls: Option<Handle<Calls>>,
    unmatched: Handle<Unmatched>,
    until: Option<u64>,
}

/// With more than this lost, most objects without a free event are those whose event was lost.
const LOST_PERCENT_MAX: f64 = 10.0;

impl Report for Leaks {
    type Handles = LeaksHandles;
    type Rows = LeakRows;

    const NAME: &'static str = "leaks";
    const KEY: &'static str = "not_seen_freed";
    const TITLE: &'static str = "leak report";
    const ABOUT: &'static str = "Memory that grows: who allocates it, and where";
    const NEEDS: Needs = Needs::FLAG_NAMES.union(Needs::CACHE_NAMES);
    const RESTS_ON: Input = Input::Lives;
    const KEYS: Keys = Keys::All;

    fn adds_sums(&self) -> bool {
        true
    }

    fn details() -> String {
        Verdict::list()
    }

    fn refuses(&self, context: &ReportContext<'_, '_>) -> Option<String> {
        let basis = context.basis().lacks(self.rests_on());
        basis.or_else(|| lacks_events(context))
    }

    /// Where most events were lost: the kernel's counts, which losses do not change.
    fn instead(
        &self,
        context: &ReportContext<'_, '_>,
        handles: &Self::Handles,
        refused: &str,
    ) -> Option<LeakRows> {
        let is_lossy = context.basis().lacks(self.rests_on()).is_none()
            && lacks_events(context).is_some_and(|reason| reason == refused);
        is_lossy.then(|| {
            let rows = self.compute(context, handles);
            let lossy = Lossy::of(context, lossy_leads(context, Some(&rows)));
            LeakRows { leaks: MaybeRefused::Refused { refused: refused.to_owned() }, lossy }
        })
    }

    fn collect(&self, context: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        let Context { session, selection, .. } = context;
        let (first, last) = selection.span(session);
        let until = command_exit(session, selection);
        let growth = Growth::new(first, last, until).without(recorder_threads(session));
        LeaksHandles {
            growth: collectors.add(growth),
            task_lifetimes: collectors.add(TaskLifetimes { processes: Arc::new(processes(session)) }),
            unmatched: collectors.add(Unmatched),
            calls: judged::may_exist(session).then(|| collectors.add(Calls { until, is_of_window: true })),
            until,
        }
    }

    fn compute(&self, context: &ReportContext<'_, '_>, handles: &Self::Handles) -> LeakRows {
        let analysis = context.analysis;
        let collected = slab::LeakSums {
            growth: analysis.get(handles.growth),
            task_events: analysis.get(handles.task_lifetimes),
            calls: handles.calls.map(|calls| analysis.get(calls)),
            until: handles.until,
        };
        let mut rows = rows::compute(context, collected, self.ignore.as_ref());
        if let MaybeRefused::Found(tables) = &mut rows.leaks {
            tables.unseen_growth = unseen(context, handles);
            tables.unseen_growth.truncate(context.limit);
        }
        if rows.lacks_events() && !rows.grows() {
            rows.lossy = Lossy::of(context, lossy_leads(context, Some(&rows)));
        }
        rows
    }

    fn lacks_table(&self, rows: &LeakRows) -> Option<String> {
        match &rows.leaks {
            MaybeRefused::Refused { refused } => Some(refused.clone()),
            MaybeRefused::Found(_) => None,
        }
    }

    fn screen(&self, rows: &LeakRows, view: &View) -> Screen {
        text::screen(rows, view)
    }
}

/// Leads where events were lost. Without rows of `leaks`: those of the kernel's counts.
pub fn lossy_leads(context: &ReportContext<'_, '_>, rows: Option<&LeakRows>) -> Vec<String> {
    let view = context.view(Look::default());
    match rows.and_then(LeakRows::tables) {
        Some(tables) => lossy::leads(tables.text.grown.as_ref(), tables.text.suspect.as_ref(), &view),
        None => lossy::leads(CacheGrowth::of(context).as_ref(), None, &view),
    }
}

/// Reason why objects without a free event are not judged: most of their events were lost.
fn lacks_events(context: &Context<'_, '_>) -> Option<String> {
    too_lossy(context, LOST_PERCENT_MAX, "objects whose free events were lost look like leaks")
}

/// Processes of threads that the file lists, by thread.
fn processes(session: &Session<'_>) -> BTreeMap<i32, i32> {
    let threads =
        session.trace.metadata().tasks.iter().filter(|task| task.tgid != 0 && task.tgid != task.pid);
    threads.map(|task| (task.pid, task.tgid)).collect()
}

/// True if slab allocations of the selection have stacks.
pub fn has_stacks(context: &ReportContext<'_, '_>, handles: &LeaksHandles) -> bool {
    handles.calls.is_some_and(|calls| !context.analysis.get(calls).stacks.is_empty())
}

/// Growth of caches that the kernel counts and no event shows, the largest first.
pub fn unseen(context: &ReportContext<'_, '_>, handles: &LeaksHandles) -> Vec<UnseenRow> {
    let analysis = context.analysis;
    rows::unseen(context, analysis.get(handles.growth), &analysis.get(handles.unmatched).0)
}
