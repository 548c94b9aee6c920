//! `--by`: sums of slab objects by other keys than a report's own.
//!
//! The keys are in `keys`. Sums come from the collector `Groups`, which keeps them by site, cache and origin; rows and their
//! screen are made here.

mod keys;
mod numbered;
mod table;
mod values;

pub use keys::{GroupKey, WHOLE_DIR, is_number};
use numbered::Numbered;
pub use numbered::{GroupPart, Grouping};
pub use table::GroupTable;
pub use values::Values;

use serde::Serialize;

use crate::collect::groups::{Group, GroupSums};
use crate::collect::{Collectors, Groups, Handle};
use crate::failure::{Failure, Result};
use crate::ledger::totals::Totals;
use crate::pass::Needs;
use crate::pass::selection::Selection;
use crate::pass::weights::{Estimate, in_order};
use crate::render::screen::{CommandLine, Screen};
use crate::reports::common::basis::Input;
use crate::reports::common::cells::{slab_cells, slab_columns};
use crate::reports::common::lead::lead;
use crate::reports::common::rows::{Estimated, RecordedSums, SlabSums};
use crate::reports::common::sorting::{SLAB_SUMS, SortKey, sort_keys};
use crate::reports::common::stated::Keys;
use crate::reports::common::{Context, ReportContext, View};
use crate::reports::report::Report;
use crate::stream::Api;
use crate::trace::aliases::Aliases;

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

    /// The most important key.
    pub fn first(&self) -> Option<SortKey> {
        self.sort.first().copied()
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

/// A report of slab objects, of which `--by` makes groups.
pub trait Groupable: Report {
    /// Groups and order of its rows.
    fn options(&self) -> &RowOptions;

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
    pub rows: T,
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
        let RowOptions { groups, sort } = self.report.options();
        if sort.iter().any(|key| key.is_of_pages()) && (R::NAME != "tasks" || !groups.by.is_empty()) {
            return Err(Failure::new("--sort: these are sums of slab objects, not of pages")
                .hint("`pages --by` has sums of pages, `tasks` has both"));
        }
        groups.by.iter().try_for_each(|key| key.check(context.session))
    }

    fn needs(&self) -> Needs {
        self.report.needs() | self.report.options().groups.by.iter().map(|key| key.needs()).collect()
    }

    /// Sums have no tasks and no CPUs.
    fn adds_sums(&self) -> bool {
        self.report.adds_sums() && !self.report.options().groups.by.iter().any(|key| key.is_of_tasks())
    }

    /// Groups are of slab objects, also where the report itself has pages too.
    fn refuses(&self, context: &ReportContext<'_, '_>) -> Option<String> {
        let groups = || {
            let by = &self.report.options().groups.by;
            let reason = context.basis().lacks(Input::SlabAllocs).filter(|_| !by.is_empty())?;
            let names: Vec<&str> = by.iter().map(|key| key.name).collect();
            let names = names.join(",");
            let pages = match GroupKey::parse_all_pages(&names) {
                true if context.basis().lacks(Input::Pages).is_none() => {
                    format!(" (`pages --by {names}` has groups of pages)")
                }
                _ => String::new(),
            };
            Some(format!("--by makes groups of slab objects, and {reason}{pages}"))
        };
        self.report.refuses(context).or_else(groups)
    }

    fn collect(&self, context: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        let own = self.report.collect(context, collectors);
        let has_groups = !self.report.options().groups.by.is_empty();
        (own, has_groups.then(|| collectors.add(Groups)))
    }

    fn compute(&self, context: &ReportContext<'_, '_>, (own, groups): &Self::Handles) -> Self::Rows {
        let (options, only) = (self.report.options(), self.report.only());
        let groups = groups.map(|handle| compute(context, context.analysis.get(handle), options, only));
        GroupedRows { rows: self.report.compute(context, own), groups }
    }

    fn screen(&self, rows: &Self::Rows, view: &View) -> Screen {
        match &rows.groups {
            Some(groups) => screen(R::NAME, groups, self.report.options().first(), view),
            None => self.report.screen(&rows.rows, view),
        }
    }
}

/// Groups of slab objects.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GroupRows {
    /// The groups.
    #[serde(flatten)]
    pub table: GroupTable<SlabGroup>,
    /// Sums over all groups.
    #[serde(skip)]
    pub all: SlabSums,
}

