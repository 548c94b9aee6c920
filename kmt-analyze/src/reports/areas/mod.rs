//! `vmalloc` and `percpu`: areas of the kernel's virtual memory and allocations of the percpu allocator, by call site.
//!
//! The collector `AreaGroups` has the sums, by allocator. Options and the screen of both reports are here.

mod rows;
mod vmallocinfo;

use rows::{AREA_SUMS, Allocator, AreaSums, AreaTables};
pub use rows::{AreaRows, Percpu, Vmalloc};
use vmallocinfo::{PercpuLine, VmallocInfoChange};

use std::marker::PhantomData;

use crate::collect::{AreaGroups, AreaKind, Collectors, Handle};
use crate::failure::Result;
use crate::pass::Needs;
use crate::pass::selection::Selection;
use crate::render::screen::{Cell, Column, CommandLine, Screen, Table};
use crate::render::words::{count, counted};
use crate::reports::common::basis::Input;
use crate::reports::common::cells::part;
use crate::reports::common::sorting::{SortKey, sort_keys};
use crate::reports::common::stated::Keys;
use crate::reports::common::{Context, ReportContext, View};
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

    /// Areas are events in each file.
    fn adds_sums(&self) -> bool {
        true
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

    /// Areas by the keys of `--by`, and the kernel's counts.
    fn screen(&self, AreaRows { areas: rows }: &AreaRows, view: &View) -> Screen {
        let mut screen = Screen::new(amounts::<A>(rows, view));
        if let Some(sentence) = largest(rows, view) {
            screen.answer(sentence);
        }
        let columns = SUMS.into_iter().chain(view.is_lossy.then_some(UNCERTAIN));
        screen.table(rows.groups.table(columns, |sums| cells(sums, view)));
        if let Some(change) = &rows.vmallocinfo {
            screen.table(callers(change, view));
        }
        notes::<A>(&mut screen, rows, view);
        let by_call_site = rows.groups.by.iter().any(|key| key.name == "call_site");
        match by_call_site {
            true => {
                screen
                    .next(CommandLine::from(A::NAME).option("--by", "module"), "modules that allocate them");
            }
            false => screen.next(A::NAME, "call sites"),
        }
        screen.next("leaks", "pages and objects that stay");
        screen
    }
}

/// Rows of the tables after the first one, unless more are allowed.
const ROWS: usize = 8;

/// Columns of sums of areas.
const SUMS: [Column; 7] = [
    Column::number("allocs").leaves(2),
    Column::number("failed").leaves(5),
    Column::number("requested").leaves(4),
    Column::number("allocated"),
    Column::number("freed").leaves(6),
    Column::number("live areas").leaves(3),
    Column::number("live").leaves(1),
];

/// Column of areas that cross a loss.
const UNCERTAIN: Column = Column::number("uncertain").leaves(1);

/// Areas allocated, freed and still allocated.
fn amounts<A: Allocator>(rows: &AreaTables, view: &View) -> String {
    let [one, several] = A::NOUNS;
    let total = &rows.total;
    let areas = |number: u64, bytes: Option<u64>| {
        let bytes = bytes.map_or(String::new(), |bytes| format!(" ({})", view.bytes(bytes)));
        format!("{}{bytes}", counted(number, one, several))
    };
    let allocated = format!("The kernel allocated {}", areas(total.alloc_events, total.bytes_alloc));
    let failed = match total.alloc_failures {
        0 => String::new(),
        failed => format!(" {} failed.", counted(failed, "allocation", "allocations")),
    };
    let Some((freed, live)) = total.frees_matched.zip(total.live) else {
        return format!("{allocated}; frees were not recorded, so live areas are unknown.{failed}");
    };
    let are = if live == 1 { "is" } else { "are" };
    let live = match total.bytes_live {
        Some(bytes) => format!("{} ({})", count(live), view.bytes(bytes)),
        None => count(live),
    };
    format!("{allocated} and freed {} of them; {live} {are} still allocated.{failed}", count(freed))
}

