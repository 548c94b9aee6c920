//! The screen of the call graph: an indented tree.

use super::rows::{CallGraphRows, CallNode, CallTree};
use super::tree::TreeWeight;
use crate::render::screen::{Cell, Column, CommandLine, Screen, Table};
use crate::render::words::{counted, share};
use crate::reports::common::View;
use crate::trace::names::function_of;

/// Steps to the right at most: names have to fit beside them.
const INDENT_MAX: usize = 12;

/// The call graph, and its heaviest branch.
pub fn screen(rows: &CallGraphRows, pages: bool, view: &View) -> Screen {
    let Some(graph) = &rows.callgraph else {
        let sentence = super::without_stacks(pages);
        return Screen::new(format!("{}.", sentence.replacen("no ", "No ", 1)));
    };
    let mut screen = Screen::new(answer(graph, view));
    screen.table(tree(graph));
    let without = graph.without_stack.alloc_events;
    if without > 0 {
        screen.note(format!(
            "Not in the graph: {} without a stack.",
            counted(without, "allocation", "allocations")
        ));
    }
    let callgraph = CommandLine::from(if graph.pages { "callgraph --pages" } else { "callgraph" });
    if !graph.top_down {
        screen.next(callgraph.clone().flag("--top-down"), "the same from system calls and threads");
    }
    if graph.weight != TreeWeight::Live {
        screen.next(callgraph.option("--by", "live"), "stacks of memory that is still allocated");
    }
    screen
}

/// One sentence: the weight of all stacks, and the share of the heaviest branch.
fn answer(graph: &CallTree, view: &View) -> String {
    let sums = &graph.root.sums;
    let allocs = counted(sums.alloc_events, "allocation", "allocations");
    let whole = match graph.weight {
        TreeWeight::Live => {
            format!("{allocs} with a stack have {} of live memory", view.bytes(sums.bytes_live))
        }
        TreeWeight::Alloc => format!("{allocs} with a stack took {}", view.bytes(sums.bytes_alloc)),
        TreeWeight::Count => format!("{allocs} have a stack"),
    };
    let first = graph.root.children.first().map_or(String::new(), |child| {
        let direction = if graph.top_down { "through" } else { "at" };
        let name = function_of(child.symbol.as_deref().unwrap_or_default());
        format!(
            ", {} {direction} {name}",
            share(graph.weight.of(&child.sums), graph.weight.of(&graph.root.sums))
        )
    });
    format!("{whole}{first}.")
}

/// A row for each function, below the one that it calls or is called by.
fn tree(graph: &CallTree) -> Table {
    let weight = match graph.weight {
        TreeWeight::Live => "live bytes",
        TreeWeight::Alloc => "allocated",
        TreeWeight::Count => "allocs",
    };
    let columns = [
        Column::number("share"),
        Column::whole("of all").leaves(1),
        Column::number(weight),
        Column::name("function"),
    ];
    let mut table = Table::new("", columns);
    branches(graph, &graph.root, 0, &mut table);
    let order = if graph.top_down {
        "below each function the functions that it calls"
    } else {
        "below each function its callers"
    };
    table.explain("function", format!("function: {order}; | continues the same branch."));
    table
}

/// Rows of the functions below a node.
fn branches(graph: &CallTree, node: &CallNode, depth: usize, table: &mut Table) {
    let indent = "  ".repeat(depth.min(INDENT_MAX));
    let all = graph.weight.of(&graph.root.sums);
    for child in &node.children {
        let weight = graph.weight.of(&child.sums);
        let cell = if graph.weight == TreeWeight::Count { Cell::Count(weight) } else { Cell::Bytes(weight) };
        table.row([Cell::share(weight, all), Cell::bar(weight, all), cell, name(&indent, child)]);
        // A chain without branches needs no steps to the right.
        let mut last = child;
        while let [only] = last.children.as_slice() {
            if graph.weight.of(&only.sums) != weight {
                break;
            }
            table.row([Cell::Empty, Cell::Empty, Cell::Empty, name(&format!("{indent}| "), only)]);
            last = only;
        }
        branches(graph, last, depth + 1, table);
    }
    if node.light_children > 0 && !node.children.is_empty() {
        let smaller = counted(node.light_children as u64, "smaller branch", "smaller branches");
        table.row([Cell::Empty, Cell::Empty, Cell::Empty, Cell::text(format!("{indent}… {smaller}"))]);
    }
}

fn name(indent: &str, node: &CallNode) -> Cell {
    let symbol = node.symbol.as_deref().unwrap_or_default();
    match node.source.last() {
        // The function of the symbol, where others are inlined.
        Some(row) => Cell::text(format!("{indent}{} {}", row.function, row.file_and_line())),
        None => Cell::symbol(format!("{indent}{symbol}")),
    }
}