/// Slab objects of one group.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SlabGroup {
    /// Sums of its objects.
    #[serde(flatten)]
    pub sums: SlabSums,
    /// Sums that its samples represent; absent: no sample represents more than one event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated: Option<Estimated>,
}

/// Sums of a group before sorting and limiting.
#[derive(Debug, Default)]
struct SlabTotals {
    totals: Totals,
    estimate: Option<Estimate>,
    /// True for interfaces that allocated.
    apis: [bool; 2],
}

/// Adds the sums of all groups but those that `only` leaves out.
fn add(
    groups: &mut Grouping<'_, '_, SlabTotals>,
    context: &ReportContext<'_, '_>,
    sums: &GroupSums,
    only: Only<'_>,
    names: &mut Numbered<'_, '_>,
) {
    let analysis = context.analysis;
    let aliases = match only {
        Only::Cache(_) => Aliases::of(context.session.trace.metadata()),
        _ => Aliases::default(),
    };
    let mut parts: Vec<(&Group, &Totals)> = sums.iter().collect();
    // Estimates are sums of fractions: always in the same order.
    parts.sort_unstable_by_key(|(group, _)| **group);
    for (group, totals) in parts {
        let Some(site) = analysis.interner.sites.get(group.site) else { continue };
        let part = GroupPart::Slab(group, site);
        let is_left_out = match only {
            Only::All => false,
            Only::Kmalloc => site.api != Api::Kmalloc,
            Only::CallSite(text) | Only::Cache(text) => {
                let name = names.of(part);
                !aliases.is_named(&names.text(&name), text)
            }
        };
        if is_left_out {
            continue;
        }
        let sum = groups.of(part);
        sum.totals += totals;
        analysis.weights.add(site, totals, &mut sum.estimate);
        if let Some(has) = sum.apis.get_mut(site.api as usize) {
            *has = true;
        }
    }
}

/// Rows of all groups.
fn compute(
    context: &ReportContext<'_, '_>,
    sums: &GroupSums,
    options: &RowOptions,
    only: Only<'_>,
) -> GroupRows {
    let analysis = context.analysis;
    let values = Values::new(context);
    let mut groups = Grouping::new(&options.groups.by, &values, analysis);
    let mut names = Numbered::new(&[only.key()], &values, analysis);
    add(&mut groups, context, sums, only, &mut names);
    let basis = context.basis();
    let recorded = |apis: [bool; 2]| match apis {
        [true, false] => RecordedSums::slab(basis, Some(Api::Kmalloc)),
        [false, true] => RecordedSums::slab(basis, Some(Api::Cache)),
        _ => RecordedSums::slab(basis, None),
    };
    let row = |sum: &SlabTotals| SlabGroup {
        sums: SlabSums::of(&sum.totals, recorded(sum.apis)),
        estimated: sum.estimate.map(Estimated::from),
    };
    let (mut all, mut apis) = (Totals::default(), [false; 2]);
    for sum in groups.sums() {
        all += &sum.totals;
        apis.iter_mut().zip(sum.apis).for_each(|(any, has)| *any |= has);
    }
    let number = |sum: &SlabTotals, key: SortKey| key.number(&in_order(sum.estimate, sum.totals));
    GroupRows {
        table: groups.table(&options.sort, number, context.limit, row),
        all: SlabSums::of(&all, recorded(apis)),
    }
}

/// The largest groups, and the share of the first.
fn screen(report: &'static str, rows: &GroupRows, sort: Option<SortKey>, view: &View) -> Screen {
    let GroupRows { table, all } = rows;
    let first = table.first();
    let first = first.as_ref().map(|(name, row)| (name.as_str(), &row.sums));
    let answer = lead(sort, table.groups_total as u64, table.nouns(), all, first, view);
    let mut screen = Screen::new(answer);
    screen.table(table.table(slab_columns(sort, view.is_lossy), |row| {
        slab_cells(&row.sums, row.estimated.as_ref(), view.is_lossy).into_iter().collect()
    }));
    if table.by.iter().any(|key| ["call_site", "function"].contains(&key.name)) {
        screen.next("lifetimes", "how long objects live, and where they are freed");
    } else {
        let keys: String = table.by.iter().map(|key| format!("{},", key.name)).collect();
        screen
            .next(CommandLine::from(report).option("--by", format!("{keys}call_site")), "call sites of each");
    }
    screen
}
