//! `crosscpu`: objects that are freed on another CPU or node than they were allocated on.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::collect::Collectors;
use crate::collect::crosscpu::CallerCrossCpu;
use crate::collect::{CrossCpu, Handle};
use crate::pass;
use crate::pass::Analysis;
use crate::pass::selection::Selection;
use crate::render::json;
use crate::render::table::{Align, table};
use crate::render::text::{count, duration, percent};
use crate::reports::common::basis::Input;
use crate::reports::common::labels::Labels;
use crate::reports::common::sums::more;
use crate::reports::common::{Context, View};
use crate::reports::report::{NoOptions, Page, Report};
use crate::stream::Api;

/// The report.
#[derive(Debug, Default)]
pub struct CrossCpuReport;

/// Objects and bytes.
type Amount = (u64, u64);

struct Row<'r> {
    api: Api,
    address: u64,
    name: String,
    crossed: &'r CallerCrossCpu,
}

impl Report for CrossCpuReport {
    type Options = NoOptions;
    type Handles = Handle<CrossCpu>;
    type Rows = Page;

    const NAME: &'static str = "crosscpu";
    const KEY: &'static str = "crosscpu";
    const TITLE: &'static str = "crosscpu";
    const ABOUT: &'static str = "Objects freed on another CPU or node than they were allocated on";

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
        collectors.add(CrossCpu)
    }

    fn compute(&self, context: &Context<'_, '_>, result: &Analysis, handles: &Self::Handles) -> Page {
        let crossing = result.get(*handles);
        let labels = Labels::new(context.session);
        let mut rows: Vec<Row<'_>> = (0..)
            .zip(&crossing.callers)
            .filter(|(_, c)| c.delay.count() > 0)
            .map(|(number, crossed)| {
                let (api, address, name) = labels.caller(result, number);
                Row { api, address, name, crossed }
            })
            .collect();
        rows.sort_by(|a, b| {
            (b.crossed.delay.count(), &a.name, a.api).cmp(&(a.crossed.delay.count(), &b.name, b.api))
        });
        let nodes = nodes(context, &crossing.matrix);
        let mut out = Map::new();
        out.insert(
            "crosscpu".into(),
            to_json(context, result, &labels, &crossing.matrix, nodes.as_ref(), &rows),
        );
        Page { json: out, text: to_text(context, result, &labels, &crossing.matrix, nodes.as_ref(), &rows) }
    }

    fn text(&self, rows: &Page, _: &View) -> String {
        rows.text.clone()
    }
}

/// The matrix of nodes, where the file tells the node of each CPU and there is more than one.
fn nodes(
    context: &Context<'_, '_>,
    matrix: &BTreeMap<(u32, u32), Amount>,
) -> Option<BTreeMap<(u32, u32), Amount>> {
    let cpus = context.session.cpu_nodes()?;
    let mut out: BTreeMap<(u32, u32), Amount> = BTreeMap::new();
    for ((from, to), amount) in matrix {
        let (from, to) = (*cpus.get(from)?, *cpus.get(to)?);
        let cell = out.entry((from, to)).or_default();
        *cell = (cell.0 + amount.0, cell.1 + amount.1);
    }
    Some(out)
}

fn crossing_of(matrix: &BTreeMap<(u32, u32), Amount>) -> (Amount, u64) {
    let all = matrix.values().map(|a| a.0).sum();
    let crossed = matrix.iter().filter(|((from, to), _)| from != to);
    (crossed.fold((0, 0), |sum, (_, a)| (sum.0 + a.0, sum.1 + a.1)), all)
}

fn to_json(
    context: &Context<'_, '_>,
    result: &pass::Analysis,
    labels: &Labels<'_, '_>,
    matrix: &BTreeMap<(u32, u32), Amount>,
    nodes: Option<&BTreeMap<(u32, u32), Amount>>,
    rows: &[Row<'_>],
) -> Value {
    let cells = |matrix: &BTreeMap<(u32, u32), Amount>| -> Value {
        matrix
            .iter()
            .map(|((from, to), (objects, bytes))| {
                json!({"allocated_on": from, "freed_on": to, "frees": objects, "bytes": bytes})
            })
            .collect()
    };
    let ((objects, bytes), all) = crossing_of(matrix);
    let shown = context.limit.min(rows.len());
    let row = |r: &Row<'_>| {
        let delay = &r.crossed.delay;
        let freed_by = freed_by(result, labels, r.crossed);
        json!({
            "api": r.api.name(),
            "call_site": json::address(r.address),
            "symbol": r.name,
            "frees": r.crossed.freed,
            "cross_cpu_frees": delay.count(),
            "bytes": r.crossed.bytes,
            "lifetime_p50": delay.quantile(500),
            "lifetime_p99": delay.quantile(990),
            "lifetime_max": delay.max(),
            "freed_by": freed_by.iter().map(|(address, name, number)| json!({
                "call_site": json::address(*address), "symbol": name, "frees": number,
            })).collect::<Vec<_>>(),
        })
    };
    json!({
        "frees": all,
        "cross_cpu_frees": objects,
        "cross_cpu_bytes": bytes,
        "cpus": cells(matrix),
        "nodes": nodes.map(cells),
        "cross_node_frees": nodes.map(|n| crossing_of(n).0.0),
        "callers_total": rows.len(),
        "callers": rows.iter().take(shown).map(row).collect::<Vec<_>>(),
    })
}

