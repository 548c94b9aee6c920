//! `findings`: the most important facts of a trace, ranked, and short totals: the first screen.
//!
//! It runs the reports `leaks`, `latency`, `pages` and `summary` in one pass and computes little itself: `growth` and `facts` make
//! findings of their rows, `held` adds the largest process at an OOM kill, `top` and `top_pages` who allocated most. `rows` ranks
//! them, for JSON and for the screen (`text`). A report that refuses to answer for the trace adds no finding.

mod facts;
mod finding;
mod growing;
mod growth;
mod held;
mod rows;
mod text;
mod top;
mod top_pages;
mod top_table;
mod whole_time;

use growth::PageGrowthRow;
use held::HeldRow;
pub use rows::FindingRows;
use rows::{FindingsShown, Parts};
use top::TopRow;
use top_pages::TopPagesRow;
use whole_time::WholeTimeGrowth;

use std::collections::HashMap;

use crate::collect::groups::PageGroupSums;
use crate::collect::page_use::PageFailureSums;
use crate::collect::tasks::{Kmalloc, TaskSums};
use crate::collect::{Collectors, Handle, PageFailures, PageGroups, TaskKmalloc, Tasks};
use crate::pass::Needs;
use crate::pass::selection::{recorder, recorder_threads};
use crate::render::look::Look;
use crate::render::screen::Screen;
use crate::reports::balance::{self, BalanceRows, FreeMemory, FreeShown, FreedPart};
use crate::reports::common::basis::{Input, WholeTime, lost, whole_time};
use crate::reports::common::labels::Labels;
use crate::reports::common::record_again::{RecordAgain, not_judged_for};
use crate::reports::common::stated::Keys;
use crate::reports::common::{Context, ReportContext, View};
use crate::reports::latency::{Latency, LatencyRows};
use crate::reports::leaks::judge::slab::Reclaimable;
use crate::reports::leaks::{self, LeakRows, Leaks, UnseenRow};
use crate::reports::pages::{PageRows, Pages};
use crate::reports::report::Report;
use crate::reports::summary::{Summary, SummaryRows};
use crate::trace::sliced::Sliced;

/// The first screen: findings from the numbers of other reports.
#[derive(Debug, Default, clap::Args)]
pub struct Findings {
    #[arg(skip)]
    leaks: Leaks,
    #[arg(skip)]
    latency: Latency,
    #[arg(skip)]
    pages: Pages,
}

/// Handles of the reports that findings come from.
#[derive(Debug)]
pub struct FindingsHandles {
    leaks: <Leaks as Report>::Handles,
    latency: <Latency as Report>::Handles,
    pages: <Pages as Report>::Handles,
    tasks: Handle<Tasks>,
    recorder: Option<(Handle<TaskKmalloc>, Handle<PageFailures>)>,
    /// Pages by holder, where an account took free memory whose holder is named.
    page_groups: Option<Handle<PageGroups>>,
}

/// Rows of the reports that findings come from; `None`: the report refuses to answer for this trace.
struct Sources {
    summary: SummaryRows,
    parts: Option<Parts>,
    leaks: Option<LeakRows>,
    /// Caches that grew without allocation events.
    unseen: Vec<UnseenRow>,
    latency: Option<LatencyRows>,
    pages: Option<PageRows>,
    /// Who allocated most slab memory, and who holds most.
    top: [Option<TopRow>; 2],
    /// The same of pages.
    top_pages: [Option<TopPagesRow>; 2],
    /// Growth of pages.
    page_growth: Option<PageGrowthRow>,
    /// Free memory of the machine.
    free_memory: Option<FreeMemory>,
    /// The largest process when the OOM killer ended the wait of a ring.
    held: Option<HeldRow>,
    /// The verdict of `leaks`, where it finds no growth or refuses to judge.
    verdict: Option<String>,
    /// Leads where lost events forbid a verdict.
    perhaps: Vec<String>,
    /// The longest time without losses, where there are some and lives are known.
    whole_time: Option<WholeTime>,
    /// Growth in it, where growth is not judged.
    whole_time_growth: Option<WholeTimeGrowth>,
    /// Facts for the screen, without growth of what the kernel can reclaim.
    shown: FindingsShown,
    /// Function whose calls of kmalloc waste most, and its bytes.
    most_wasting: Option<(String, u64)>,
    /// kmalloc by the recorder, by address of the call site.
    recorder: HashMap<u64, Kmalloc>,
    /// Page allocations of the recorder that failed, by allocation flags.
    recorder_failed: HashMap<u64, u64>,
}

impl Report for Findings {
    type Handles = FindingsHandles;
    type Rows = FindingRows;

