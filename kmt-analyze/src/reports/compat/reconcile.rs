//! `reconcile`: what separates the totals of other tools from ours, term by term.

use serde_json::{Map, Value, json};

use super::others;
use crate::analysis::legacy::Legacy;
use crate::collect::{Collectors, Reasons};
use crate::failure::{Outcome, Result};
use crate::pass::selection::{Selection, Wants, analyse_for};
use crate::pass::sum_of;
use crate::render::out::Schema;
use crate::render::table::{Align, table};
use crate::render::text::count;
use crate::reports::common::stated::Keys;
use crate::reports::document::{About, emit};
use crate::trace::session::Session;

/// One step from our figure to another tool's.
struct Term {
    what: &'static str,
    objects: Option<u64>,
    bytes: i64,
}

/// A figure of another tool, and the way from ours to it.
struct Bridge {
    tool: &'static str,
    figure: &'static str,
    ours: i64,
    terms: Vec<Term>,
    theirs: i64,
}

impl Bridge {
    /// What the terms leave unexplained; 0, or this program is wrong.
    fn rest(&self) -> i64 {
        self.theirs - self.ours - self.terms.iter().map(|t| t.bytes).sum::<i64>()
    }
}

/// Prints, term by term, what separates the totals of other tools from ours.
pub fn reconcile(session: &Session<'_>, as_json: bool) -> Result<Outcome> {
    let others = others(session);
    let mut collectors = Collectors::default();
    let reasons = collectors.add(Reasons);
    let result = analyse_for(session, &Selection::default(), &Wants::of(&collectors));
    let (ours, legacy) = (sum_of(&result, None), &others.legacy);
    let reasons = result.get(reasons);
    let sites = result.interner.sites.items();
    let failed = |of: fn(&crate::stream::Site) -> u64| -> u64 {
        let failures = result.balance.failures.iter().zip(sites);
        failures.map(|(count, site)| count.saturating_mul(of(site))).fold(0, u64::saturating_add)
    };
    let counts = result.balance.counts;
    let failures: u64 = counts.iter().map(|c| c.alloc_failures).sum();
    let doubles = counts.iter().map(|c| c.double_reports).sum();
    let raw = result.balance.raw;
    // Those that a kfree(NULL) followed seem freed to both tools.
    let at_null = legacy.bytes_freed_at_null() as i64;
    let term = |what, objects: u64, bytes: i64| Term { what, objects: Some(objects), bytes };
    let amount = |what, (objects, bytes): (u64, u64), sign: i64| term(what, objects, sign * bytes as i64);
    let (failed_alloc, failed_req) = (failed(|s| s.bytes_alloc), failed(|s| s.bytes_req));
    let double_bytes = raw.bytes_alloc.saturating_sub(ours.bytes_alloc).saturating_sub(failed_alloc);
    let double_req = raw.bytes_req.saturating_sub(ours.bytes_req).saturating_sub(failed_req);
    let total = |figure, ours: u64, double: u64, failed: u64, theirs: u64| Bridge {
        tool: "both",
        figure,
        ours: ours as i64,
        terms: vec![
            term("second reports of one large kmalloc (R4)", doubles, double as i64),
            term("allocations that failed (R2)", failures, failed as i64),
        ],
        theirs: theirs as i64,
    };
    let bridges = [
        total(
            "bytes_alloc: TotAlloc, Total bytes allocated",
            ours.bytes_alloc,
            double_bytes,
            failed_alloc,
            legacy.perf.bytes_alloc,
        ),
        total(
            "bytes_req: TotReq, Total bytes requested",
            ours.bytes_req,
            double_req,
            failed_req,
            legacy.perf.bytes_req,
        ),
        Bridge {
            tool: "trace-cmd mem",
            figure: "bytes_live: Alloc",
            ours: ours.bytes_live as i64,
            terms: vec![
                amount("freed unseen, address allocated again (R5)", reasons.replaced, 1),
                amount("freed unseen, page in other use (R7)", reasons.page_gone, 1),
                amount("freed late, logged behind the next allocation (R6)", reasons.late, 1),
                term("second reports of one large kmalloc (R4)", doubles, double_bytes as i64),
                term("failed allocations, objects at NULL (R2)", failures, failed_alloc as i64 - at_null),
            ],
            theirs: legacy.bytes_in_use(),
        },
        Bridge {
            tool: "perf kmem",
            figure: "bytes_freed: Total bytes freed",
            ours: ours.bytes_freed as i64,
            terms: vec![
                amount("frees of what was gone with its page (R7)", reasons.page_gone_then_freed, 1),
                amount("freed late, logged behind the next allocation (R6)", reasons.late, -1),
                term("failed allocations, freed at NULL (R2)", failures, at_null),
                term(
                    "second frees, NULL included",
                    legacy.perf.second_frees,
                    legacy.perf.bytes_second_frees as i64,
                ),
            ],
            theirs: legacy.perf.bytes_freed as i64,
        },
    ];
    emit(
        &About { session, selection: None, keys: Keys::All, schema: Schema::first("reconcile") },
        &result,
        as_json,
        |out| document(out, &bridges, legacy),
        || bridges.iter().map(page).collect::<Vec<_>>().join("\n") + &perf_page(legacy),
    )
}

