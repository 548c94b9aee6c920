//! `what-if`: simulation of kmalloc with other size classes, or with slabs of their own for some call sites.

mod layouts;
mod rows;
mod text;

pub use layouts::FoundLayout;
pub use rows::WhatIfRows;

use kmt_common::quantity;

use crate::collect::replay::Layout;
use crate::collect::{Collectors, Handle, Replay};
use crate::failure::{Failure, Result};
use crate::pass::condition::Key;
use crate::render::screen::Screen;
use crate::reports::common::ReportContext;
use crate::reports::common::basis::Input;
use crate::reports::common::{Context, View};
use crate::reports::report::Report;

/// Simulation of kmalloc with other size classes.
#[derive(Debug, Default, clap::Args)]
pub struct WhatIf {
    /// False: only layouts that need no other pass over the trace first.
    #[arg(skip = true)]
    looks_first: bool,
    /// Add size classes, up to 1M
    #[arg(long, value_name = "SIZE", value_delimiter = ',', value_parser = class_size)]
    add: Vec<u64>,
    /// Remove size classes
    #[arg(long, value_name = "SIZE", value_delimiter = ',', value_parser = quantity::size)]
    drop: Vec<u64>,
    /// Give call sites that match their own slabs
    #[arg(long, value_name = "REGEX")]
    split: Option<regex::Regex>,
    /// Suggest at most N more size classes
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(0..=16))]
    best: u8,
}

/// Parses the size of a class.
fn class_size(text: &str) -> std::result::Result<u64, String> {
    let size = quantity::size_above_zero(text)?;
    if size > 1 << 20 { Err(format!("{text}: size classes have at most 1 MiB")) } else { Ok(size) }
}

impl Report for WhatIf {
    type Handles = (Handle<Replay>, Option<FoundLayout>);
    type Rows = WhatIfRows;

    const NAME: &'static str = "what-if";
    const KEY: &'static str = "what_if";
    const TITLE: &'static str = "size class simulation";
    const ABOUT: &'static str = "Slab memory with other kmalloc size classes (simulation)";
    const RESTS_ON: Input = Input::KmallocLives;

    fn with_defaults() -> Option<Self> {
        Some(Self::default())
    }

    fn check(&self, context: &Context<'_, '_>) -> Result<()> {
        if context.selection.has_term_on(Key::Lifetime) {
            return Err(Failure::new("what-if cannot select by lifetime: it is unknown at the allocation")
                .hint("lifetimes, callers, caches and timeline can"));
        }
        Ok(())
    }

    fn collect(&self, context: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        let (others, found) = match self.looks_first {
            true => {
                let (others, found) = layouts::asked(context, self);
                (others, Some(found))
            }
            false => (layouts::defaults(), None),
        };
        let own = Layout { name: "as the kernel did".to_owned(), ..Layout::default() };
        let layouts = std::iter::once(own).chain(others).collect();
        let (_, end) = context.selection.span(context.session);
        (collectors.add(Replay { layouts, end }), found)
    }

    fn compute(&self, context: &ReportContext<'_, '_>, handles: &Self::Handles) -> WhatIfRows {
        rows::compute(context, context.analysis.get(handles.0), handles.1.as_ref())
    }

    fn screen(&self, _: &ReportContext<'_, '_>, rows: &WhatIfRows, view: &View) -> Screen {
        text::screen(rows, view)
    }
}
