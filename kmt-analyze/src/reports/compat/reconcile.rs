//! `reconcile`: differences of the totals of other tools from the exact ones, term by term.
//!
//! Each tool's total is computed by its own rules from the same events; the terms between it and the exact total are counted, so
//! that they add up. Rows and tables are here.

use serde::Serialize;

use super::others;
use crate::collect::frees::ReasonSums;
use crate::collect::{Collectors, Reasons};
use crate::failure::{Outcome, Result};
use crate::pass::selection::Selection;
use crate::pass::{self, Analysis, Request, sum_of};
use crate::render::head::is_minimum;
use crate::render::out::Schema;
use crate::render::screen::Screen;
use crate::render::words::{count, share};
use crate::reports::common::stated::Keys;
use crate::reports::common::{Context, ReportContext};
use crate::reports::compat::legacy::{Legacy, PerfSums};
use crate::reports::document::{About, Printed, emit};
use crate::reports::output::Output;
use crate::stream::Site;
use crate::trace::session::Session;

/// Prints the differences of the totals of other tools from the exact ones, term by term.
pub fn reconcile(session: &Session<'_>, output: &Output) -> Result<Outcome> {
    let others = others(session);
    let mut collectors = Collectors::default();
    let reasons = collectors.add(Reasons);
    let selection = Selection::default();
    let result = pass::run(session, &Request::new(&selection, &collectors));
    let context = ReportContext::new(&Context { session, selection: &selection, limit: 0 }, &result);
    let rows = compute(&result, result.get(reasons), &others.legacy);
    let about = About { keys: Keys::All, schema: Schema::first("reconcile") };
    let text = || text(&rows, lost_in_words(session).as_deref());
    let printed = match output.json {
        true => Printed::Document(Box::new(&rows)),
        false => Printed::Screens(vec![("", Screen::verbatim(text()))]),
    };
    emit(&about, &context, output, printed)
}

/// Lost events with their share of all; `None`: none is missing, so that exact sums are those of the recorded time.
fn lost_in_words(session: &Session<'_>) -> Option<String> {
    let losses = &session.losses;
    losses.any().then(|| match losses.lost_since_first() {
        0 => "Events were lost, not counted".to_owned(),
        lost => {
            let least = if is_minimum(losses) { "At least " } else { "" };
            let part = share(lost, lost.saturating_add(session.trace.event_count()));
            format!("{least}{} events ({part} of all) were lost", count(lost))
        }
    })
}

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReconcileRows {
    /// Figures of other tools.
    pub reconcile: Vec<BridgeRow>,
    /// Totals of perf kmem.
    pub perf_kmem: PerfKmemRow,
    /// Waste of all functions by the rules of trace-cmd mem, in bytes.
    #[serde(skip)]
    pub trace_cmd_mem_waste: i64,
}

/// A figure of another tool: the exact figure and all terms add up to it.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BridgeRow {
    /// `trace-cmd mem`, `perf kmem` or `both`.
    pub tool: &'static str,
    /// Name of the figure in `summary`, and its names in the output of the tool.
    pub figure: &'static str,
    /// Exact figure, in bytes: of the recorded events, where events were lost.
    pub exact: i64,
    /// Terms between the two.
    pub terms: Vec<TermRow>,
    /// Figure of the tool, in bytes.
    pub theirs: i64,
    /// Bytes that no term explains; always 0.
    pub unexplained: i64,
}

/// One cause of a difference.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TermRow {
    /// The cause.
    pub term: &'static str,
    /// Number of objects or events.
    pub objects: u64,
    /// Bytes that are added to the exact figure; negative: subtracted.
    pub bytes: i64,
}

/// Totals of perf kmem.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PerfKmemRow {
    /// Bytes requested.
    pub bytes_requested: u64,
    /// Bytes allocated.
    pub bytes_allocated: u64,
    /// Bytes freed.
    pub bytes_freed: u64,
    /// Bytes allocated less bytes freed.
    pub net_bytes_allocated: i64,
    /// Bytes allocated beyond those requested.
    pub bytes_wasted: u64,
    /// Number of allocation events.
    pub alloc_events: u64,
    /// Number of frees on another CPU than the allocation, and of repeated frees.
    pub ping_pong: u64,
}

impl From<&PerfSums> for PerfKmemRow {
    fn from(perf: &PerfSums) -> Self {
        Self {
            bytes_requested: perf.bytes_req,
            bytes_allocated: perf.bytes_alloc,
            bytes_freed: perf.bytes_freed,
            net_bytes_allocated: perf.bytes_alloc as i64 - perf.bytes_freed as i64,
            bytes_wasted: perf.bytes_alloc.saturating_sub(perf.bytes_req),
            alloc_events: perf.allocs,
            ping_pong: perf.ping_pong,
        }
    }
}

impl BridgeRow {
    fn new(tool: &'static str, figure: &'static str, exact: u64, theirs: i64, terms: Vec<TermRow>) -> Self {
        let exact = exact as i64;
        let unexplained = theirs - exact - terms.iter().map(|t| t.bytes).sum::<i64>();
        Self { tool, figure, exact, terms, theirs, unexplained }
    }
}

