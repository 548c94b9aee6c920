//! `anomalies`: what should not be, or looks so, each with what it means.

use serde_json::{Map, Value, json};

use crate::collect::Collectors;
use crate::collect::anomalies::{AnomalySums, LateFrees};
use crate::collect::{Anomalies, Handle};
use crate::pass;
use crate::pass::Analysis;
use crate::pass::selection::Selection;
use crate::render::json;
use crate::render::table::{Align, table};
use crate::render::text::{count, duration};
use crate::reports::common::basis::Input;
use crate::reports::common::labels::Labels;
use crate::reports::common::sums::more;
use crate::reports::common::{Context, View};
use crate::reports::report::{NoOptions, Page, Report};

/// The report.
#[derive(Debug, Default)]
pub struct AnomalyReport;

/// One kind of anomaly.
struct Kind {
    name: &'static str,
    title: &'static str,
    explanation: &'static str,
    /// Whether it is a fault of the traced kernel, if it is anything.
    is_fault: bool,
    count: u64,
    rows: Vec<Row>,
}

/// Where it happens.
struct Row {
    /// Where it was allocated.
    call_site: Option<(u64, String)>,
    /// Where it was freed.
    freed_by: Option<(u64, String)>,
    count: u64,
    detail: String,
}

impl Report for AnomalyReport {
    type Options = NoOptions;
    type Handles = Handle<Anomalies>;
    type Rows = Page;

    const NAME: &'static str = "anomalies";
    const KEY: &'static str = "anomalies";
    const TITLE: &'static str = "anomalies";
    const ABOUT: &'static str = "What should not be, or looks so: mixed interfaces, frees of nothing, frees logged late, each explained";

    fn new(_: NoOptions, _: &Selection) -> Self {
        Self
    }

    fn usual() -> Option<Self> {
        Some(Self)
    }

    fn rests_on(&self) -> Input {
        Input::SlabLives
    }

    fn collect(&self, _: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        collectors.add(Anomalies)
    }

    fn compute(&self, context: &Context<'_, '_>, result: &Analysis, handles: &Self::Handles) -> Page {
        let oddities = result.get(*handles);
        let labels = Labels::new(context.session);
        let mut kinds = kinds(result, oddities, &labels, context);
        for kind in &mut kinds {
            kind.rows.sort_by(|a, b| {
                let name = |r: &Row| (r.call_site.clone().map(|c| c.1), r.freed_by.clone().map(|f| f.1));
                b.count.cmp(&a.count).then_with(|| name(a).cmp(&name(b)))
            });
        }
        let mut out = Map::new();
        out.insert("anomalies".into(), kinds.iter().map(|k| kind_json(k, context.limit)).collect());
        Page { json: out, text: text(&kinds, context.limit) }
    }

    fn text(&self, rows: &Page, _: &View) -> String {
        rows.text.clone()
    }
}

fn kinds(
    result: &pass::Analysis,
    oddities: &AnomalySums,
    labels: &Labels<'_, '_>,
    context: &Context<'_, '_>,
) -> Vec<Kind> {
    let unit = context.session.unit();
    let site = |number: u32| {
        let (_, address, name) = labels.caller(result, number);
        Some((address, name))
    };
    let freed = |number: u32| Some(labels.free_site(result, number));
    let mut out = Vec::new();
    let mut add = |name, title, is_fault, explanation, rows: Vec<Row>| {
        let count = rows.iter().map(|r| r.count).sum();
        out.push(Kind { name, title, explanation, is_fault, count, rows });
    };
    let by_site = |number: u32, count: u64| Row {
        call_site: site(number),
        freed_by: None,
        count,
        detail: String::new(),
    };
    let by_free = |number: u32, count: u64| Row {
        call_site: None,
        freed_by: freed(number),
        count,
        detail: String::new(),
    };
    add(
        "undersized",
        "allocations smaller than asked for",
        true,
        "bytes_alloc is less than bytes_req: the object is too small for what asked for it, or the record is damaged.",
        undersized(result, labels),
    );
    add(
        "freed_again_or_born_unseen",
        "frees at an address where nothing lives any more",
        true,
        "A double free, or an object whose allocation has no event. Bulk allocations (kmem_cache_alloc_bulk: network, io_uring, \
         maple tree) have none, and a kernel that frees twice mostly stops at once: sites of such caches are not suspect, others are.",
        oddities.unmatched.iter().filter(|(_, n)| n[2] > 0).map(|(f, n)| by_free(*f, n[2])).collect(),
    );
    add(
        "born_unseen",
        "frees on pages that are of the trace, of objects that no event allocated",
        false,
        "The page was allocated in the trace, so the object was born in it: in bulk (kmem_cache_alloc_bulk has no event), at \
         boot before the events were on, or in a part that was lost.",
        oddities.unmatched.iter().filter(|(_, n)| n[1] > 0).map(|(f, n)| by_free(*f, n[1])).collect(),
    );
    add(
        "mixed_api",
        "objects freed by the other interface",
        false,
        "kmem_cache_alloc and then kfree, or kmalloc and then kmem_cache_free. kfree takes objects of any cache since 6.4 (SLOB went \
         then) and always did with SLAB and SLUB; a kmem_cache_free of a kmalloc object is a fault.",
        oddities
            .mixed
            .iter()
            .map(|((caller, free), (number, bytes))| Row {
                call_site: site(*caller),
                freed_by: freed(*free),
                count: *number,
                detail: format!("{} bytes", count(*bytes)),
            })
            .collect(),
    );
    add(
        "late_free",
        "frees logged after the address or its page had its next use",
        false,
        "Kernels before 6.0 or so log kmem_cache_free behind the free itself, so another CPU's use of the memory can stand before \
         it. The life ends at that use; no lifetime is negative.",
        oddities
            .late
            .iter()
            .map(|(f, LateFrees { frees: number, delay_max: most })| Row {
                call_site: None,
                freed_by: freed(*f),
                count: *number,
                detail: format!("up to {} late", duration(*most, unit)),
            })
            .collect(),
    );
    add(
        "ambiguous_free",
        "frees that may belong to either of two objects",
        false,
        "alloc, alloc, free of one address, and no second free in the trace: the first object counts as freed unseen and as uncertain.",
        oddities.ambiguous.iter().map(|(caller, n)| by_site(*caller, *n)).collect(),
    );
    add(
        "inverted",
        "objects that end before they begin",
        false,
        "Clocks of two CPUs disagree (clock `local`): the order of such events is not that of time.",
        oddities.inverted.iter().map(|(caller, n)| by_site(*caller, *n)).collect(),
    );
    add(
        "freed_unseen",
        "objects that are gone without a free event",
        false,
        "Their address was allocated again, or their page was freed. kfree_rcu, kmem_cache_free_bulk and per-CPU sheaves (6.18) free \
         without an event; a cache with many such frees is no leak however many of its objects seem live.",
        oddities
            .unseen
            .iter()
            .map(|(caller, n)| Row {
                call_site: site(*caller),
                freed_by: None,
                count: n.iter().sum(),
                detail: format!("{} by an allocation, {} by a page event", count(n[0]), count(n[1] + n[2])),
            })
            .collect(),
    );
    add(
        "alloc_failures",
        "allocations that failed",
        false,
        "The pointer is 0. With __GFP_NOWARN or __GFP_NORETRY that is often planned for.",
        failures(result, labels),
    );
    let doubles = result.balance.counts.iter().map(|c| c.double_reports).sum::<u64>();
    add(
        "double_report",
        "large kmallocs that were reported twice",
        false,
        "Kernels since 6.10 report a kmalloc of more than two pages from its inner and its outer function: one object, counted once.",
        vec![Row { call_site: None, freed_by: None, count: doubles, detail: String::new() }]
            .into_iter()
            .filter(|r| r.count > 0)
            .collect(),
    );
    out
}

