//! `--by`: sums of slab objects by other keys than a report's own.

mod grouping;
mod keys;
mod numbered;
mod rows;
mod table;
mod text;
mod values;

use serde::Serialize;

pub use grouping::Grouping;
pub use keys::{GroupKey, WHOLE_DIR, is_number};
pub use numbered::GroupPart;
pub use rows::GroupRows;
pub use table::GroupTable;
pub use values::Values;

use crate::collect::{Collectors, Groups, Handle};
use crate::failure::{Failure, Result};
use crate::pass::Needs;
use crate::pass::selection::Selection;
use crate::render::screen::Screen;
use crate::reports::common::ReportContext;
use crate::reports::common::basis::Input;
use crate::reports::common::sorting::{SLAB_SUMS, SortKey, sort_keys};
use crate::reports::common::stated::Keys;
use crate::reports::common::{Context, View};
use crate::reports::report::Report;

/// Keys of the groups.
#[derive(Debug, clap::Args)]
pub struct GroupOptions {
    /// Group by these keys: call_site, function, line, file, dir, subsystem, module, cache, size, task, comm, cgroup,
    /// accounted, cpu, node, gfp. Several keys: a row for each combination
    #[arg(long, value_name = "GROUP", value_delimiter = ',', value_parser = GroupKey::parse_slab)]
    pub by: Vec<&'static GroupKey>,
}

/// Groups and order of the rows of a table of slab objects.
#[derive(Debug, clap::Args)]
pub struct RowOptions {
    /// Groups.
    #[command(flatten)]
    pub groups: GroupOptions,
    /// Sort by these columns, the most important first [default: allocated; with --at: live]
    #[arg(short, long, value_parser = sort_keys(SLAB_SUMS), value_name = "KEY", value_delimiter = ',')]
    pub sort: Vec<SortKey>,
}

impl RowOptions {
    /// These options with the default order of a selection, if no order is given.
    pub fn for_selection(mut self, selection: &Selection) -> Self {
        if self.sort.is_empty() {
            self.sort.push(if selection.at.is_some() { SortKey::Live } else { SortKey::Alloc });
        }
        self
    }
}

/// Objects of a report.
#[derive(Debug, Clone, Copy)]
pub enum Only<'f> {
    All,
    /// Objects of kmalloc.
    Kmalloc,
    /// Objects of call sites whose name contains the text.
    CallSite(&'f str),
    /// Objects of caches whose name contains the text.
    Cache(&'f str),
}

impl Only<'_> {
    /// Key whose text is compared.
    fn key(self) -> &'static GroupKey {
        let name = if matches!(self, Self::Cache(_)) { "cache" } else { "call_site" };
        keys::KEYS.iter().find(|key| key.name == name).unwrap_or(&keys::KEYS[0])
    }
}

/// A report with `--by`.
pub trait Groupable: Report {
    /// Groups and order.
    fn row_options(&self) -> &RowOptions;

    /// Objects of its groups.
    fn only(&self) -> Only<'_> {
        Only::All
    }
}

/// A report, or its groups if `--by` is given.
#[derive(Debug, clap::Args)]
pub struct Grouped<R: Groupable> {
    /// The report.
    #[command(flatten)]
    pub report: R,
}

/// Rows of a report, with its groups.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GroupedRows<T> {
    /// Rows of the report.
    #[serde(flatten)]
    rows: T,
    /// Groups, if any key was given.
    #[serde(flatten)]
    pub groups: Option<GroupRows>,
}

impl<R: Groupable> Report for Grouped<R> {
    type Handles = (R::Handles, Option<Handle<Groups>>);
    type Rows = GroupedRows<R::Rows>;

    const NAME: &'static str = R::NAME;
    const KEY: &'static str = R::KEY;
    const TITLE: &'static str = R::TITLE;
    const ABOUT: &'static str = R::ABOUT;
    const RESTS_ON: Input = R::RESTS_ON;
    const KEYS: Keys = R::KEYS;

    fn for_selection(self, selection: &Selection) -> Self {
        Self { report: self.report.for_selection(selection) }
    }

    fn check(&self, context: &Context<'_, '_>) -> Result<()> {
        Report::check(&self.report, context)?;
        let RowOptions { groups, sort } = self.report.row_options();
        if sort.iter().any(|key| key.is_of_pages()) && (R::NAME != "tasks" || !groups.by.is_empty()) {
            return Err(Failure::new("--sort: these are sums of slab objects, not of pages")
                .hint("`pages --by` has sums of pages, `tasks` has both"));
        }
        self.report.row_options().groups.by.iter().try_for_each(|key| key.check(context.session))
    }

    fn needs(&self) -> Needs {
        self.report.needs() | self.report.row_options().groups.by.iter().map(|key| key.needs()).collect()
    }

    fn collect(&self, context: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        let own = Report::collect(&self.report, context, collectors);
        (own, (!self.report.row_options().groups.by.is_empty()).then(|| collectors.add(Groups)))
    }

    fn refuses(&self, context: &ReportContext<'_, '_>) -> Option<String> {
        Report::refuses(&self.report, context)
    }

    fn compute(&self, context: &ReportContext<'_, '_>, (own, groups): &Self::Handles) -> Self::Rows {
        let analysis = context.analysis;
        let groups = groups.map(|handle| rows::compute(context, analysis.get(handle), &self.report));
        GroupedRows { rows: self.report.compute(context, own), groups }
    }

    fn screen(&self, context: &ReportContext<'_, '_>, rows: &Self::Rows, view: &View) -> Screen {
        match &rows.groups {
            Some(groups) => {
                text::screen(R::NAME, groups, self.report.row_options().sort.first().copied(), view)
            }
            None => Report::screen(&self.report, context, &rows.rows, view),
        }
    }
}
