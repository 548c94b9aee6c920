//! `pages`: page allocations by order, migrate type and flags, and by call site where stacks were recorded.

mod answer;
mod callers;
mod groups;
mod passed_over;
mod rows;
mod sorting;
mod text;

pub use rows::{PageFlagsRow, PageRows, PageTables};

use kmt_format::schema::Meaning;
use sorting::PAGE_SUMS;

use crate::collect::{Collectors, Handle, PageGroups, PageStacks};
use crate::failure::Result;
use crate::pass::Needs;
use crate::pass::selection::Selection;
use crate::render::screen::Screen;
use crate::reports::common::ReportContext;
use crate::reports::common::basis::Input;
use crate::reports::common::sorting::{SortKey, sort_keys};
use crate::reports::common::stated::Keys;
use crate::reports::common::{Context, View};
use crate::reports::grouped::GroupKey;
use crate::reports::report::Report;

/// Page allocations by their properties and by call site.
#[derive(Debug, Default, clap::Args)]
pub struct Pages {
    /// Group by these keys: order, migratetype, gfp, task, comm, cgroup, cpu, and where stacks were recorded call_site, function,
    /// line, file, dir, subsystem, module. Several keys: a row for each combination
    #[arg(long, value_name = "GROUP", value_delimiter = ',', value_parser = GroupKey::parse_pages)]
    by: Vec<&'static GroupKey>,
    /// Sort by these columns, the most important first [default: pages; with --at: live_pages]
    #[arg(short, long, value_parser = sort_keys(PAGE_SUMS), value_name = "KEY", value_delimiter = ',')]
    sort: Vec<SortKey>,
    /// Below each call site show the functions of the allocator that it called
    #[arg(short, long, conflicts_with = "by")]
    verbose: bool,
}

impl Report for Pages {
    type Handles = (Handle<PageStacks>, Option<Handle<PageGroups>>);
    type Rows = PageRows;

    const NAME: &'static str = "pages";
    const ABOUT: &'static str = "Pages by call site, order, migrate type and flags";
    const RESTS_ON: Input = Input::Pages;
    const KEYS: Keys = Keys::Pages;

    fn for_selection(mut self, selection: &Selection) -> Self {
        if self.sort.is_empty() && selection.at.is_some() {
            self.sort.push(SortKey::LivePages);
        }
        self
    }

    fn refuses(&self, context: &ReportContext<'_, '_>) -> Option<String> {
        let has_stacks = context.recorded(Meaning::KERNEL_STACK) == Some(true);
        let key = self.by.iter().find(|key| key.needs_stacks() && !has_stacks);
        context.basis().lacks(self.rests_on()).or_else(|| {
            Some(format!("their {} are unknown: record with --stack kmem:mm_page_alloc", key?.nouns.several))
        })
    }

    fn needs(&self) -> Needs {
        Needs::EVENT_COUNTS | Needs::FLAG_NAMES | self.by.iter().map(|key| key.needs()).collect()
    }

    fn check(&self, context: &Context<'_, '_>) -> Result<()> {
        self.by.iter().try_for_each(|key| key.check(context.session))
    }

    fn collect(&self, _: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        let groups = (!self.by.is_empty()).then(|| collectors.add(PageGroups));
        (collectors.add(PageStacks), groups)
    }

    fn compute(&self, context: &ReportContext<'_, '_>, handles: &Self::Handles) -> PageRows {
        let analysis = context.analysis;
        let mut rows = rows::compute(context, &analysis.get(handles.0).stacks, &self.sort);
        if let Some((tables, groups)) = rows.pages.as_mut().zip(handles.1) {
            tables.groups = Some(groups::compute(
                context,
                analysis.get(groups),
                &self.by,
                rows::unless_given(&self.sort),
            ));
        }
        rows
    }

    fn screen(&self, context: &ReportContext<'_, '_>, rows: &PageRows, view: &View) -> Screen {
        text::screen(self, context, rows, view)
    }
}
