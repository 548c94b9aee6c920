//! The screen of frees on another CPU or node.
//!
//! Rows come from the collector of frees, in `crosscpu/mod`. The answer names the call site and the pair of CPUs with
//! most of these frees, and both where two have as many. Pairs of nodes are shown only on machines with several nodes.

use std::cmp::Reverse;

use super::{CrossCallerRow, CrossCpuRows, CrossFreeRow, FreesByCpu, PairRow};
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::render::words::{count, counted, share};
use crate::reports::common::View;
use crate::reports::common::ages::unknown_age_note;
use crate::reports::common::cells::{is_more, part};
use crate::reports::common::lead::leaders;
use crate::sort_rows::SortRows;
use crate::trace::names::function_of;

/// Pairs of CPUs or nodes, unless more are allowed.
const PAIRS: usize = 8;

/// Call sites of objects that were freed on another CPU, and pairs of CPUs and nodes.
pub fn screen(CrossCpuRows { crosscpu: frees }: &CrossCpuRows, view: &View) -> Screen {
    let mut screen = Screen { answer: answer(frees, view), ..Screen::default() };
    screen.table(callers(frees, view));
    if frees.cross_cpu_frees > 0 || is_more(view.limit) {
        screen.table(pairs("CPU pairs", ("allocated on CPU", "freed on CPU"), &frees.cpus, frees, view));
    }
    match frees.nodes.as_deref() {
        None => screen.note("Nodes are unknown: the file does not record the node of each CPU."),
        Some(nodes) if is_one_node(nodes) => {}
        Some(nodes) => {
            screen.table(pairs("node pairs", ("allocated on node", "freed on node"), nodes, frees, view));
        }
    }
    screen.notes.extend(unknown_age_note(frees.unknown_age));
    if frees.cross_cpu_frees > 0 {
        screen.next("lifetimes", "how long objects live, and where they are freed");
    }
    screen.next("tasks", "tasks that allocate and free");
    screen
}

/// How many frees, of which objects, and between which CPUs.
fn answer(frees: &FreesByCpu, view: &View) -> Vec<String> {
    if frees.frees == 0 {
        return vec![
            "No object was both allocated and freed in the trace: a longer trace has such objects."
                .to_owned(),
        ];
    }
    let all = counted(frees.frees, "free", "frees");
    if frees.cross_cpu_frees == 0 {
        return vec![format!("No object was freed on another CPU than it was allocated on ({all}).")];
    }
    let crossed = frees.cross_cpu_frees;
    let were = if crossed == 1 { "was" } else { "were" };
    let mut sentences = vec![format!(
        "{} of {all} ({}, {}) {were} on another CPU than the allocation.",
        count(crossed),
        share(crossed, frees.frees),
        view.bytes(frees.cross_cpu_bytes),
    )];
    sentences.extend(largest_sites(frees));
    sentences.extend(busiest(frees));
    sentences.extend(across_nodes(frees, view));
    sentences
}

/// The call site with most of these frees. Of two with as many both are named, of more none.
fn largest_sites(frees: &FreesByCpu) -> Option<String> {
    let part = |row: &CrossCallerRow| share(row.cross_cpu_frees, frees.cross_cpu_frees);
    match leaders(&frees.callers, |row| row.cross_cpu_frees) {
        [row] => Some(format!("The largest call site is {} ({}).", function_of(&row.symbol), part(row))),
        [one, other] => Some(format!(
            "The largest call sites are {} and {} ({} each).",
            function_of(&one.symbol),
            function_of(&other.symbol),
            part(one)
        )),
        _ => None,
    }
}

/// The pair of CPUs with most frees. Of two with as many both are named, of more none.
fn busiest(frees: &FreesByCpu) -> Option<String> {
    let mut pairs: Vec<&PairRow> = frees.cpus.iter().filter(is_crossing).collect();
    pairs.sort_rows_by_key(|pair| (Reverse(pair.frees), pair.allocated_on, pair.freed_on));
    let flow = |pair: &PairRow| format!("from CPU {} to CPU {}", pair.allocated_on, pair.freed_on);
    match leaders(&pairs, |pair| pair.frees) {
        [pair] => {
            Some(format!("The largest flow is {} ({}).", flow(pair), counted(pair.frees, "free", "frees")))
        }
        [one, other] => Some(format!(
            "The largest flows are {} and {} ({} each).",
            flow(one),
            flow(other),
            counted(one.frees, "free", "frees")
        )),
        _ => None,
    }
}

/// Frees on another node; nothing where there is one node.
fn across_nodes(frees: &FreesByCpu, view: &View) -> Option<String> {
    let nodes = frees.nodes.as_deref().filter(|nodes| !is_one_node(nodes))?;
    let number = frees.cross_node_frees?;
    let were = if number == 1 { "was" } else { "were" };
    let bytes = view.bytes(nodes.iter().filter(is_crossing).map(|pair| pair.bytes).sum());
    Some(format!("{} ({bytes}) {were} on another node.", counted(number, "free", "frees")))
}

