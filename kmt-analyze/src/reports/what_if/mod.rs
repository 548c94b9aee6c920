//! `what-if`: the trace's kmallocs played to an allocator with other size classes, or with call sites apart.

mod layouts;
mod rows;
mod text;

pub use layouts::Found;
pub use rows::WhatIfRows;

use crate::collect::replay::Layout;
use crate::collect::{Collectors, Handle, Replay};
use crate::failure::{Failure, Result};
use crate::pass::Analysis;
use crate::pass::selection::Selection;
use crate::reports::common::basis::Input;
use crate::reports::common::{Context, View};
use crate::reports::report::Report;

/// The trace's kmallocs in other size classes.
#[derive(Debug, Default)]
pub struct WhatIf {
    /// `None`: layouts that need no look at the trace first.
    question: Option<Question>,
}

/// Options of the report.
#[derive(Debug, clap::Args)]
pub struct Question {
    /// Size classes besides the kernel's, in bytes
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    add: Vec<u64>,
    /// Size classes of the kernel to go without
    #[arg(long, value_name = "BYTES", value_delimiter = ',')]
    drop: Vec<u64>,
    /// Keep objects of call sites whose name matches in slabs of their own
    #[arg(long, value_name = "REGEX")]
    split: Option<regex::Regex>,
    /// Suggest so many more classes
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(0..=16))]
    best: u8,
}

impl Report for WhatIf {
    type Options = Question;
    type Handles = (Handle<Replay>, Option<Found>);
    type Rows = WhatIfRows;

    const NAME: &'static str = "what-if";
    const KEY: &'static str = "what_if";
    const TITLE: &'static str = "what-if";
    const ABOUT: &'static str = "The trace's kmallocs played to other size classes, or with call sites apart";

    fn new(options: Question, _: &Selection) -> Self {
        Self { question: Some(options) }
    }

    fn usual() -> Option<Self> {
        Some(Self { question: None })
    }

    fn rests_on(&self) -> Input {
        Input::KmallocLives
    }

    fn check(&self, context: &Context<'_, '_>) -> Result<()> {
        if context.selection.filter(context.session).is_about_lifetimes() {
            return Err(Failure::new("what-if cannot select by lifetime: what begins has none yet")
                .hint("lifetimes, callers, caches and timeline can"));
        }
        Ok(())
    }

    fn collect(&self, context: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        let (others, found) = match &self.question {
            Some(question) => {
                let (others, found) = layouts::asked(context, question);
                (others, Some(found))
            }
            None => (layouts::usual(), None),
        };
        let own = Layout { name: "as the kernel did".to_owned(), ..Layout::default() };
        let layouts = std::iter::once(own).chain(others).collect();
        let (_, end) = context.selection.span(context.session);
        (collectors.add(Replay { layouts, end }), found)
    }

    fn compute(&self, context: &Context<'_, '_>, analysis: &Analysis, handles: &Self::Handles) -> WhatIfRows {
        rows::of(context, analysis, analysis.get(handles.0), handles.1.as_ref())
    }

    fn text(&self, rows: &WhatIfRows, _: &View) -> String {
        text::of(rows)
    }
}
