//! `findings`: the most important facts of a trace, ranked, and short totals: the first screen.

mod failures;
mod finding;
mod growth;
mod recording;
mod rows;
mod text;
mod waits;
mod waste;

pub use finding::Finding;
pub use rows::FindingRows;

use std::collections::HashMap;

use crate::collect::task_kmalloc::Kmalloc;
use crate::collect::{Collectors, Handle, TaskKmalloc};
use crate::pass::selection::{Selection, recorder};
use crate::pass::{Analysis, Needs};
use crate::render::screen::Screen;
use crate::reports::callers::{CallerRows, Callers};
use crate::reports::common::basis::Input;
use crate::reports::common::labels::Labels;
use crate::reports::common::sorting::SortKey;
use crate::reports::common::stated::Keys;
use crate::reports::common::{Context, View};
use crate::reports::latency::{Latency, LatencyRows};
use crate::reports::leaks::{LeakRows, Leaks};
use crate::reports::pages::{PageRows, Pages};
use crate::reports::report::{NoOptions, Report};
use crate::reports::summary::{Summary, SummaryRows};

/// The first screen: findings from the numbers of other reports.
#[derive(Debug, Default)]
pub struct Findings {
    leaks: Leaks,
    latency: Latency,
    pages: Pages,
}

/// Handles of the reports that findings come from.
#[derive(Debug)]
pub struct Handles {
    leaks: <Leaks as Report>::Handles,
    latency: <Latency as Report>::Handles,
    pages: <Pages as Report>::Handles,
    recorder: Option<Handle<TaskKmalloc>>,
}

/// Rows of the reports that findings come from; `None`: the report refuses to answer for this trace.
struct Sources {
    summary: SummaryRows,
    leaks: Option<LeakRows>,
    latency: Option<LatencyRows>,
    pages: Option<PageRows>,
    /// All call sites.
    callers: Option<CallerRows>,
    /// kmalloc by the recorder, by address of the call site.
    recorder: HashMap<u64, Kmalloc>,
}

impl Report for Findings {
    type Options = NoOptions;
    type Handles = Handles;
    type Rows = FindingRows;

    const NAME: &'static str = "findings";
    const KEY: &'static str = "findings";
    const TITLE: &'static str = "findings";
    const ABOUT: &'static str = "The most important facts, ranked; the same as without a command";
    const HAS_LINES: bool = false;

    fn new(_: NoOptions, _: &Selection) -> Self {
        Self::default()
    }

    fn with_defaults() -> Option<Self> {
        Some(Self::default())
    }

    fn rests_on(&self) -> Input {
        Input::Nothing
    }

    fn keys(&self) -> Keys {
        Keys::All
    }

    fn needs(&self) -> Needs {
        self.pages.needs() | Summary.needs()
    }

    fn collect(&self, context: &Context<'_, '_>, collectors: &mut Collectors) -> Handles {
        Handles {
            leaks: self.leaks.collect(context, collectors),
            latency: self.latency.collect(context, collectors),
            pages: self.pages.collect(context, collectors),
            recorder: recorder(context.session).map(|pid| collectors.add(TaskKmalloc(pid))),
        }
    }

    fn compute(&self, context: &Context<'_, '_>, analysis: &Analysis, handles: &Handles) -> FindingRows {
        let callers = Callers::sorted_by(SortKey::Waste);
        let all = Context { limit: usize::MAX, ..*context };
        let sources = Sources {
            summary: Summary.compute(context, analysis, &()),
            leaks: answered(&self.leaks, context, analysis, &handles.leaks),
            latency: answered(&self.latency, context, analysis, &handles.latency),
            pages: answered(&self.pages, context, analysis, &handles.pages),
            callers: answered(&callers, &all, analysis, &()),
            recorder: handles
                .recorder
                .map_or_else(HashMap::new, |sums| by_call_site(context, analysis, analysis.get(sums))),
        };
        rows::of(context, sources)
    }

    fn screen(&self, rows: &FindingRows, view: &View) -> Screen {
        text::of(rows, view)
    }
}

/// Sums of kmalloc by address of the call site.
fn by_call_site(context: &Context<'_, '_>, analysis: &Analysis, sums: &[Kmalloc]) -> HashMap<u64, Kmalloc> {
    let labels = Labels::new(context.session);
    // A number is of a call site and an interface: those of other interfaces have no sums.
    let used = (0u32..).zip(sums).filter(|(_, sums)| sums.alloc > 0);
    used.map(|(number, sums)| (labels.caller(analysis, number).1, *sums)).collect()
}

/// Rows of a report; `None` where it refuses to answer, or does not heed the selection.
fn answered<R: Report>(
    report: &R,
    context: &Context<'_, '_>,
    analysis: &Analysis,
    handles: &R::Handles,
) -> Option<R::Rows> {
    let heeds = context.selection.check(context.session, R::TITLE, report.keys()).is_ok();
    let answers = heeds && report.check(context).is_ok() && report.refuses(context, analysis).is_none();
    answers.then(|| report.compute(context, analysis, handles))
}
