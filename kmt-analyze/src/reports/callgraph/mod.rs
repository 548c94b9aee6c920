//! `callgraph`: slab bytes, or pages, by call stack, where stacks were recorded.

mod pages;
mod rows;
mod text;
mod tree;

pub use rows::CallGraphRows;

use kmt_format::schema::Meaning;

use crate::collect::{Calls, Collectors, Handle, PageGroups};
use crate::pass::selection::Selection;
use crate::render::screen::Screen;
use crate::reports::common::ReportContext;
use crate::reports::common::basis::Input;
use crate::reports::common::stated::Keys;
use crate::reports::common::{Context, View};
use crate::reports::report::Report;
use tree::TreeWeight;

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

    fn collect(&self, _: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        let slab = (!self.pages).then(|| collectors.add(Calls::default()));
        (slab, self.pages.then(|| collectors.add(PageGroups)))
    }

    fn compute(&self, context: &ReportContext<'_, '_>, handles: &Self::Handles) -> CallGraphRows {
        let analysis = context.analysis;
        let pages = handles.1.map(|pages| pages::calls(analysis.get(pages), analysis.page_size.0));
        let calls = handles.0.map(|calls| analysis.get(calls)).or(pages.as_ref());
        calls.map_or(CallGraphRows { callgraph: None }, |calls| rows::compute(context, calls, self))
    }

    fn lacks_table(&self, rows: &CallGraphRows) -> Option<String> {
        rows.callgraph.is_none().then(|| without_stacks(self.pages))
    }

    fn screen(&self, _: &ReportContext<'_, '_>, rows: &CallGraphRows, view: &View) -> Screen {
        text::screen(rows, self.pages, view)
    }
}
