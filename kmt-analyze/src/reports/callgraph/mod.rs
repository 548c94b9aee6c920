//! `callgraph`: slab bytes, or pages, by call stack, where stacks were recorded.
//!
//! Slab sums come from the collector `Calls`, sums of pages from `PageGroups`. Both become one tree, which the screen indents.

mod rows;

pub use rows::CallGraphRows;
use rows::{CallNode, CallTree, TreeWeight};

use kmt_format::schema::Meaning;

use crate::collect::groups::PageGroupSums;
use crate::collect::sums::CallSums;
use crate::collect::{Calls, Collectors, Handle, PageGroups};
use crate::ledger::frames::NO_STACK;
use crate::pass::may_have;
use crate::pass::selection::Selection;
use crate::render::screen::{Cell, Column, CommandLine, Screen, Table};
use crate::render::words::{counted, share};
use crate::reports::common::basis::Input;
use crate::reports::common::stated::Keys;
use crate::reports::common::{Context, ReportContext, View};
use crate::reports::report::Report;
use crate::trace::names::function_of;

/// Slab bytes, or pages, by call stack.
#[derive(Debug, Default, clap::Args)]
pub struct CallGraph {
    /// Weight of branches; default: alloc, with --at live
    #[arg(long, value_enum)]
    by: Option<TreeWeight>,
    /// Start at the outermost caller, not at the allocating function
    #[arg(long)]
    top_down: bool,
    /// Pages instead of slab objects
    #[arg(long)]
    pages: bool,
    /// Leave out branches of less than this many percent
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    min: f64,
}

/// How to record stacks.
fn with_stacks(pages: bool) -> &'static str {
    match pages {
        true => "record with --stack 'kmem:mm_page_alloc'",
        false => "record with --stack 'kmem:kmalloc' --stack 'kmem:kmem_cache_alloc'",
    }
}

/// No allocation that is selected has a stack.
fn without_stacks(pages: bool) -> String {
    let what = if pages { "page" } else { "slab" };
    format!("no {what} allocation has a stack: {}", with_stacks(pages))
}

impl Report for CallGraph {
    type Handles = (Option<Handle<Calls>>, Option<Handle<PageGroups>>);
    type Rows = CallGraphRows;

    const NAME: &'static str = "callgraph";
    const TITLE: &'static str = "call graph";
    const ABOUT: &'static str = "Slab memory, or pages, by call stack";
    const RESTS_ON: Input = Input::SlabAllocs;
    const HAS_LINES: bool = false;

    fn for_selection(self, selection: &Selection) -> Self {
        // At a moment nothing is allocated.
        let by = if selection.at.is_some() { TreeWeight::Live } else { TreeWeight::Alloc };
        Self { by: self.by.or(Some(by)), ..self }
    }

    fn with_defaults() -> Option<Self> {
        Some(Self { min: 5.0, ..Self::default() })
    }

    fn rests_on(&self) -> Input {
        if self.pages { Input::Pages } else { Self::RESTS_ON }
    }

    fn keys(&self) -> Keys {
        if self.pages { Keys::Pages } else { Self::KEYS }
    }

    fn refuses(&self, context: &ReportContext<'_, '_>) -> Option<String> {
        let has_stacks = context.recorded(Meaning::KERNEL_STACK) == Some(true);
        let lacks = context.basis().lacks(self.rests_on());
        lacks.or((!has_stacks).then(|| format!("no stacks were recorded: {}", with_stacks(self.pages))))
    }

    fn collect(&self, context: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        // Without stacks each life would be passed on for nothing.
        let has_slab = !self.pages && may_have(context.session.trace, Meaning::KERNEL_STACK);
        let slab = has_slab.then(|| collectors.add(Calls::default()));
        (slab, self.pages.then(|| collectors.add(PageGroups)))
    }

    fn compute(&self, context: &ReportContext<'_, '_>, handles: &Self::Handles) -> CallGraphRows {
        let analysis = context.analysis;
        let pages = handles.1.map(|pages| page_calls(analysis.get(pages), analysis.page_size.0));
        let calls = handles.0.map(|calls| analysis.get(calls)).or(pages.as_ref());
        calls.map_or(CallGraphRows { callgraph: None }, |calls| rows::compute(context, calls, self))
    }

    fn lacks_table(&self, rows: &CallGraphRows) -> Option<String> {
        rows.callgraph.is_none().then(|| without_stacks(self.pages))
    }

    /// The call graph, and its heaviest branch.
    fn screen(&self, rows: &CallGraphRows, view: &View) -> Screen {
        let Some(graph) = &rows.callgraph else {
            let sentence = without_stacks(self.pages);
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
}

/// Steps to the right at most: names have to fit beside them.
const INDENT_MAX: usize = 12;

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

/// Sums of pages by stack; what is live is counted in pages.
fn page_calls(groups: &PageGroupSums, page_size: u64) -> CallSums {
    let mut out = CallSums::default();
    for (group, totals) in groups.0.iter().filter(|(_, totals)| !totals.has_no_pages()) {
        let sums = match group.stack {
            NO_STACK => &mut out.without,
            stack => out.stacks.entry(stack).or_default(),
        };
        let bytes = |pages: u64| pages.saturating_mul(page_size);
        sums.allocs = sums.allocs.saturating_add(totals.alloc_events);
        sums.bytes_alloc = sums.bytes_alloc.saturating_add(bytes(totals.frames_alloc));
        sums.live = sums.live.saturating_add(totals.frames_live);
        sums.bytes_live = sums.bytes_live.saturating_add(bytes(totals.frames_live));
    }
    out
}