    const NAME: &'static str = "findings";
    const ABOUT: &'static str = "The most important facts, ranked; the same as without a command";
    const RESTS_ON: Input = Input::Nothing;
    const KEYS: Keys = Keys::All;
    const HAS_LINES: bool = false;

    fn adds_sums(&self) -> bool {
        true
    }

    fn needs(&self) -> Needs {
        self.pages.needs() | Summary.needs()
    }

    fn collect(&self, context: &Context<'_, '_>, collectors: &mut Collectors) -> FindingsHandles {
        FindingsHandles {
            leaks: self.leaks.collect(context, collectors),
            latency: self.latency.collect(context, collectors),
            pages: self.pages.collect(context, collectors),
            tasks: collectors.add(Tasks),
            recorder: recorder(context.session)
                .map(|pid| (collectors.add(TaskKmalloc(pid)), collectors.add(PageFailures))),
            page_groups: free_of(context)
                .is_some_and(|(_, free)| free.names_holders())
                .then(|| collectors.add(PageGroups)),
        }
    }

    fn compute(&self, context: &ReportContext<'_, '_>, handles: &FindingsHandles) -> FindingRows {
        let (analysis, basis) = (context.analysis, context.basis());
        let own = handles.recorder.map(|(sums, _)| by_call_site(context, &analysis.get(sums).callers));
        let failed =
            handles.recorder.map(|(_, failures)| failed_of_recorder(context, analysis.get(failures)));
        let recorder = own.unwrap_or_default();
        let summary = Summary.compute(context, &());
        let leaks = answered(&self.leaks, context, &handles.leaks);
        let whole_time = whole_time(context).filter(|_| basis.lacks(Input::Lives).is_none());
        let is_judged = leaks.as_ref().is_some_and(|rows| rows.judges() || rows.grows());
        let judged_part = whole_time.as_ref().filter(|_| !is_judged);
        let lost_verdict = lost_verdict(&self.leaks, context).filter(|_| leaks.is_none());
        let lacks_events = lost_verdict.is_some() || leaks.as_ref().is_some_and(LeakRows::lacks_events);
        let perhaps = if lacks_events { self.perhaps(context, handles, leaks.as_ref()) } else { Vec::new() };
        let sources = Sources {
            parts: rows::parts(context, &summary),
            top: [top::allocated, top::live].map(|top| top(context, analysis.get(handles.tasks), &summary)),
            top_pages: [top_pages::allocated, top_pages::live].map(|top| {
                top(context, (analysis.get(handles.tasks), analysis.get(handles.pages.0)), &summary)
            }),
            page_growth: growth::page_growth(context, &summary),
            free_memory: free_memory(
                context,
                analysis.get(handles.tasks),
                handles.page_groups.map(|groups| analysis.get(groups)),
            ),
            held: HeldRow::of(context),
            verdict: match &leaks {
                Some(rows) => {
                    let view = context.view(Look::default());
                    leaks::no_growth_sentence(rows, &view).or_else(|| leaks::little_growth(rows, &view))
                }
                None => lost_verdict.clone().or_else(|| not_judged(&self.leaks, context)),
            },
            perhaps,
            whole_time_growth: judged_part.and_then(|whole| WholeTimeGrowth::of(context, whole)),
            whole_time,
            shown: FindingsShown {
                reclaimable: None,
                has_stacks: leaks::has_stacks(context, &handles.leaks),
                has_stalls: basis.lacks(Input::Stalls).is_none(),
                has_events: context.session.trace.event_count() > 0,
                begins_at_boot: context.session.begins_before_clock(),
                says_losses: lacks_events,
                losses_len: 0,
                page_bytes_older: growth::page_bytes_older(context),
                again: lacks_events.then(|| RecordAgain::of(context.session)).flatten(),
            },
            summary,
            unseen: leaks::unseen(context, &handles.leaks),
            leaks,
            latency: answered(&self.latency, context, &handles.latency),
            pages: answered(&self.pages, context, &handles.pages),
            most_wasting: facts::most(context, &recorder),
            recorder,
            recorder_failed: failed.unwrap_or_default(),
        };
        rows::compute(context, sources)
    }

    fn screen(&self, rows: &FindingRows, view: &View) -> Screen {
        text::screen(rows, view)
    }
}

impl Findings {
    /// Leads where events were lost; `rows`: those of `leaks`, unless it refuses to judge.
    fn perhaps(
        &self,
        context: &ReportContext<'_, '_>,
        handles: &FindingsHandles,
        rows: Option<&LeakRows>,
    ) -> Vec<String> {
        let heeds = context.selection.check(context.session, Leaks::TITLE, self.leaks.keys()).is_ok();
        let computed = (rows.is_none() && heeds).then(|| self.leaks.compute(context, &handles.leaks));
        leaks::lossy_leads(context, rows.or(computed.as_ref()))
    }
}

