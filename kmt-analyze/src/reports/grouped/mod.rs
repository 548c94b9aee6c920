//! `--by`: sums of slab objects by other keys than a report's own.

mod keys;
mod numbered;
mod rows;
mod table;
mod text;
mod values;

use serde::Serialize;

pub use keys::GroupKey;
pub use numbered::{GroupPart, Numbered};
pub use rows::GroupRows;
pub use table::{GroupTable, sums_by_values};
pub use values::Values;

use crate::collect::{Collectors, Groups, Handle};
use crate::failure::Result;
use crate::pass::Needs;
use crate::pass::selection::Selection;
use crate::render::screen::Screen;
use crate::reports::common::ReportContext;
use crate::reports::common::basis::Input;
use crate::reports::common::sorting::{SortKey, SortOptions};
use crate::reports::common::stated::Keys;
use crate::reports::common::{Context, View};
use crate::reports::report::Report;

/// Keys of the groups.
#[derive(Debug, clap::Args)]
pub struct GroupOptions {
    /// Group by these keys: call_site, function, module, cache, size, task, comm, cpu, node, gfp. Several keys: a row for
    /// each combination
    #[arg(long, value_name = "GROUP", value_delimiter = ',', value_parser = GroupKey::parse_slab)]
    by: Vec<&'static GroupKey>,
}

/// Keys of groups of pages.
#[derive(Debug, clap::Args)]
pub struct PageGroupOptions {
    /// Group by these keys: order, migratetype, gfp, task, comm, cpu, and where stacks were recorded call_site, function,
    /// module. Several keys: a row for each combination
    #[arg(long, value_name = "GROUP", value_delimiter = ',', value_parser = GroupKey::parse_pages)]
    by: Vec<&'static GroupKey>,
}

impl GroupOptions {
    /// The keys, each once.
    pub fn keys(self) -> Vec<&'static GroupKey> {
        once(self.by)
    }
}

impl PageGroupOptions {
    /// The keys, each once.
    pub fn keys(self) -> Vec<&'static GroupKey> {
        once(self.by)
    }
}

fn once(by: Vec<&'static GroupKey>) -> Vec<&'static GroupKey> {
    let mut keys: Vec<&'static GroupKey> = Vec::new();
    for key in by {
        if !keys.iter().any(|known| known.name == key.name) {
            keys.push(key);
        }
    }
    keys
}

/// Groups and order of the rows of a table of slab objects.
#[derive(Debug, clap::Args)]
pub struct RowOptions {
    /// Groups.
    #[command(flatten)]
    pub by: GroupOptions,
    /// Order.
    #[command(flatten)]
    pub sort: SortOptions,
}

/// Objects of a report.
#[derive(Debug, Clone, Copy)]
pub enum Only<'f> {
    /// All.
    All,
    /// Those of kmalloc.
    Kmalloc,
    /// Those of call sites whose name contains the text.
    CallSite(&'f str),
    /// Those of caches whose name contains the text.
    Cache(&'f str),
}

impl Only<'_> {
    /// Key whose text is compared.
    fn key(self) -> &'static GroupKey {
        let name = if matches!(self, Self::Cache(_)) { "cache" } else { "call_site" };
        keys::KEYS.iter().find(|key| key.name == name).unwrap_or(&keys::KEYS[0])
    }
}

/// Keys, order and objects of groups.
#[derive(Debug, Clone, Copy)]
pub struct Grouping<'g> {
    /// Keys; none: the report's own rows.
    pub by: &'g [&'static GroupKey],
    /// Order.
    pub sort: &'g [SortKey],
    /// Objects.
    pub only: Only<'g>,
}

/// A report with `--by`.
pub trait Groupable: Report {
    /// Its groups.
    fn grouping(&self) -> Grouping<'_>;
}

/// A report, or its groups if `--by` is given.
#[derive(Debug)]
pub struct Grouped<R>(R);

/// Rows of a report, with its groups.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GroupedRows<T> {
    /// Rows of the report.
    #[serde(flatten)]
    rows: T,
    /// Groups.
    #[serde(flatten)]
    groups: Option<GroupRows>,
}

impl<R: Groupable> Report for Grouped<R> {
    type Options = R::Options;
    type Handles = (R::Handles, Option<Handle<Groups>>);
    type Rows = GroupedRows<R::Rows>;

    const NAME: &'static str = R::NAME;
    const KEY: &'static str = R::KEY;
    const TITLE: &'static str = R::TITLE;
    const ABOUT: &'static str = R::ABOUT;
    const VERSION: u32 = R::VERSION;
    const HAS_LINES: bool = R::HAS_LINES;
    const ACCOUNTS: bool = R::ACCOUNTS;

    fn new(options: R::Options, selection: &Selection) -> Self {
        Self(R::new(options, selection))
    }

    fn with_defaults() -> Option<Self> {
        R::with_defaults().map(Self)
    }

    fn rests_on(&self) -> Input {
        self.0.rests_on()
    }

    fn keys(&self) -> Keys {
        Report::keys(&self.0)
    }

    fn check(&self, context: &Context<'_, '_>) -> Result<()> {
        Report::check(&self.0, context)
    }

    fn needs(&self) -> Needs {
        self.0.needs() | self.0.grouping().by.iter().map(|key| key.needs()).collect()
    }

    fn collect(&self, context: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        let own = Report::collect(&self.0, context, collectors);
        (own, (!self.0.grouping().by.is_empty()).then(|| collectors.add(Groups)))
    }

    fn refuses(&self, context: &ReportContext<'_, '_>) -> Option<String> {
        Report::refuses(&self.0, context)
    }

    fn compute(&self, context: &ReportContext<'_, '_>, (own, groups): &Self::Handles) -> Self::Rows {
        let analysis = context.analysis;
        let groups = groups.map(|handle| rows::of(context, analysis.get(handle), &self.0.grouping()));
        GroupedRows { rows: self.0.compute(context, own), groups }
    }

    fn screen(&self, rows: &Self::Rows, view: &View) -> Screen {
        match &rows.groups {
            Some(groups) => text::of(R::NAME, groups, view),
            None => Report::screen(&self.0, &rows.rows, view),
        }
    }
}
