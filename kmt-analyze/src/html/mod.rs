//! `report`: one HTML page with everything in it, which needs no network and no other file.
//!
//! Reports run over one pass and become parts of the page; rows of its tables are in `groups`. With an earlier file the page has
//! the changes since then.

mod details;
mod document;
mod encode;
mod groups;
mod screen;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use kmt_common::shell;

use crate::collect::{Collectors, Handle, Steps};
use crate::export::Target;
use crate::failure::{Failure, Outcome, Result};
use crate::pass::folded::needs_events;
use crate::pass::selection::Selection;
use crate::pass::{self, Needs, Request};
use crate::render::look::Look;
use crate::render::screen::Screen;
use crate::reports::column_order::ColumnOrder;
use crate::reports::common::stated::Keys;
use crate::reports::common::{Context, ReportContext};
use crate::reports::diff;
use crate::reports::findings::Findings;
use crate::reports::lifetimes::Lifetimes;
use crate::reports::output::{Output, Show};
use crate::reports::registry::named;
use crate::reports::report::AnyReport;
use crate::reports::run::{collect, needs};
use crate::sort_rows::SortRows;
use crate::stream::intern::InternTable;
use crate::trace::folded;
use crate::trace::names::SizeClasses;
use crate::trace::open::outcome;
use crate::trace::session::Session;

/// Reports whose screens the page has, in that order, with the headings of their parts.
const PARTS: [(&str, &str); 14] = [
    ("diff", "What changed"),
    ("leaks", "What grows"),
    ("peak", "The peak"),
    ("lifetimes", "How long objects live"),
    ("sizes", "Sizes and size classes"),
    ("fragmentation", "Fragmentation"),
    ("waste", "What is wasted"),
    ("pages", "Pages"),
    ("vmalloc", "vmalloc areas"),
    ("percpu", "Percpu allocations"),
    ("latency", "What waits for memory"),
    ("slabinfo", "Live objects by the kernel's count"),
    ("summary", "All totals"),
    ("anomalies", "What does not add up"),
];

/// Rows of a table of a report.
const ROWS: usize = 20;

/// Fewest steps of the page, and most.
const STEPS: (u64, u64) = (400, 1_000);

/// Most changes in steps of all rows: two megabytes, packed.
const KEPT_MAX: usize = 1_500_000;

/// Options of `report`.
#[derive(clap::Args)]
pub struct PageOptions {
    /// The .kmt file, or the files of one recording of `kmt-capture record --rotate`; - is standard input
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// An earlier file: the page has what changed since
    #[arg(long, value_name = "FILE.kmt")]
    pub against: Option<PathBuf>,
    /// File to write; - is standard output
    #[arg(short, long, value_name = "FILE.html", default_value = "-")]
    pub output: PathBuf,
    /// Overwrite existing output
    #[arg(long)]
    pub force: bool,
    /// Mode 0644, for a web server. Names and addresses in the page are not anonymized
    #[arg(long)]
    pub public: bool,
    /// Open the page in a browser (xdg-open)
    #[arg(long)]
    pub open: bool,
    #[command(flatten)]
    pub selection: Selection,
}

impl PageOptions {
    /// The file to write.
    pub fn target(&self) -> Target {
        Target { path: self.output.clone(), force: self.force }
    }
}

/// Writes the page; `changes`: since an earlier file.
pub fn run(session: &Session<'_>, options: &PageOptions, changes: Option<Screen>) -> Result<Outcome> {
    let context = Context { session, selection: &options.selection, limit: ROWS };
    options.selection.check(session, "report", Keys::All)?;
    let is_folded = session.trace.header().folded;
    if let Some(reason) = needs_events(&options.selection).filter(|_| is_folded) {
        return Err(Failure::new(format!("{}: {reason}", session.path.display())));
    }
    let findings = Findings::default();
    let parts = PARTS.iter().filter_map(|&(name, title)| Some(((named(name)?.with_defaults)()?, title)));
    let parts: Vec<(Box<dyn AnyReport>, &str)> = parts.collect();
    // Those that heed the selection.
    let heeds = |report: &dyn AnyReport| {
        options.selection.check(session, report.title(), report.keys()).is_ok()
            && report.check(&context).is_ok()
    };
    let mut reports: Vec<&dyn AnyReport> = vec![&findings];
    reports.extend(parts.iter().map(|(report, _)| &**report).filter(|&report| heeds(report)));
    let mut collectors = Collectors::default();
    let steps: Handle<Steps> =
        collectors.add(steps(context.selection.span(session), folded::interval(session.trace).unwrap_or(1)));
    let lifetimes = collectors.add(Lifetimes::collector(&context));
    let pending = collect(&context, &reports, &mut collectors);
    let request = Request::new(&options.selection, &collectors).with(needs(&reports) | Needs::CACHE_NAMES);
    let analysis = pass::run(session, &request);
    let look = Look { width: Look::NO_LIMIT, wide: true, ..Look::default() };
    let context = ReportContext::new(&context, &analysis);
    let view = context.view(look);
    let collected = reports.iter().zip(&pending);
    let mut screens: Vec<_> =
        collected.map(|(report, pending)| (report.name(), pending.screen(&context, &view))).collect();
    screens.extend(changes.map(|screen| ("diff", Ok(screen))));
    screens
        .get_mut(1..)
        .unwrap_or_default()
        .sort_rows_by_key(|(name, _)| PARTS.iter().position(|part| part.0 == *name));
    let (sums, mut functions) = (analysis.get(steps), InternTable::<String>::default());
    let groups = groups::compute(&context, sums, &mut functions);
    let sites = groups::call_sites(&analysis, sums);
    let page = document::PageDocument {
        context: &context,
        steps: sums.steps,
        groups,
        functions: functions.items().iter().map(|name| groups::shortened(name)).collect(),
        details: details::compute(&context, (sums, analysis.get(lifetimes)), &sites),
        screens,
        view,
    };
    let mut out = crate::export::output::Export::open_binary(&options.target(), &session.env)?;
    out.write(page.html().as_bytes())?;
    if options.public {
        out.make_public()?;
    }
    out.finish()?;
    Ok(outcome(session, &analysis.faults))
}

