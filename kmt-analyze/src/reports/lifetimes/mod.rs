//! `lifetimes` and `temporary`: time from allocation to free, by the call site of the allocation or other keys of it.
//!
//! The collectors `Lifetimes` and `LifeGroups` have the distributions. Options and the screen are here, rows in `rows`.

mod life;
mod median;
mod rows;
mod temporary;

use life::LifeRow;
use rows::LIFETIMES;
pub use rows::LifetimeRows;
pub use temporary::Temporary;

use crate::collect::{self, Collectors, Handle, LifeGroups};
use crate::failure::Result;
use crate::pass::Needs;
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::render::words::{counted, share};
use crate::reports::common::ages::unknown_age_note;
use crate::reports::common::basis::Input;
use crate::reports::common::lead::CALL_SITES;
use crate::reports::common::sorting::{SortKey, sort_keys};
use crate::reports::common::{Context, ReportContext, View};
use crate::reports::grouped::{GroupKey, GroupOptions};
use crate::reports::report::Report;
use crate::trace::names::function_of;

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
        collect::Lifetimes { outlive: life::survival_bounds(context), ..Default::default() }
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

    fn adds_sums(&self) -> bool {
        self.groups.by.is_empty()
    }

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
            rows::groups(context, analysis.get(groups), &self.groups.by, &self.sort, handles.2)
        });
        LifetimeRows { groups, ..own }
    }

    /// Lifetimes by call site, or by other keys.
    fn screen(&self, rows: &LifetimeRows, view: &View) -> Screen {
        let sort = self.sort.first().copied();
        let answer = match rows.survival.sentence(view) {
            Some(sentence) => format!("{} {sentence}", answer(rows, sort, view)),
            None => answer(rows, sort, view),
        };
        let mut screen = Screen::new(answer);
        screen.table(match &rows.groups {
            Some(groups) => groups.table(life_columns(sort, view), |row| life_cells(row, view)),
            None => table(rows, sort, view),
        });
        screen.notes.extend(unknown_age_note(rows.unknown_age));
        let without = rows.shown.censored.saturating_add(rows.shown.freed_unseen);
        let lives = rows.all.n.saturating_add(without);
        if without.saturating_mul(CENSORED) > lives {
            screen.note(format!(
                "{} of the objects have no lifetime: still allocated {}, freed without an event {}. Where these are many, percentiles are too short.",
                share(without, lives),
                share(rows.shown.censored, lives),
                share(rows.shown.freed_unseen, lives)
            ));
        }
        screen.next("temporary", "objects that are freed within 100 us");
        screen.next("leaks", "objects that are never freed, and grow");
        screen
    }
}

/// Share of objects without a lifetime, as 1/N, from which percentiles are too short to be silent about it.
const CENSORED: u64 = 20;

/// One sentence: the median and 99th percentile of all, and the first call site.
fn answer(rows: &LifetimeRows, sort: Option<SortKey>, view: &View) -> String {
    let (number, nouns) = match &rows.groups {
        Some(groups) => (groups.groups_total, groups.nouns()),
        None => (rows.lifetimes_total, CALL_SITES),
    };
    let sites = counted(number as u64, nouns.one, nouns.several);
    let (Some(p50), Some(p99)) = (rows.all.p50, rows.all.p99) else {
        return match rows.shown.censored + rows.shown.freed_unseen {
            0 if rows.unknown_age > 0 => "No object has a known lifetime.".to_owned(),
            0 => "No object was allocated.".to_owned(),
            objects => format!(
                "No object that was allocated here was freed with an event: {} of {sites} are still allocated or have no free event.",
                counted(objects, "object", "objects")
            ),
        };
    };
    let (p50, p99) = (view.duration(p50), view.duration(p99));
    let freed = counted(rows.all.n, "freed object", "freed objects");
    let row = match &rows.groups {
        Some(groups) => groups.first(),
        None => rows.lifetimes.first().map(|row| (function_of(&row.symbol).to_owned(), &row.lives)),
    };
    let first = row
        .filter(|_| number > 1)
        .map_or(String::new(), |(name, row)| first(rows.all.n, sort, (&name, row), view));
    format!("Half of {freed} of {sites} lived {p50} or less, 1 % longer than {p99}{first}.")
}

