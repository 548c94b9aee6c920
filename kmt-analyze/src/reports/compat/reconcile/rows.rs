//! Figures of other tools, and the terms between them and the exact ones.

use serde::Serialize;

use super::causes::Causes;
use crate::collect::reasons::ReasonSums;
use crate::ledger::totals::Totals;
use crate::pass::{Analysis, sum_of};
use crate::reports::compat::legacy::{Legacy, PerfSums};

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
    /// Exact figure, in bytes.
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
    /// The cause, with the ledger's rule for it.
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
pub fn compute(result: &Analysis, reasons: &ReasonSums, legacy: &Legacy) -> ReconcileRows {
    let (exact, causes) = (sum_of(result, None), Causes::of(result));
    ReconcileRows {
        reconcile: vec![
            bytes_alloc(&exact, &causes, legacy),
            bytes_req(&exact, &causes, legacy),
            bytes_live(&exact, &causes, reasons, legacy),
            bytes_freed(&exact, &causes, reasons, legacy),
        ],
        perf_kmem: PerfKmemRow::from(&legacy.perf),
        trace_cmd_mem_waste: legacy.waste(),
    }
}

fn term(term: &'static str, objects: u64, bytes: i64) -> TermRow {
    TermRow { term, objects, bytes }
}

fn bytes_alloc(exact: &Totals, causes: &Causes, legacy: &Legacy) -> BridgeRow {
    let figure = "bytes_alloc: TotAlloc, Total bytes allocated";
    let terms = both(causes, causes.double_bytes, causes.failed_bytes);
    BridgeRow::new("both", figure, exact.bytes_alloc, legacy.perf.bytes_alloc as i64, terms)
}

fn bytes_req(exact: &Totals, causes: &Causes, legacy: &Legacy) -> BridgeRow {
    let figure = "bytes_req: TotReq, Total bytes requested";
    let terms = both(causes, causes.double_req, causes.failed_req);
    BridgeRow::new("both", figure, exact.bytes_req, legacy.perf.bytes_req as i64, terms)
}

/// Terms of the totals that both tools have.
fn both(causes: &Causes, double: u64, failed: u64) -> Vec<TermRow> {
    vec![
        term("duplicate events of one large kmalloc (R4)", causes.doubles, double as i64),
        term("allocations that failed (R2)", causes.failures, failed as i64),
    ]
}

fn bytes_live(exact: &Totals, causes: &Causes, reasons: &ReasonSums, legacy: &Legacy) -> BridgeRow {
    let plus = |name, (objects, bytes): (u64, u64)| term(name, objects, bytes as i64);
    // Failed allocations that a kfree(NULL) followed seem freed to the tool.
    let failed_bytes = causes.failed_bytes as i64 - legacy.bytes_freed_at_null() as i64;
    let terms = vec![
        plus("implied frees, address allocated again (R5)", reasons.replaced),
        plus("implied frees, page in other use (R7)", reasons.page_gone),
        plus("late free events, behind the next allocation (R6)", reasons.late),
        term("duplicate events of one large kmalloc (R4)", causes.doubles, causes.double_bytes as i64),
        term("failed allocations, objects at NULL (R2)", causes.failures, failed_bytes),
    ];
    BridgeRow::new("trace-cmd mem", "bytes_live: Alloc", exact.bytes_live, legacy.bytes_in_use(), terms)
}

fn bytes_freed(exact: &Totals, causes: &Causes, reasons: &ReasonSums, legacy: &Legacy) -> BridgeRow {
    let perf = &legacy.perf;
    let (page_gone, late) = (reasons.page_gone_then_freed, reasons.late);
    let at_null = legacy.bytes_freed_at_null() as i64;
    let terms = vec![
        term("frees of what was gone with its page (R7)", page_gone.0, page_gone.1 as i64),
        term("late free events, behind the next allocation (R6)", late.0, -(late.1 as i64)),
        term("failed allocations, freed at NULL (R2)", causes.failures, at_null),
        term("second frees, NULL included", perf.second_frees, perf.bytes_second_frees as i64),
    ];
    let figure = "bytes_freed: Total bytes freed";
    BridgeRow::new("perf kmem", figure, exact.bytes_freed, perf.bytes_freed as i64, terms)
}
