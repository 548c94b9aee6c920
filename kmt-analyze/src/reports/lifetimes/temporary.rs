//! `temporary`: objects freed soon after their allocation.
//!
//! Rows are call sites and interfaces with the number of these objects, from the same distributions as `lifetimes`.

use kmt_common::quantity::Span;
use serde::Serialize;

use super::life::survival_bounds;
use super::rows::LIFETIMES;
use crate::collect::{self, Collectors, Handle};
use crate::failure::{Failure, Result};
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::render::words::{counted, share};
use crate::reports::common::ages::unknown_age_note;
use crate::reports::common::basis::Input;
use crate::reports::common::labels::Labels;
use crate::reports::common::sorting::{SortKey, sort_keys, sort_rows};
use crate::reports::common::{Context, ReportContext, View};
use crate::reports::lifetimes::life::{self, Distribution};
use crate::reports::lifetimes::rows::{AllocSite, LifetimeRow, all_freed, number, unknown_age, with_lives};
use crate::reports::report::Report;
use crate::trace::names::function_of;

/// Objects freed soon after their allocation, by call site.
#[derive(Debug, clap::Args)]
pub struct Temporary {
    /// Longest lifetime of a temporary object
    #[arg(long, value_name = "TIME", value_parser = Span::parse, default_value = "100us")]
    within: Span,
    /// Sort by these keys, the most important first
    #[arg(short, long, value_parser = sort_keys(LIFETIMES), value_name = "KEY", value_delimiter = ',', default_value = "temporary")]
    sort: Vec<SortKey>,
}

impl Report for Temporary {
    /// With the longest lifetime in the clock's unit, and true if the length of a tick is known.
    type Handles = (Handle<collect::Lifetimes>, (u64, bool));
    type Rows = TemporaryRows;

    const NAME: &'static str = "temporary";
    const TITLE: &'static str = "temporary objects";
    const ABOUT: &'static str = "Objects that are freed soon after their allocation";
    const RESTS_ON: Input = Input::SlabLives;

    fn with_defaults() -> Option<Self> {
        None
    }

    fn check(&self, context: &Context<'_, '_>) -> Result<()> {
        let refused = |failure: Failure| failure.hint("--within N gives the longest lifetime in ticks");
        context.session.clock().units(self.within).map(drop).map_err(refused)
    }

    fn collect(&self, context: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        // Checked before.
        let bound = context.session.clock().units(self.within).unwrap_or(0);
        let outlive = survival_bounds(context);
        (
            collectors.add(collect::Lifetimes { temporary_bound: Some(bound), outlive }),
            (bound, outlive.is_some()),
        )
    }

    /// Rows of the call sites that have temporary objects.
    fn compute(&self, context: &ReportContext<'_, '_>, handles: &Self::Handles) -> TemporaryRows {
        let (analysis, &(handle, (bound, is_timed))) = (context.analysis, handles);
        let labels = Labels::new(context.session);
        let mut sites = with_lives(analysis, analysis.get(handle), &labels);
        let unknown_age = unknown_age(&sites);
        sites.retain(|site| site.lives.temporary > 0);
        sort_rows(&mut sites, &self.sort, |site, key| number(key, site.lives), AllocSite::by_name);
        let row = |site| TemporaryRow {
            lifetimes: LifetimeRow::of(site, analysis, &labels, is_timed),
            temporary: site.lives.temporary,
            bytes_temporary: site.lives.bytes_temporary,
            temporary_freed_elsewhere: site.lives.temporary_elsewhere,
        };
        TemporaryRows {
            temporary_bound: bound,
            temporary_total: sites.len(),
            unknown_age,
            all: Distribution::from(&all_freed(&sites)),
            temporary: sites.iter().take(context.limit).map(row).collect(),
            shown: TemporaryShown {
                objects: sites.iter().map(|site| site.lives.temporary).sum(),
                bytes: sites.iter().map(|site| site.lives.bytes_temporary).sum(),
            },
        }
    }