/// Rows of a pass, and of the same events by the rules of other tools.
fn compute(result: &Analysis, reasons: &ReasonSums, legacy: &Legacy) -> ReconcileRows {
    let (exact, raw, perf) = (sum_of(result, None), result.balance.raw, &legacy.perf);
    let counts = &result.balance.counts;
    let doubles = counts.iter().map(|c| c.double_reports).sum();
    let failures = counts.iter().map(|c| c.alloc_failures).sum();
    let failed_alloc = failed(result, |site| site.bytes_alloc);
    let failed_req = failed(result, |site| site.bytes_req);
    let double_alloc = raw.bytes_alloc.saturating_sub(exact.bytes_alloc).saturating_sub(failed_alloc);
    let double_req = raw.bytes_req.saturating_sub(exact.bytes_req).saturating_sub(failed_req);
    let double = |bytes: u64| term("duplicate events of one large kmalloc", doubles, bytes as i64);
    let both = |of_double, failed: u64| {
        vec![double(of_double), term("allocations that failed", failures, failed as i64)]
    };
    let (page_gone, late, at_null) =
        (reasons.page_gone_then_freed, reasons.late, legacy.bytes_freed_at_null as i64);
    let plus = |name, (objects, bytes): (u64, u64)| term(name, objects, bytes as i64);
    let live = vec![
        plus("implied frees: address allocated again", reasons.replaced),
        plus("implied frees: page in other use", reasons.page_gone),
        plus("late free events, after the next allocation", late),
        double(double_alloc),
        // Failed allocations that a kfree(NULL) followed seem freed to the tool.
        term("failed allocations, counted as objects at NULL", failures, failed_alloc as i64 - at_null),
    ];
    let freed = vec![
        plus("frees of objects whose page was in other use", page_gone),
        term("late free events, after the next allocation", late.0, -(late.1 as i64)),
        term("failed allocations, counted as freed at NULL", failures, at_null),
        plus("second frees, NULL included", (perf.second_frees, perf.bytes_second_frees)),
    ];
    let row = BridgeRow::new;
    let [of_alloc, of_req, of_live, of_freed] = [
        "bytes_alloc: TotAlloc, Total bytes allocated",
        "bytes_req: TotReq, Total bytes requested",
        "bytes_live: Alloc",
        "bytes_freed: Total bytes freed",
    ];
    ReconcileRows {
        reconcile: vec![
            row(
                "both",
                of_alloc,
                exact.bytes_alloc,
                perf.bytes_alloc as i64,
                both(double_alloc, failed_alloc),
            ),
            row("both", of_req, exact.bytes_req, perf.bytes_req as i64, both(double_req, failed_req)),
            row("trace-cmd mem", of_live, exact.bytes_live, legacy.bytes_in_use(), live),
            row("perf kmem", of_freed, exact.bytes_freed, perf.bytes_freed as i64, freed),
        ],
        perf_kmem: PerfKmemRow::from(perf),
        trace_cmd_mem_waste: legacy.waste(),
    }
}

fn term(term: &'static str, objects: u64, bytes: i64) -> TermRow {
    TermRow { term, objects, bytes }
}

/// Bytes of all failed allocations.
fn failed(result: &Analysis, bytes: fn(&Site) -> u64) -> u64 {
    let failures = result.balance.failures.iter().zip(result.interner.sites.items());
    failures.map(|(count, site)| count.saturating_mul(bytes(site))).fold(0, u64::saturating_add)
}

/// A table for each figure, and the totals; `lost` has the lost events in words.
fn text(rows: &ReconcileRows, lost: Option<&str>) -> String {
    let exact = if lost.is_some() { "exact, of the recorded events" } else { "exact" };
    let tables: Vec<String> = rows.reconcile.iter().map(|row| bridge(row, exact)).collect();
    let lost = lost.map_or(String::new(), |lost| {
        format!("\n{lost}: all figures are of the recorded events. The memory of the system may differ from each of them.\n")
    });
    format!(
        "{}{lost}\nperf kmem on these events: net {} bytes (allocated - freed), {} ping-pongs; trace-cmd mem: waste {} bytes\n",
        tables.join("\n"),
        rows.perf_kmem.net_bytes_allocated,
        count(rows.perf_kmem.ping_pong),
        rows.trace_cmd_mem_waste,
    )
}

fn signed(n: i64) -> String {
    format!("{}{}", if n < 0 { "-" } else { "+" }, count(n.unsigned_abs()))
}

fn bridge(bridge: &BridgeRow, exact: &str) -> String {
    let line = |label: String, bytes: String| [label, String::new(), bytes];
    let mut lines = vec![["", "objects", "bytes"].map(str::to_owned)];
    lines.push(line(exact.to_owned(), count(bridge.exact.max(0) as u64)));
    for t in &bridge.terms {
        lines.push([format!("  {}", t.term), count(t.objects), signed(t.bytes)]);
    }
    if bridge.unexplained != 0 {
        lines.push(line("  not explained".to_owned(), signed(bridge.unexplained)));
    }
    let theirs = if bridge.theirs < 0 { signed(bridge.theirs) } else { count(bridge.theirs as u64) };
    lines.push(line(format!("{}, {}", bridge.tool, bridge.figure), theirs));
    let width = |at: usize| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0);
    let [a, b, c] = [0, 1, 2].map(width);
    lines.iter().map(|[label, objects, bytes]| format!("{label:<a$}  {objects:>b$}  {bytes:>c$}\n")).collect()
}