/// The first group.
fn largest(rows: &AreaTables, view: &View) -> Option<String> {
    let (phrase, sums) = rows.groups.first().filter(|_| rows.groups.groups_total > 1)?;
    let noun = rows.groups.nouns().one;
    let allocated = sums.bytes_alloc.filter(|&bytes| bytes > 0)?;
    let live = sums.bytes_live.map_or(String::new(), |bytes| format!(", {} of them live", view.bytes(bytes)));
    Some(format!("The first {noun} is {phrase}: {} allocated{live}.", view.bytes(allocated)))
}

/// Cells under [`SUMS`].
fn cells(sums: &AreaSums, view: &View) -> Vec<Cell> {
    let mut cells = vec![
        Cell::Count(sums.alloc_events),
        Cell::Count(sums.alloc_failures),
        Cell::Bytes(sums.bytes_req),
        Cell::bytes(sums.bytes_alloc),
        Cell::bytes(sums.bytes_freed),
        Cell::count(sums.live),
        Cell::bytes(sums.bytes_live),
    ];
    cells.extend(view.is_lossy.then_some(Cell::Count(sums.uncertain)));
    cells
}

/// Callers of /proc/vmallocinfo with new or freed areas.
fn callers(change: &VmallocInfoChange, view: &View) -> Table {
    let rows = change.callers.iter();
    Table::of_rows("change of /proc/vmallocinfo", rows.take(part(view.limit, ROWS)))
        .of("caller", "callers", change.callers.len())
        .column(Column::name("caller"), |row| match &row.caller {
            Some(caller) => Cell::symbol(caller.clone()),
            None => Cell::text("(unknown)"),
        })
        .column(Column::number("areas before").leaves(4), |row| Cell::Count(row.areas_before))
        .column(Column::number("areas after").leaves(3), |row| Cell::Count(row.areas_after))
        .column(Column::number("change"), |row| Cell::Change(row.areas_change()))
        .column(Column::number("live in the trace"), |row| Cell::Count(row.live))
        .column(Column::number("older freed").leaves(1), |row| Cell::Change(row.freed_older()))
        .column(Column::number("change of bytes").leaves(2), |row| Cell::BytesChange(row.bytes_change()))
        .explain("older freed", "older freed: areas allocated before the trace that were freed in it, live in the trace less the change.")
        .into()
}

/// Facts that the tables need.
fn notes<A: Allocator>(screen: &mut Screen, rows: &AreaTables, view: &View) {
    if A::KIND == AreaKind::Vmalloc && rows.total.alloc_events > 0 && !rows.shown.have_call_sites {
        screen.note("Call sites are unknown: the recording has no stacks of areas.");
        screen.next(
            CommandLine::recording("--stack vmalloc:alloc_vmap_area"),
            "a recording with call sites of areas",
        );
    }
    if A::KIND == AreaKind::Vmalloc {
        screen.note(
            "Bytes are of addresses, with a guard page for each area; ioremap and vmap allocate no pages.",
        );
    }
    if rows.shown.are_bytes_of_events && rows.total.bytes_alloc.is_some_and(|bytes| bytes > 0) {
        screen.note(
            "The number of CPUs is not in the file: bytes are those of the events, which may count pointers to memory cgroups, too.",
        );
    }
    if let Some(frees) = rows.frees_unmatched.filter(|&frees| frees > 0) {
        let frees = counted(frees, "free is", "frees are");
        let or_lost = if view.is_lossy { ", or in a loss" } else { "" };
        screen.note(format!(
            "{frees} without a traced allocation: of areas allocated before the trace{or_lost}."
        ));
    }
    if let Some(unexplained) = rows.vmallocinfo.as_ref().and_then(|change| change.areas_unexplained) {
        screen.note(match unexplained {
            0 => "The trace explains the change of /proc/vmallocinfo, which has the callers.".to_owned(),
            _ => format!(
                "/proc/vmallocinfo and the trace differ by {unexplained} areas: it is read before and after the events, and some areas have none."
            ),
        });
    }
    if let Some(PercpuLine { bytes_before, bytes_after }) = rows.percpu {
        screen.note(format!(
            "Percpu of /proc/meminfo, pages that the allocator has, used or not: {} before, {} after.",
            view.bytes(bytes_before),
            view.bytes(bytes_after),
        ));
    }
}
