//! `memory`: slab objects, pages, vmalloc areas and percpu allocations beside each other, by module, task or cgroup.

mod rows;
mod text;

use self::rows::{MemoryHandles, MemoryRows};
use crate::collect::{AreaGroups, AreaKind, Collectors, Groups, PageGroups};
use crate::failure::Result;
use crate::pass::Needs;
use crate::render::screen::Screen;
use crate::reports::common::ReportContext;
use crate::reports::common::basis::Input;
use crate::reports::common::stated::Keys;
use crate::reports::common::{Context, View};
use crate::reports::grouped::GroupKey;
use crate::reports::report::Report;

/// All kinds of memory by any key that they share.
#[derive(Debug, clap::Args)]
pub struct MemoryReport {
    /// Group by these keys: call_site, function, line, file, dir, subsystem, module, task, comm, cgroup, cpu. Pages and
    /// vmalloc areas have call sites where their stacks were recorded. Several keys: a row for each combination
    #[arg(long, value_name = "GROUP", value_delimiter = ',', value_parser = GroupKey::parse_areas)]
    #[arg(default_value = "module")]
    by: Vec<&'static GroupKey>,
}

impl Report for MemoryReport {
    type Handles = MemoryHandles;
    type Rows = MemoryRows;

    const NAME: &'static str = "memory";
    const TITLE: &'static str = "all kinds of memory";
    const ABOUT: &'static str = "Slab, pages, vmalloc, percpu by module, task or cgroup";
    const RESTS_ON: Input = Input::Allocs;
    const KEYS: Keys = Keys::Tasks;

    fn needs(&self) -> Needs {
        self.by.iter().map(|key| key.needs()).collect()
    }

    fn check(&self, context: &Context<'_, '_>) -> Result<()> {
        self.by.iter().try_for_each(|key| key.check(context.session))
    }

    fn refuses(&self, context: &ReportContext<'_, '_>) -> Option<String> {
        let has_areas = [AreaKind::Vmalloc, AreaKind::Percpu].map(|kind| context.basis().areas(kind)[0]);
        context.basis().lacks(self.rests_on()).filter(|_| !has_areas.contains(&true))
    }

    fn collect(&self, _: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        let areas = [AreaKind::Vmalloc, AreaKind::Percpu];
        (
            collectors.add(Groups),
            collectors.add(PageGroups),
            areas.map(|kind| collectors.add(AreaGroups(kind))),
        )
    }

    fn compute(&self, context: &ReportContext<'_, '_>, handles: &Self::Handles) -> Self::Rows {
        rows::compute(context, handles, &self.by)
    }

    fn screen(&self, _: &ReportContext<'_, '_>, rows: &Self::Rows, view: &View) -> Screen {
        text::screen(rows, view)
    }
}
