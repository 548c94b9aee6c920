//! `vmalloc` and `percpu`: areas of the kernel's virtual memory and allocations of the percpu allocator, by call site.

mod allocators;
mod percpu;
mod rows;
mod sorting;
mod text;
mod vmallocinfo;

pub use allocators::{Percpu, Vmalloc};
pub use rows::AreaRows;

use std::marker::PhantomData;

use self::allocators::Allocator;
use self::sorting::AREA_SUMS;
use crate::collect::{AreaGroups, Collectors, Handle};
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

/// Areas of one allocator.
#[derive(Debug, clap::Args)]
pub struct AreaReport<A: Allocator> {
    /// Group by these keys: call_site, function, line, file, dir, subsystem, module, task, comm, cgroup, cpu. Several keys: a
    /// row for each combination
    #[arg(long, value_name = "GROUP", value_delimiter = ',', value_parser = GroupKey::parse_areas)]
    #[arg(default_value = "call_site")]
    by: Vec<&'static GroupKey>,
    /// Sort by these columns, the most important first [default: allocated; with --at: live]
    #[arg(short, long, value_parser = sort_keys(AREA_SUMS), value_name = "KEY", value_delimiter = ',')]
    sort: Vec<SortKey>,
    #[arg(skip)]
    allocator: PhantomData<A>,
}

impl<A: Allocator> Report for AreaReport<A> {
    type Handles = Handle<AreaGroups>;
    type Rows = AreaRows;

    const NAME: &'static str = A::NAME;
    const TITLE: &'static str = A::TITLE;
    const ABOUT: &'static str = A::ABOUT;
    const RESTS_ON: Input = Input::Areas(A::KIND);
    const KEYS: Keys = Keys::Tasks;

    fn for_selection(mut self, selection: &Selection) -> Self {
        if self.sort.is_empty() {
            self.sort.push(if selection.at.is_some() { SortKey::Live } else { SortKey::Alloc });
        }
        self
    }

    fn needs(&self) -> Needs {
        self.by.iter().map(|key| key.needs()).collect()
    }

    fn check(&self, context: &Context<'_, '_>) -> Result<()> {
        self.by.iter().try_for_each(|key| key.check(context.session))
    }

    fn collect(&self, _: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        collectors.add(AreaGroups(A::KIND))
    }

    fn compute(&self, context: &ReportContext<'_, '_>, handle: &Self::Handles) -> AreaRows {
        rows::compute::<A>(context, context.analysis.get(*handle), &self.by, &self.sort)
    }

    fn screen(&self, _: &ReportContext<'_, '_>, rows: &AreaRows, view: &View) -> Screen {
        text::screen::<A>(&rows.areas, view)
    }
}
