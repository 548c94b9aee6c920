//! `lifetimes` and `temporary`: time from allocation to free, by the call site of the allocation or other keys of it.

mod freed_at;
mod groups;
mod life;
mod median;
mod rows;
mod sites;
mod sorting;
mod survival;
mod temporary;
mod text;

pub use rows::LifetimeRows;
pub use temporary::Temporary;

use crate::collect::{self, Collectors, Handle, LifeGroups};
use crate::failure::Result;
use crate::pass::Needs;
use crate::render::screen::Screen;
use crate::reports::common::ReportContext;
use crate::reports::common::basis::Input;
use crate::reports::common::sorting::{SortKey, sort_keys};
use crate::reports::common::{Context, View};
use crate::reports::grouped::{GroupKey, GroupOptions};
use crate::reports::report::Report;
use sorting::LIFETIMES;

/// Lifetimes by call site.
#[derive(Debug, clap::Args)]
pub struct Lifetimes {
    /// Sort by these keys, the most important first; keys of temporary objects need the report `temporary`
    #[arg(short, long, value_parser = sort_keys(LIFETIMES), value_name = "KEY", value_delimiter = ',', default_value = "frees")]
    sort: Vec<SortKey>,
    #[command(flatten)]
    groups: GroupOptions,
}

impl Lifetimes {
    /// The collector that every report of these lifetimes shares.
    pub fn collector(context: &Context<'_, '_>) -> collect::Lifetimes {
        collect::Lifetimes { outlive: survival::bounds(context), ..Default::default() }
    }

    /// Grouped by bytes allocated.
    pub fn by_size() -> Self {
        let by = GroupKey::parse_slab("size").into_iter().collect();
        Self { groups: GroupOptions { by }, sort: vec![SortKey::Frees] }
    }
}

impl Report for Lifetimes {
    /// With true if the length of a tick is known.
    type Handles = (Handle<collect::Lifetimes>, Option<Handle<LifeGroups>>, bool);
    type Rows = LifetimeRows;

    const NAME: &'static str = "lifetimes";
    const ABOUT: &'static str = "Lifetimes of objects by call site, and where they are freed";
    const RESTS_ON: Input = Input::SlabLives;

    fn check(&self, context: &Context<'_, '_>) -> Result<()> {
        self.groups.by.iter().try_for_each(|key| key.check(context.session))
    }

    fn collect(&self, context: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        let own = Self::collector(context);
        let outlive = own.outlive;
        let groups = (!self.groups.by.is_empty()).then(|| collectors.add(LifeGroups { outlive }));
        (collectors.add(own), groups, outlive.is_some())
    }

    fn needs(&self) -> Needs {
        self.groups.by.iter().map(|key| key.needs()).collect()
    }

    fn compute(&self, context: &ReportContext<'_, '_>, handles: &Self::Handles) -> LifetimeRows {
        let analysis = context.analysis;
        let own = rows::compute(context, analysis.get(handles.0), &self.sort, handles.2);
        let groups = handles.1.map(|groups| {
            groups::compute(context, analysis.get(groups), &self.groups.by, &self.sort, handles.2)
        });
        LifetimeRows { groups, ..own }
    }

    fn screen(&self, _: &ReportContext<'_, '_>, rows: &LifetimeRows, view: &View) -> Screen {
        text::screen(rows, self.sort.first().copied(), view)
    }
}