fn freed_by(
    result: &pass::Analysis,
    labels: &Labels<'_, '_>,
    crossed: &CallerCrossCpu,
) -> Vec<(u64, String, u64)> {
    let mut by_address: BTreeMap<u64, u64> = BTreeMap::new();
    for (site, number) in &crossed.freed_by {
        *by_address.entry(labels.free_site(result, *site).0).or_default() += number;
    }
    let mut out: Vec<_> = by_address.into_iter().map(|(a, n)| (a, labels.symbol(a), n)).collect();
    out.sort_by(|a, b| (b.2, &a.1).cmp(&(a.2, &b.1)));
    out
}

fn to_text(
    context: &Context<'_, '_>,
    result: &pass::Analysis,
    labels: &Labels<'_, '_>,
    matrix: &BTreeMap<(u32, u32), Amount>,
    nodes: Option<&BTreeMap<(u32, u32), Amount>>,
    rows: &[Row<'_>],
) -> String {
    use Align::{Left, Right};
    let unit = context.session.unit();
    let ((objects, bytes), all) = crossing_of(matrix);
    let mut out = format!(
        "{} of {} frees ({}), {} bytes, on another CPU than the allocation\n\n",
        count(objects),
        count(all),
        percent(objects, all),
        count(bytes)
    );
    out.push_str(&matrix_text("CPU", matrix));
    match nodes {
        Some(nodes) if nodes.keys().any(|(from, to)| from != to || *from != 0) => {
            let ((objects, bytes), _) = crossing_of(nodes);
            out.push_str(&format!("\n{} frees, {} bytes, on another node\n\n", count(objects), count(bytes)));
            out.push_str(&matrix_text("node", nodes));
        }
        Some(_) => out.push_str("\nthe target has one node\n"),
        None => out.push_str("\nthe file does not tell the node of each CPU\n"),
    }
    let shown = context.limit.min(rows.len());
    let cells: Vec<Vec<String>> = rows
        .iter()
        .take(shown)
        .map(|r| {
            let delay = &r.crossed.delay;
            let time = |t: Option<u64>| t.map_or(String::new(), |t| duration(t, unit));
            let freed_by = freed_by(result, labels, r.crossed);
            let most = freed_by.first().map_or(String::new(), |(_, name, number)| {
                format!("{name} ({})", percent(*number, delay.count()))
            });
            vec![
                r.name.clone(),
                count(delay.count()),
                percent(delay.count(), r.crossed.freed),
                count(r.crossed.bytes),
                time(delay.quantile(500)),
                time(delay.quantile(990)),
                time(delay.max()),
                most,
            ]
        })
        .collect();
    let columns = [
        ("call site", Left),
        ("crossed", Right),
        ("of its frees", Right),
        ("bytes", Right),
        ("lived p50", Right),
        ("p99", Right),
        ("max", Right),
        ("freed most by", Left),
    ];
    out.push_str(&format!("\n{}{}", table(&columns, &cells), more(shown, rows.len(), "call sites")));
    out
}

fn matrix_text(what: &str, matrix: &BTreeMap<(u32, u32), Amount>) -> String {
    let mut all: Vec<u32> = matrix.keys().flat_map(|(from, to)| [*from, *to]).collect();
    all.sort_unstable();
    all.dedup();
    let headings: Vec<String> = all.iter().map(|c| format!("freed on {c}")).collect();
    let first = format!("allocated on {what}");
    let mut columns = vec![(first.as_str(), Align::Left)];
    columns.extend(headings.iter().map(|h| (h.as_str(), Align::Right)));
    let rows: Vec<Vec<String>> = all
        .iter()
        .map(|from| {
            let cells = all.iter().map(|to| matrix.get(&(*from, *to)).map_or(".".to_owned(), |a| count(a.0)));
            std::iter::once(from.to_string()).chain(cells).collect()
        })
        .collect();
    table(&columns, &rows)
}