/// The first row, and the number that sorts it there.
fn first(all: u64, sort: Option<SortKey>, (name, row): (&str, &LifeRow), view: &View) -> String {
    let time = |time: Option<u64>| view.duration(time.unwrap_or(0));
    let lifetime = &row.lifetime;
    match sort {
        Some(SortKey::P50) => format!("; {name} has the longest median, {}", time(lifetime.p50)),
        Some(SortKey::P90) => format!("; {name} has the longest p90, {}", time(lifetime.p90)),
        Some(SortKey::P99) => format!("; {name} has the longest p99, {}", time(lifetime.p99)),
        Some(SortKey::Max) => format!("; the longest, {}, is from {name}", time(lifetime.max)),
        Some(SortKey::LiveCount) => {
            format!(
                "; {name} has most that are still allocated, {}",
                counted(row.censored, "object", "objects")
            )
        }
        Some(SortKey::ImpliedFrees) => {
            format!("; {name} has most implied frees, {}", counted(row.freed_unseen, "object", "objects"))
        }
        Some(SortKey::Freed) => format!("; {name} has most bytes, {}", view.bytes(row.bytes_freed)),
        None | Some(SortKey::Frees) => {
            format!("; most are from {name} ({}, median {})", share(lifetime.n, all), time(lifetime.p50))
        }
        Some(_) => String::new(),
    }
}

fn table(rows: &LifetimeRows, sort: Option<SortKey>, view: &View) -> Table {
    Table::of_rows("", &rows.lifetimes)
        .of(CALL_SITES.one, CALL_SITES.several, rows.lifetimes_total)
        .column(Column::name("call site"), |row| Cell::from(&row.symbol))
        .column(Column::whole("api").leaves(8), |row| Cell::text(row.api))
        .columns(life_columns(sort, view), |row| life_cells(&row.lives, view))
        .explain("est. median", "est. median: estimate with objects that are still allocated (Kaplan-Meier).")
        .explain("over 1 ms", "over 1 ms, 1 s, trace: share of allocated bytes that live longer.")
        .explain("1 ns to max", "1 ns to max: a bar for each power of ten of the lifetimes, from 1 ns.")
        .into()
}

/// Columns of lifetimes.
fn life_columns(sort: Option<SortKey>, view: &View) -> Vec<Column> {
    let leaves = |heading, key, order| {
        let column = Column::number(heading);
        if sort == Some(key) { column } else { column.leaves(order) }
    };
    let mut columns = vec![
        Column::number("frees"),
        Column::number("p50"),
        leaves("p90", SortKey::P90, 7),
        Column::number("p99"),
        leaves("max", SortKey::Max, 4),
        Column::whole("1 ns to max").leaves(6),
        leaves("live objects", SortKey::LiveCount, 3),
        leaves("implied frees", SortKey::ImpliedFrees, 3),
    ];
    columns.extend(life::survival_columns());
    columns.extend(view.is_lossy.then_some(Column::number("uncertain").leaves(1)));
    columns.extend(life::free_columns(view.is_lossy));
    columns
}

/// Cells under [`life_columns`].
fn life_cells(row: &LifeRow, view: &View) -> Vec<Cell> {
    let time = |time: Option<u64>| time.map_or(Cell::Empty, |time| Cell::Duration(time, view.unit));
    let lifetime = &row.lifetime;
    let lives = lifetime.n + row.censored + row.freed_unseen;
    let mut cells = vec![Cell::Count(lifetime.n)];
    cells.extend([time(lifetime.p50), time(lifetime.p90), time(lifetime.p99), time(lifetime.max)]);
    cells.push(Cell::Sparkline(lifetime.decades()));
    cells.extend([Cell::share(row.censored, lives), Cell::share(row.freed_unseen, lives)]);
    cells.extend(life::survival_cells(&row.survival, view));
    cells.extend(view.is_lossy.then(|| Cell::share(row.uncertain, lives)));
    cells.extend(life::free_cells(row));
    cells
}
