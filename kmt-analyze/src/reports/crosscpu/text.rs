//! The matrices of CPUs and nodes, and the table of call sites.

use std::collections::BTreeMap;

use super::rows::{CallerRow, CrossCpuRows, FreesByCpu, PairRow};
use crate::render::table::{Align, table};
use crate::render::text::{count, duration, percent};
use crate::reports::common::View;
use crate::reports::common::shown::more;

/// The sums, the matrices, and the table.
pub fn of(CrossCpuRows { crosscpu: frees }: &CrossCpuRows, view: &View) -> String {
    format!(
        "{} of {} frees ({}), {} bytes, on another CPU than the allocation\n\n{}{}\n{}",
        count(frees.cross_cpu_frees),
        count(frees.frees),
        percent(frees.cross_cpu_frees, frees.frees),
        count(frees.cross_cpu_bytes),
        matrix("CPU", &frees.cpus),
        nodes(frees),
        callers(frees, view),
    )
}

fn nodes(frees: &FreesByCpu) -> String {
    let Some(pairs) = &frees.nodes else {
        return "\nthe file does not tell the node of each CPU\n".to_owned();
    };
    if pairs.iter().all(|pair| (pair.allocated_on, pair.freed_on) == (0, 0)) {
        return "\nthe target has one node\n".to_owned();
    }
    format!(
        "\n{} frees, {} bytes, on another node\n\n{}",
        count(frees.cross_node_frees.unwrap_or(0)),
        count(frees.cross_node_bytes.unwrap_or(0)),
        matrix("node", pairs),
    )
}

fn matrix(kind: &str, pairs: &[PairRow]) -> String {
    let frees: BTreeMap<(u32, u32), u64> =
        pairs.iter().map(|pair| ((pair.allocated_on, pair.freed_on), pair.frees)).collect();
    let mut all: Vec<u32> = pairs.iter().flat_map(|pair| [pair.allocated_on, pair.freed_on]).collect();
    all.sort_unstable();
    all.dedup();
    let headings: Vec<String> = all.iter().map(|to| format!("freed on {to}")).collect();
    let first = format!("allocated on {kind}");
    let mut columns = vec![(first.as_str(), Align::Left)];
    columns.extend(headings.iter().map(|heading| (heading.as_str(), Align::Right)));
    let cell = |from, to| frees.get(&(from, to)).map_or(".".to_owned(), |frees| count(*frees));
    let row = |from: &u32| {
        let cells = all.iter().map(|to| cell(*from, *to));
        std::iter::once(from.to_string()).chain(cells).collect()
    };
    table(&columns, &all.iter().map(row).collect::<Vec<_>>())
}

fn callers(frees: &FreesByCpu, view: &View) -> String {
    use Align::{Left, Right};
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
    let cells: Vec<Vec<String>> = frees.callers.iter().map(|row| cells(row, view)).collect();
    table(&columns, &cells) + &more(frees.callers.len(), frees.callers_total, "call sites")
}

fn cells(row: &CallerRow, view: &View) -> Vec<String> {
    let time = |time: Option<u64>| time.map_or(String::new(), |time| duration(time, view.unit));
    let most = row.freed_by.first();
    vec![
        row.symbol.clone(),
        count(row.cross_cpu_frees),
        percent(row.cross_cpu_frees, row.frees),
        count(row.bytes),
        time(row.lifetime_p50),
        time(row.lifetime_p99),
        time(row.lifetime_max),
        most.map_or(String::new(), |free| {
            format!("{} ({})", free.symbol, percent(free.frees, row.cross_cpu_frees))
        }),
    ]
}