/// The balance of a whole recording, and free memory of it. Texts that cannot be read are for `balance` to refuse.
fn free_of(context: &Context<'_, '_>) -> Option<(BalanceRows, FreeMemory)> {
    if context.selection.is_active() {
        return None;
    }
    let rows = balance::of_recording(context.session, 1).ok().flatten()?;
    let free = FreeMemory::of(&rows)?;
    Some((rows, free))
}

/// Free memory at the begin and at the end of a recording. Page cache of the recording's own file are pages that the recorder
/// allocated, at most its length.
fn free_memory(
    context: &ReportContext<'_, '_>,
    tasks: &TaskSums,
    groups: Option<&PageGroupSums>,
) -> Option<FreeMemory> {
    let (rows, mut free) = free_of(context)?;
    let reclaimable = Reclaimable::of(context.session);
    let cache = rows.caches.iter().flatten().next().and_then(|cache| {
        let growth = u64::try_from(cache.bytes_change).ok().filter(|growth| *growth > 0)?;
        let account = if reclaimable.has(&cache.cache) { "slab_reclaimable" } else { "slab_unreclaimable" };
        Some((cache.cache.clone(), account, growth))
    });
    free.shown.cache = cache;
    if Sliced::of(context.session.trace.metadata()).is_some() {
        // Events of a part do not explain changes of the whole.
        return Some(free);
    }
    let (analysis, recorder) = (context.analysis, recorder_threads(context.session));
    let is_own = |origin: u32| {
        let pid = analysis.interner.origins.get(origin).map(|origin| origin.pid);
        pid.is_some_and(|pid| recorder.binary_search(&pid).is_ok())
    };
    let own = (0u32..).zip(&tasks.origins).filter(|(origin, _)| is_own(*origin));
    let pages = own.map(|(_, sums)| sums.pages.frames_live).fold(0, u64::saturating_add);
    let own_file = pages.saturating_mul(analysis.page_size.0).min(context.session.trace.len_bytes());
    let (holder, account_holders) =
        groups.map_or_else(Default::default, |groups| balance::holders_of_growth(context, groups, &rows));
    let freed = FreedPart::of(context, &rows);
    free.shown = FreeShown { own_file, holder, account_holders, freed, ..free.shown };
    Some(free)
}

/// Sums of kmalloc by address of the call site.
fn by_call_site(context: &ReportContext<'_, '_>, sums: &[Kmalloc]) -> HashMap<u64, Kmalloc> {
    let analysis = context.analysis;
    let labels = Labels::new(context.session);
    // A number is of a call site and an interface: those of other interfaces have no sums.
    let used = (0u32..).zip(sums).filter(|(_, sums)| sums.alloc > 0);
    used.map(|(number, sums)| (labels.caller(analysis, number).1, *sums)).collect()
}

/// Failed page allocations of the recorder, by allocation flags.
fn failed_of_recorder(context: &ReportContext<'_, '_>, failures: &PageFailureSums) -> HashMap<u64, u64> {
    let interner = &context.analysis.interner;
    let recorder = recorder_threads(context.session);
    let mut out: HashMap<u64, u64> = HashMap::new();
    for ((site, origin), number) in &failures.0 {
        let pid = interner.origins.get(*origin).map(|origin| origin.pid);
        let is_own = pid.is_some_and(|pid| recorder.binary_search(&pid).is_ok());
        if let Some(site) = interner.pages.get(*site).filter(|_| is_own) {
            *out.entry(site.gfp_flags).or_default() += number;
        }
    }
    out
}

/// The verdict where `leaks` refuses to judge because of the events that were lost.
fn lost_verdict(leaks: &Leaks, context: &ReportContext<'_, '_>) -> Option<String> {
    leaks.refuses(context).filter(|_| context.basis().lacks(leaks.rests_on()).is_none())?;
    lost(context).map(|(_, lost)| not_judged_for(&lost, RecordAgain::of(context.session).as_ref()))
}

/// The reason why growth was not judged, where slab allocations were recorded.
fn not_judged(leaks: &Leaks, context: &ReportContext<'_, '_>) -> Option<String> {
    let is_expected = context.basis().allocs(None) && context.session.trace.event_count() > 0;
    let reason = leaks.refuses(context).filter(|_| is_expected)?;
    Some(format!("Growth was not judged: {reason}."))
}

/// Rows of a report; `None` where it refuses to answer, or does not heed the selection.
fn answered<R: Report>(report: &R, context: &ReportContext<'_, '_>, handles: &R::Handles) -> Option<R::Rows> {
    let heeds = context.selection.check(context.session, R::TITLE, report.keys()).is_ok();
    let answers = heeds && report.check(context).is_ok() && report.refuses(context).is_none();
    answers.then(|| report.compute(context, handles))
}