fn is_one_node(pairs: &[PairRow]) -> bool {
    pairs.iter().all(|pair| (pair.allocated_on, pair.freed_on) == (0, 0))
}

fn is_crossing(pair: &&PairRow) -> bool {
    pair.allocated_on != pair.freed_on
}

/// Frees by pair: those between two CPUs or nodes first.
fn pairs(
    title: &str,
    (from, to): (&'static str, &'static str),
    pairs: &[PairRow],
    frees: &FreesByCpu,
    view: &View,
) -> Table {
    let mut rows: Vec<&PairRow> = pairs.iter().collect();
    rows.sort_rows_by_key(|pair| (!is_crossing(pair), Reverse(pair.frees), pair.allocated_on, pair.freed_on));
    let total = rows.len();
    Table::of_rows(title, rows.into_iter().take(part(view.limit, PAIRS)))
        .of("pair", "pairs", total)
        .column(Column::number(from), |pair| Cell::Count(pair.allocated_on.into()))
        .column(Column::number(to), |pair| Cell::Count(pair.freed_on.into()))
        .column(Column::number("frees"), |pair| Cell::Count(pair.frees))
        .column(Column::number("bytes").leaves(1), |pair| Cell::Bytes(pair.bytes))
        .column(Column::number("of all frees").leaves(2), |pair| Cell::share(pair.frees, frees.frees))
        .into()
}

/// Call sites whose objects were freed on another CPU.
fn callers(frees: &FreesByCpu, view: &View) -> Table {
    let time = |time: Option<u64>| time.map_or(Cell::Empty, |time| Cell::Duration(time, view.unit));
    let most = |row: &CrossCallerRow, cell: &dyn Fn(&CrossFreeRow) -> Cell| {
        row.freed_by.first().map_or(Cell::Empty, cell)
    };
    Table::of_rows("", &frees.callers)
        .of("call site", "call sites", frees.callers_total)
        .column(Column::name("call site"), |row| Cell::from(&row.symbol))
        .column(Column::whole("api").leaves(7), |row| Cell::text(row.api))
        .column(Column::number("cross-CPU"), |row| Cell::Count(row.cross_cpu_frees))
        .column(Column::number("share"), |row| Cell::share(row.cross_cpu_frees, row.frees))
        .column(Column::number("bytes").leaves(1), |row| Cell::Bytes(row.bytes))
        .column(Column::number("median life").leaves(3), |row| time(row.lifetime_p50))
        .column(Column::number("p99 life").leaves(5), |row| time(row.lifetime_p99))
        .column(Column::number("longest life").leaves(6), |row| time(row.lifetime_max))
        .column(Column::name("freed most at").leaves(2), |row| most(row, &|free| Cell::from(&free.symbol)))
        .column(Column::number("share there").leaves(4), |row| {
            most(row, &|free| Cell::share(free.frees, row.cross_cpu_frees))
        })
        .explain(
            "cross-CPU",
            "cross-CPU: frees on another CPU than the allocation; share: of all frees of these objects.",
        )
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_name_the_largest_flow_or_the_reason() {
        let view = View::plain();
        let pair =
            |allocated_on, freed_on, frees| PairRow { allocated_on, freed_on, frees, bytes: frees * 64 };
        let mut frees = FreesByCpu {
            frees: 0,
            cross_cpu_frees: 0,
            cross_cpu_bytes: 0,
            unknown_age: 0,
            cpus: vec![pair(0, 0, 5), pair(0, 1, 2), pair(1, 0, 3)],
            nodes: Some(vec![pair(0, 0, 5), pair(0, 1, 5)]),
            cross_node_frees: Some(5),
            callers_total: 0,
            callers: Vec::new(),
        };
        assert!(answer(&frees, &view)[0].starts_with("No object was both allocated and freed"));
        frees.frees = 10;
        assert_eq!(
            answer(&frees, &view),
            ["No object was freed on another CPU than it was allocated on (10 frees)."]
        );
        (frees.cross_cpu_frees, frees.cross_cpu_bytes) = (5, 320);
        assert_eq!(
            answer(&frees, &view),
            [
                "5 of 10 frees (50 %, 320 B) were on another CPU than the allocation.",
                "The largest flow is from CPU 1 to CPU 0 (3 frees).",
                "5 frees (320 B) were on another node."
            ]
        );
        frees.cpus[1].frees = 3;
        assert_eq!(
            answer(&frees, &view)[1],
            "The largest flows are from CPU 0 to CPU 1 and from CPU 1 to CPU 0 (3 frees each)."
        );
        frees.cpus[1].frees = 2;
        let table = pairs("CPU pairs", ("allocated on CPU", "freed on CPU"), &frees.cpus, &frees, &view);
        let first: Vec<&Cell> = table.rows.iter().filter_map(|row| row.get(2)).collect();
        assert_eq!(first, [&Cell::Count(3), &Cell::Count(2), &Cell::Count(5)], "the same CPU comes last");
    }
}