fn undersized(result: &pass::Analysis, labels: &Labels<'_, '_>) -> Vec<Row> {
    let sites = result.interner.sites.items().iter().zip(&result.balance.sites);
    sites
        .filter(|(site, _)| site.bytes_alloc < site.bytes_req)
        .map(|(site, parts)| Row {
            call_site: Some((site.call_site, labels.symbol(site.call_site))),
            freed_by: None,
            count: parts.iter().map(|(_, t)| t.alloc_events).sum(),
            detail: format!("{} bytes for {}", count(site.bytes_alloc), count(site.bytes_req)),
        })
        .filter(|row| row.count > 0)
        .collect()
}

fn failures(result: &pass::Analysis, labels: &Labels<'_, '_>) -> Vec<Row> {
    let sites = result.interner.sites.items().iter().zip(&result.balance.failures);
    sites
        .filter(|(_, failures)| **failures > 0)
        .map(|(site, failures)| Row {
            call_site: Some((site.call_site, labels.symbol(site.call_site))),
            freed_by: None,
            count: *failures,
            detail: format!("{} bytes each", count(site.bytes_req)),
        })
        .collect()
}

fn kind_json(kind: &Kind, limit: usize) -> Value {
    let rows: Vec<Value> = kind
        .rows
        .iter()
        .take(limit)
        .map(|r| {
            let place = |p: &Option<(u64, String)>| p.as_ref().map(|(a, n)| json!({"address": json::address(*a), "symbol": n}));
            json!({"call_site": place(&r.call_site), "freed_by": place(&r.freed_by), "count": r.count, "detail": r.detail})
        })
        .collect();
    json!({
        "kind": kind.name,
        "title": kind.title,
        "explanation": kind.explanation,
        "may_be_a_fault": kind.is_fault,
        "count": kind.count,
        "rows_total": kind.rows.len(),
        "rows": rows,
    })
}

fn text(kinds: &[Kind], limit: usize) -> String {
    use Align::{Left, Right};
    let mut out = String::new();
    let mut absent = Vec::new();
    for kind in kinds {
        if kind.count == 0 {
            absent.push(kind.title);
            continue;
        }
        out.push_str(&format!("{}: {}\n{}\n", count(kind.count), kind.title, kind.explanation));
        let shown = limit.min(kind.rows.len());
        let name =
            |place: &Option<(u64, String)>| place.as_ref().map_or(String::new(), |(_, name)| name.clone());
        let rows: Vec<Vec<String>> = kind
            .rows
            .iter()
            .take(shown)
            .map(|r| vec![count(r.count), name(&r.call_site), name(&r.freed_by), r.detail.clone()])
            .collect();
        let has = |column: usize| rows.iter().any(|r| r.get(column).is_some_and(|c| !c.is_empty()));
        let columns = [("times", Right), ("allocated by", Left), ("freed by", Left), ("", Left)];
        let kept: Vec<usize> = (0..columns.len()).filter(|&c| c == 0 || has(c)).collect();
        if kept.len() > 1 {
            let columns: Vec<_> = kept.iter().filter_map(|&c| columns.get(c).copied()).collect();
            let rows: Vec<Vec<String>> =
                rows.iter().map(|r| kept.iter().filter_map(|&c| r.get(c).cloned()).collect()).collect();
            out.push_str(&table(&columns, &rows));
            out.push_str(&more(shown, kind.rows.len(), "places"));
        }
        out.push('\n');
    }
    for title in absent {
        out.push_str(&format!("none: {title}\n"));
    }
    out
}
