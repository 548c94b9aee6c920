//! `summary`: the totals of the exact ledger.

use serde_json::{Map, Value, json};

use super::session::{Out, Session, print_json};
use super::selection::{Selection, analyse, sum_of};
use super::trust::{recorded, title, trust_lines};
use crate::analysis::pass;
use crate::stream::Api;
use crate::analysis::totals::{EventCounts, Totals};
use crate::failure::{Outcome, Result};
use crate::open::outcome;
use crate::render::json;
use crate::render::table::{Align, table};
use crate::render::text::count;
use kmt_format::schema::Meaning;

const EVENTS: [(&str, Meaning); 4] = [
    ("kmalloc", Meaning::KMALLOC),
    ("kfree", Meaning::KFREE),
    ("kmem_cache_alloc", Meaning::CACHE_ALLOC),
    ("kmem_cache_free", Meaning::CACHE_FREE),
];

/// Prints the totals.
pub fn run(session: &Session<'_>, selection: &Selection, as_json: bool) -> Result<Outcome> {
    let result = analyse(session, selection);
    let [kmalloc, cache] = [Api::Kmalloc, Api::Cache].map(|api| sum_of(&result, Some(api)));
    let [kmalloc_counts, cache_counts] = result.balance.counts;
    let mut all = kmalloc;
    all += &cache;
    let mut all_counts = kmalloc_counts;
    all_counts += &cache_counts;
    let parts = [(all, all_counts), (kmalloc, kmalloc_counts), (cache, cache_counts)];
    if as_json {
        print_json(document(session, &result, &parts))?;
    } else {
        let mut out = Out::stdout();
        out.write(page(session, &result, &parts).as_bytes())?;
        out.finish()?;
    }
    Ok(outcome(&session.path, session.trace, &result.damages, session.losses.any()))
}

/// A slab event was recorded, or it is not known that none was.
fn has_slab(session: &Session<'_>, result: &pass::Result) -> bool {
    EVENTS.iter().any(|(_, meaning)| recorded(session, result, *meaning) == Some(true))
}

fn document(
    session: &Session<'_>,
    result: &pass::Result,
    parts: &[(Totals, EventCounts); 3],
) -> Map<String, Value> {
    let mut out = json::head(session.trace, &session.losses);
    let [all, kmalloc, cache] = parts.map(|(totals, counts)| json::slab_part(&totals, &counts));
    let events: Map<String, Value> =
        EVENTS.iter().map(|(name, m)| ((*name).to_owned(), json!(recorded(session, result, *m)))).collect();
    let slab = if has_slab(session, result) {
        let mut slab = all;
        slab.insert("kmalloc".into(), kmalloc.into());
        slab.insert("cache".into(), cache.into());
        let raw = result.balance.raw;
        slab.insert(
            "raw".into(),
            json!({
                "alloc_events": raw.alloc_events,
                "free_events": raw.free_events,
                "bytes_req": raw.bytes_req,
                "bytes_alloc": raw.bytes_alloc,
            }),
        );
        slab.insert("recorded".into(), events.into());
        slab.into()
    } else {
        // Not recorded is not the same as none.
        Value::Null
    };
    out.insert("slab".into(), slab);
    out.insert("trust".into(), trust(session, result, &parts[0].0));
    out
}

/// What the numbers rest on, for machines and for people.
fn trust(session: &Session<'_>, result: &pass::Result, all: &Totals) -> Value {
    json!({
        "notes": trust_lines(session, result, all),
        "direct_map_base": result.direct_map.map(|m| format!("{:#x}", m.base_address)),
        "direct_map_votes": result.direct_map.map(|m| m.votes),
        "direct_map_votes_all": result.direct_map.map(|m| m.votes_all),
        "page_size": result.page_size.0,
        "page_size_assumed": result.page_size.1,
        "damaged_chunks": result.damages.len(),
    })
}

fn page(session: &Session<'_>, result: &pass::Result, parts: &[(Totals, EventCounts); 3]) -> String {
    let mut out = format!("{}\n", title(session));
    for line in trust_lines(session, result, &parts[0].0) {
        out.push_str(&format!("{line}\n"));
    }
    out.push('\n');
    if !has_slab(session, result) {
        out.push_str("slab events: not recorded\n");
        return out;
    }
    let columns =
        [("slab", Align::Left), ("total", Align::Right), ("kmalloc", Align::Right), ("caches", Align::Right)];
    let not_recorded: Vec<&str> = EVENTS
        .iter()
        .filter(|(_, m)| recorded(session, result, *m) != Some(true))
        .map(|(name, _)| *name)
        .collect();
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut line = |name: &str, number: &dyn Fn(&Totals, &EventCounts) -> String| {
        let mut row = vec![name.to_owned()];
        row.extend(parts.iter().map(|(totals, counts)| number(totals, counts)));
        // What a cache rounds up and what kmalloc wastes are different things; their sum means nothing.
        if name.contains("wasted") || name.contains("fragmentation") {
            row.splice(1..2, ["-".to_owned()]);
        }
        rows.push(row);
    };
    line("allocations", &|t, _| count(t.alloc_events));
    line("  bytes requested", &|t, _| count(t.bytes_req));
    line("  bytes allocated", &|t, _| count(t.bytes_alloc));
    line("  bytes wasted", &|t, _| count(t.bytes_wasted()));
    line("  internal fragmentation", &|t, _| format!("{:.2} %", t.internal_fragmentation_percent()));
    line("  failed", &|_, c| count(c.alloc_failures));
    line("frees", &|t, c| count(t.frees_matched + c.unmatched_frees()));
    line("  matched", &|t, _| count(t.frees_matched));
    line("  bytes freed", &|t, _| count(t.bytes_freed));
    line("  of objects allocated before", &|_, c| count(c.allocated_before));
    line("  of untraced birth", &|_, c| count(c.untraced_birth));
    line("  on another CPU", &|_, c| count(c.cross_cpu_frees));
    line("  by the other interface", &|_, c| count(c.mixed_api_frees));
    line("  logged late", &|_, c| count(c.late_frees));
    line("freed unseen", &|t, _| count(t.freed_unseen));
    line("  bytes", &|t, _| count(t.bytes_freed_unseen));
    line("live at the end", &|t, _| count(t.live));
    line("  bytes live", &|t, _| count(t.bytes_live));
    line("  bytes wasted live", &|t, _| count(t.bytes_wasted_live()));
    line("uncertain lives", &|t, _| count(t.uncertain));
    line("no objects: frees of NULL", &|_, c| count(c.null_frees));
    line("  frees of zero-size objects", &|_, c| count(c.zero_size_frees));
    line("  second reports of one kmalloc", &|_, c| count(c.double_reports));
    out.push_str(&table(&columns, &rows));
    if !not_recorded.is_empty() {
        out.push_str(&format!(
            "\nno events of {}: whether they were recorded, the file does not tell, or says that they were not\n",
            not_recorded.join(", ")
        ));
    }
    out.push_str("\nlive is since the start of the trace; objects older than it are not in these numbers\n");
    out
}