    /// Temporary objects by call site.
    fn screen(&self, rows: &TemporaryRows, view: &View) -> Screen {
        let mut screen = Screen::new(answer(rows, view));
        screen.table(table(rows, view));
        if rows.temporary_total > 0 {
            screen.note("Objects this short-lived can often be on the stack, or be kept for reuse.");
        }
        screen.notes.extend(unknown_age_note(rows.unknown_age));
        screen.next("lifetimes", "all lifetimes");
        screen
    }
}

/// Rows of `temporary`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TemporaryRows {
    /// Longest lifetime of a temporary object, in the clock's unit.
    pub temporary_bound: u64,
    /// Number of call sites and interfaces that have temporary objects, including those beyond the limit of rows.
    pub temporary_total: usize,
    /// Objects of all call sites that were allocated before the clock ran: their age is unknown.
    pub unknown_age: u64,
    /// Lifetimes of the freed objects of these call sites.
    pub all: Distribution,
    /// Call sites and interfaces that have temporary objects.
    pub temporary: Vec<TemporaryRow>,
    #[serde(skip)]
    shown: TemporaryShown,
}

/// Temporary objects of all call sites.
#[derive(Debug, Clone, Copy)]
struct TemporaryShown {
    objects: u64,
    bytes: u64,
}

/// Temporary objects of one call site and interface.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TemporaryRow {
    /// Lifetimes of all its objects.
    #[serde(flatten)]
    pub lifetimes: LifetimeRow,
    /// Objects freed within the bound.
    pub temporary: u64,
    /// Bytes of objects freed within the bound.
    pub bytes_temporary: u64,
    /// Objects freed within the bound on another CPU, by another task or on another interrupt level.
    pub temporary_freed_elsewhere: u64,
}

/// One sentence: the number of temporary objects, and the first call site.
fn answer(rows: &TemporaryRows, view: &View) -> String {
    let TemporaryShown { objects, bytes } = rows.shown;
    let bound = view.duration(rows.temporary_bound);
    if objects == 0 {
        return format!(
            "No object was freed within {bound} of its allocation; --within TIME sets another limit."
        );
    }
    let sites = counted(rows.temporary_total as u64, "call site", "call sites");
    let first = rows.temporary.first().filter(|_| rows.temporary_total > 1).map_or(String::new(), |row| {
        format!(", {} of them from {}", share(row.temporary, objects), function_of(&row.lifetimes.symbol))
    });
    format!(
        "{} ({}, {} of the frees of {sites}) were freed within {bound} of their allocation{first}.",
        counted(objects, "object", "objects"),
        view.bytes(bytes),
        share(objects, rows.all.n),
    )
}

fn table(rows: &TemporaryRows, view: &View) -> Table {
    let n = |row: &TemporaryRow| row.lifetimes.lives.lifetime.n;
    Table::of_rows("", &rows.temporary)
        .of("call site", "call sites", rows.temporary_total)
        .column(Column::name("call site"), |row| Cell::from(&row.lifetimes.symbol))
        .column(Column::whole("api").leaves(8), |row| Cell::text(row.lifetimes.api))
        .column(Column::number("temporary"), |row| Cell::Count(row.temporary))
        .column(Column::number("temporary bytes"), |row| Cell::Bytes(row.bytes_temporary))
        .column(Column::number("of frees"), |row| Cell::share(row.temporary, n(row)))
        .column(Column::number("p50").leaves(6), |row| view.duration_cell(row.lifetimes.lives.lifetime.p50))
        .column(Column::number("freed elsewhere").leaves(4), |row| {
            Cell::share(row.temporary_freed_elsewhere, row.temporary)
        })
        .columns(life::free_columns(false), |row| life::free_cells(&row.lifetimes.lives))
        .explain("of frees", "of frees: temporary objects as a share of all that were freed.")
        .explain("p50", "p50: median lifetime of all objects of the call site.")
        .explain(
            "freed elsewhere",
            "freed elsewhere: on another CPU, by another task or on another interrupt level.",
        )
        .into()
}
