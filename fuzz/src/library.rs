//! The library of kmt-analyze, called as a tool calls it, on files that are made of any bytes.
//!
//! The first of two bytes chooses the selection, the second one the limit of rows and the reports that have a pass of
//! their own besides. One pass has the collectors of all reports and one of this target.

use std::path::Path;

use kmt_analyze::collect::Collectors;
use kmt_analyze::open::{self, Session};
use kmt_analyze::pass::{self, Condition, Needs, Request, Selection, TimeRange};
use kmt_analyze::reports::{
    AnyReport, Context, Look, Pending, REPORTS, Report, ReportContext, Summary, collect, needs, page,
};

use super::analyze::input;
use super::counted::{Counted, Counting};

/// JSON and text of a report, or the reason why it refuses.
type Shown = Result<(String, String), String>;

/// Most rows of a table.
const LIMITS: [usize; 4] = [20, 1, 0, usize::MAX];

/// One in this many reports has a pass of its own, of each input: passes are most of the time.
const ALONE_ONE_IN: usize = 5;

/// Runs the library over a file in memory.
pub fn run(data: &[u8]) {
    let Some(([which, how], file)) = input(data) else { return };
    let (limit, which_alone) = (usize::from(how) % LIMITS.len(), usize::from(how) / LIMITS.len());
    compare(&file, &selection(which), LIMITS[limit], |place| (place + which_alone) % ALONE_ONE_IN == 0);
}

/// Runs all reports and a collector over one pass of a file, with one thread and with several that read on behind the end
/// of a window, and reports over a pass of their own: the answers are the same. Returns the number of reports, 0 if the
/// file or the selection is refused.
pub fn compare(file: &[u8], selection: &Selection, limit: usize, is_alone: impl Fn(usize) -> bool) -> usize {
    let path = Path::new("memory.kmt");
    let Ok(trace) = open::trace(path, file) else { return 0 };
    let session = Session::new(path, &trace);
    let selection = &Selection { threads: Some(1), ..selection.clone() };
    let context = Context { session: &session, selection, limit };
    let reports = accepting(&context);
    if reports.is_empty() {
        return 0;
    }
    let reports: Vec<&dyn AnyReport> = reports.iter().map(|report| &**report).collect();
    let (together, counted) = joint(&context, &reports, Needs::empty());
    let several = Selection { threads: Some(3), ..selection.clone() };
    let several = Context { selection: &several, ..context };
    let (reading_on, counted_reading_on) = joint(&several, &reports, Needs::LATER_ENDS);
    assert_eq!(counted, counted_reading_on, "one thread and several");
    for (place, report) in reports.iter().enumerate() {
        let name = report.name();
        assert_eq!(together[place], reading_on[place], "{name}: one thread and several that read on");
        if is_alone(place) {
            assert_eq!(together[place], alone(&context, *report), "{name}: in the joint pass and in its own");
        }
    }
    reports.len()
}

/// Reports that accept the selection, in their usual form.
fn accepting(context: &Context<'_, '_>) -> Vec<Box<dyn AnyReport>> {
    let reports = REPORTS.iter().filter_map(|entry| (entry.with_defaults)());
    let accepts = |report: &dyn AnyReport| {
        context.selection.check(context.session, report.title(), report.keys()).is_ok()
            && report.check(context).is_ok()
    };
    reports.filter(|report| accepts(&**report)).collect()
}

/// All reports over one pass, whose totals are checked against the collector of this target.
fn joint(context: &Context<'_, '_>, reports: &[&dyn AnyReport], more: Needs) -> (Vec<Shown>, Counted) {
    let mut collectors = Collectors::default();
    let pending = collect(context, reports, &mut collectors);
    let counting = collectors.add(Counting);
    let request = Request::new(context.selection, &collectors).with(needs(reports) | more);
    let analysis = pass::run(context.session, &request);
    let context = &ReportContext::new(context, &analysis);
    let rows = Summary.compute(context, &());
    analysis.get(counting).check(&rows, !context.selection.is_active());
    let shown = pending.iter().map(|report| show(&**report, context));
    (shown.collect(), *analysis.get(counting))
}

/// One report over a pass of its own.
fn alone(context: &Context<'_, '_>, report: &dyn AnyReport) -> Shown {
    let mut collectors = Collectors::default();
    let pending = report.collect(context, &mut collectors);
    let analysis =
        pass::run(context.session, &Request::new(context.selection, &collectors).with(needs(&[report])));
    let context = ReportContext::new(context, &analysis);
    show(&*pending, &context)
}

/// A report as JSON that can be parsed, and as text that cannot steer a terminal.
fn show(report: &dyn Pending, context: &ReportContext<'_, '_>) -> Shown {
    let document = report.document(context)?;
    assert!(!document.is_empty(), "rows that cannot be serialized");
    let json = serde_json::to_string(&document).expect("a map of texts and numbers");
    assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok_and(|value| value.is_object()));
    let screen = report.screen(context, &context.view(Look::default()))?;
    // Narrow and wide, without and with all columns.
    let text = [40, 80, Look::NO_LIMIT]
        .map(|width| page(&screen, &[], &["memory.kmt".to_owned()], &Look { width, ..Look::default() }));
    let text = text.concat();
    let hostile = text.chars().find(|c| c.is_control() && *c != '\n');
    assert_eq!(hostile, None, "{text:?}");
    Ok((json, text))
}

/// Everything mostly, else one condition.
fn selection(choice: u8) -> Selection {
    let all = Selection::default();
    let time = |text: &str| TimeRange::parse(text).ok();
    let term = |text: &str| Condition::parse(text).into_iter().collect();
    match choice % 16 {
        0 => Selection { time: time("+0..+0.01"), ..all },
        1 => Selection { time: time("+0.001..+18446744073"), ..all },
        2 => Selection { time: time("0..1.5"), ..all },
        3 => Selection { at: TimeRange::parse_instant("+0.01").ok(), ..all },
        4 => Selection { pids: vec![7], ..all },
        5 => Selection { comms: vec!["cc1".into()], cpus: vec![1, 3], ..all },
        6 => Selection { terms: term("size>=100"), ..all },
        7 => Selection { terms: term("lifetime>1ms"), ..all },
        8 => Selection { terms: term("gfp~KERNEL"), time: time("+0.001..+5"), ..all },
        9 => Selection { terms: term("cache~kmalloc|dentry"), ..all },
        10 => Selection { without_recorder: true, ..all },
        _ => all,
    }
}