fn document(out: &mut Map<String, Value>, bridges: &[Bridge], legacy: &Legacy) {
    let bridge = |b: &Bridge| {
        let terms = b.terms.iter().map(|t| json!({"term": t.what, "objects": t.objects, "bytes": t.bytes}));
        json!({
            "tool": b.tool,
            "figure": b.figure,
            "exact": b.ours,
            "terms": terms.collect::<Vec<_>>(),
            "theirs": b.theirs,
            "unexplained": b.rest(),
        })
    };
    out.insert("reconcile".into(), bridges.iter().map(bridge).collect());
    let perf = &legacy.perf;
    out.insert(
        "perf_kmem".into(),
        json!({
            "bytes_requested": perf.bytes_req,
            "bytes_allocated": perf.bytes_alloc,
            "bytes_freed": perf.bytes_freed,
            "net_bytes_allocated": perf.bytes_alloc as i64 - perf.bytes_freed as i64,
            "bytes_wasted": perf.bytes_alloc.saturating_sub(perf.bytes_req),
            "alloc_events": perf.allocs,
            "ping_pong": perf.ping_pong,
        }),
    );
}

fn page(bridge: &Bridge) -> String {
    let signed = |n: i64| format!("{}{}", if n < 0 { "-" } else { "+" }, count(n.unsigned_abs()));
    let mut rows = vec![vec!["exact".to_owned(), String::new(), count(bridge.ours.max(0) as u64)]];
    for t in &bridge.terms {
        rows.push(vec![format!("  {}", t.what), t.objects.map_or(String::new(), count), signed(t.bytes)]);
    }
    if bridge.rest() != 0 {
        rows.push(vec!["  not explained".to_owned(), String::new(), signed(bridge.rest())]);
    }
    let theirs = if bridge.theirs < 0 { signed(bridge.theirs) } else { count(bridge.theirs as u64) };
    rows.push(vec![format!("{}, {}", bridge.tool, bridge.figure), String::new(), theirs]);
    table(&[("", Align::Left), ("objects", Align::Right), ("bytes", Align::Right)], &rows)
}

fn perf_page(legacy: &Legacy) -> String {
    let perf = &legacy.perf;
    format!(
        "\nperf kmem on these events: net {} bytes (allocated - freed), {} ping-pongs; trace-cmd mem: waste {} bytes\n",
        perf.bytes_alloc as i64 - perf.bytes_freed as i64,
        count(perf.ping_pong),
        legacy.functions.iter().map(|f| f.alloc - f.req).sum::<i64>(),
    )
}
