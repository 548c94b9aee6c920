//! `lifetimes` and `temporary`: time from allocation to free, by the call site of the allocation.

mod rows;
mod sites;
mod sorting;
mod temporary;
mod text;

pub use rows::LifetimeRows;
pub use temporary::{Temporary, TemporaryRows};

use crate::collect::{self, Collectors, Handle};
use crate::pass::Analysis;
use crate::pass::selection::Selection;
use crate::reports::common::basis::Input;
use crate::reports::common::{Context, View};
use crate::reports::report::Report;
use sorting::LifetimeKey;

/// Options of `lifetimes`.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Sort by these, the most important first; what is temporary is known to the report of that name alone
    #[arg(short, long, value_enum, value_delimiter = ',', default_value = "count")]
    sort: Vec<LifetimeKey>,
}

/// Lifetimes by call site.
#[derive(Debug)]
pub struct Lifetimes {
    sort: Vec<LifetimeKey>,
}

impl Report for Lifetimes {
    type Options = Options;
    type Handles = Handle<collect::Lifetimes>;
    type Rows = LifetimeRows;

    const NAME: &'static str = "lifetimes";
    const KEY: &'static str = "lifetimes";
    const TITLE: &'static str = "lifetimes";
    const ABOUT: &'static str = "How long objects live, by call site, and where they are freed";

    fn new(options: Options, _: &Selection) -> Self {
        Self { sort: options.sort }
    }

    fn usual() -> Option<Self> {
        Some(Self { sort: vec![LifetimeKey::Count] })
    }

    fn rests_on(&self) -> Input {
        Input::SlabLives
    }

    fn collect(&self, _: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        collectors.add(collect::Lifetimes::default())
    }

    fn compute(
        &self,
        context: &Context<'_, '_>,
        analysis: &Analysis,
        handle: &Self::Handles,
    ) -> LifetimeRows {
        rows::of(context, analysis, analysis.get(*handle), &self.sort)
    }

    fn text(&self, rows: &LifetimeRows, view: &View) -> String {
        text::of(rows, view)
    }
}
