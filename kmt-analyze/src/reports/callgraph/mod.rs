//! `callgraph`: slab bytes by call stack, where stacks were recorded.

mod rows;
mod text;
mod tree;

pub use rows::CallGraphRows;

use kmt_format::schema::Meaning;

use crate::collect::{Calls, Collectors, Handle};
use crate::pass::Analysis;
use crate::pass::selection::Selection;
use crate::reports::common::basis::{Basis, Input};
use crate::reports::common::recorded::recorded;
use crate::reports::common::{Context, View};
use crate::reports::report::Report;
use tree::Weight;

/// Slab bytes by call stack.
#[derive(Debug, Default)]
pub struct CallGraph {
    /// Weight of branches.
    weight: Weight,
    /// From the outermost caller, instead of from the allocating function.
    top_down: bool,
    /// Branches of less than this many percent are summed up.
    min_percent: f64,
}

/// Options of the report.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// What branches are weighed by
    #[arg(long, value_enum, default_value = "alloc")]
    by: Weight,
    /// From the outermost caller down, instead of from the allocating function up
    #[arg(long)]
    top_down: bool,
    /// Sum up branches of less than this many percent
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    min: f64,
}

impl Report for CallGraph {
    type Options = Options;
    type Handles = Handle<Calls>;
    type Rows = CallGraphRows;

    const NAME: &'static str = "callgraph";
    const KEY: &'static str = "callgraph";
    const TITLE: &'static str = "callgraph";
    const ABOUT: &'static str = "Slab bytes by call stack, where stacks were recorded";
    const HAS_LINES: bool = false;

    fn new(options: Options, _: &Selection) -> Self {
        Self { weight: options.by, top_down: options.top_down, min_percent: options.min }
    }

    fn usual() -> Option<Self> {
        Some(Self { min_percent: 5.0, ..Self::default() })
    }

    fn rests_on(&self) -> Input {
        Input::SlabAllocs
    }

    fn refuses(&self, context: &Context<'_, '_>, analysis: &Analysis) -> Option<String> {
        let has_stacks = recorded(context.session, analysis, Meaning::KERNEL_STACK) == Some(true);
        let lacks = Basis::of(context.session, analysis).lacks(self.rests_on());
        let why =
            "no stacks were recorded: record with --stack 'kmem:kmalloc' --stack 'kmem:kmem_cache_alloc'";
        lacks.or((!has_stacks).then(|| why.to_owned()))
    }

    fn collect(&self, _: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        collectors.add(Calls)
    }

    fn compute(
        &self,
        context: &Context<'_, '_>,
        analysis: &Analysis,
        calls: &Self::Handles,
    ) -> CallGraphRows {
        rows::of(context, analysis, analysis.get(*calls), self)
    }

    fn text(&self, rows: &CallGraphRows, _: &View) -> String {
        text::of(rows)
    }
}