/// Opens a page with the program that the desktop has for it.
pub fn open(page: &Path) -> Result<()> {
    let status = Command::new("xdg-open").arg(page).stdin(Stdio::null()).stdout(Stdio::null()).status();
    let failure = match status {
        Ok(status) if status.success() => return Ok(()),
        Ok(status) => Failure::new(format!("xdg-open ended with {status}")),
        Err(error) => Failure::os("xdg-open cannot be run", &error),
    };
    Err(failure.hint(format!("the page is written: open {} in a browser", page.display())))
}

/// Steps of a round length, so that times at their edges are short; not below that of an interval of sums.
fn steps((first, last): (u64, u64), interval: u64) -> Steps {
    let length = last.saturating_sub(first).saturating_add(1);
    let powers = std::iter::successors(Some(1u64), |power| power.checked_mul(10));
    let mut round = powers.flat_map(|power| [power, power.saturating_mul(2), power.saturating_mul(5)]);
    let step = round.find(|&step| step >= interval && length.div_ceil(step) <= STEPS.1).unwrap_or(u64::MAX);
    Steps { start: first, step, steps: length.div_ceil(step).max(1) as usize, kept_max: KEPT_MAX }
}

/// The screen of a comparison of two files, in the same selection. Call sites are matched exactly where both kernels are
/// of one build.
pub fn changes(before: &Session<'_>, after: &Session<'_>, selection: &Selection) -> Screen {
    let build = diff::build(before);
    let is_one_build = build.is_some() && build == diff::build(after);
    let naming =
        diff::Naming { by: diff::DiffKey::CallSite, exact: is_one_build, classes: SizeClasses::default() };
    // Sums have no task.
    let has_sums = before.trace.header().folded || after.trace.header().folded;
    let selection = Selection { without_recorder: !has_sums, ..selection.clone() };
    let profile = |session: &Session<'_>| diff::compute(session, &selection, naming).0;
    let names = [&before.path, &after.path].map(|path| path.display().to_string());
    let look = Look { width: Look::NO_LIMIT, wide: true, ..Look::default() };
    let options = diff::DiffOptions {
        arguments: [&before.path, &after.path].map(|path| shell::path(path)).to_vec(),
        names,
        by: diff::DiffKey::CallSite,
        per_second: None,
        rates: false,
        all: false,
        fail_over: None,
        output: Output { limit: Some(ROWS), json: false, show: Show { look, pager: false } },
        order: ColumnOrder::default(),
        by_function: !is_one_build,
    };
    let (mut screen, cautions) = diff::screen(&[profile(before)], &[profile(after)], &options);
    cautions.into_iter().for_each(|caution| screen.note(caution));
    screen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round_and_cover_all() {
        for (first, last) in [(0, 0), (5, 1_004), (7, 30_000_000_123), (0, u64::MAX), (1, 2)] {
            let steps = steps((first, last), 1);
            assert!(steps.steps as u64 <= STEPS.1, "{steps:?}");
            assert!(
                last - first < steps.step.saturating_mul(steps.steps as u64) || last == u64::MAX,
                "{steps:?}"
            );
            assert!(steps.steps as u64 >= STEPS.0 || steps.step == 1, "{steps:?}");
        }
        assert_eq!(
            steps((7, 30_000_000_123), 1),
            Steps { start: 7, step: 50_000_000, steps: 601, kept_max: KEPT_MAX }
        );
        assert_eq!(steps((7, 30_000_000_123), 1_500_000_000).step, 2_000_000_000);
    }
}
