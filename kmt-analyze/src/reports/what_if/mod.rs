//! `what-if`: simulation of kmalloc with other size classes, or with slabs of their own for some call sites.
//!
//! The collector `Replay` simulates each layout with the allocations of the trace. Options and screen are here, rows and layouts
//! in `rows`.

mod rows;

pub use rows::{FoundLayout, WhatIfRows};
use rows::{LayoutRow, WhatIfTable};

use kmt_common::quantity;

use crate::collect::replay::Layout;
use crate::collect::{Collectors, Handle, Replay};
use crate::failure::{Failure, Result};
use crate::pass::condition::Key;
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::render::words::{counted, share};
use crate::reports::common::basis::Input;
use crate::reports::common::cells::{is_more, part};
use crate::reports::common::{Context, ReportContext, View};
use crate::reports::report::Report;

/// Simulation of kmalloc with other size classes.
#[derive(Debug, Default, clap::Args)]
pub struct WhatIf {
    /// False: only layouts that need no other pass over the trace first.
    #[arg(skip = true)]
    looks_first: bool,
    /// Add size classes, up to 1M
    #[arg(long, value_name = "SIZE", value_delimiter = ',', value_parser = class_size)]
    add: Vec<u64>,
    /// Remove size classes
    #[arg(long, value_name = "SIZE", value_delimiter = ',', value_parser = quantity::size)]
    drop: Vec<u64>,
    /// Give call sites that match their own slabs
    #[arg(long, value_name = "REGEX")]
    split: Option<regex::Regex>,
    /// Suggest at most N more size classes
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(0..=16))]
    best: u8,
}

/// Parses the size of a class.
fn class_size(text: &str) -> std::result::Result<u64, String> {
    let size = quantity::size_above_zero(text)?;
    if size > 1 << 20 { Err(format!("{text}: size classes have at most 1 MiB")) } else { Ok(size) }
}

impl Report for WhatIf {
    type Handles = (Handle<Replay>, Option<FoundLayout>);
    type Rows = WhatIfRows;

    const NAME: &'static str = "what-if";
    const KEY: &'static str = "what_if";
    const TITLE: &'static str = "size class simulation";
    const ABOUT: &'static str = "Slab memory with other kmalloc size classes (simulation)";
    const RESTS_ON: Input = Input::KmallocLives;

    fn with_defaults() -> Option<Self> {
        Some(Self::default())
    }

    fn check(&self, context: &Context<'_, '_>) -> Result<()> {
        if context.selection.has_term_on(Key::Lifetime) {
            return Err(Failure::new("what-if cannot select by lifetime: it is unknown at the allocation")
                .hint("lifetimes, callers, caches and timeline can"));
        }
        Ok(())
    }

    fn collect(&self, context: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        let (others, found) = match self.looks_first {
            true => {
                let (others, found) = rows::asked_layouts(context, self);
                (others, Some(found))
            }
            false => (rows::default_layouts(), None),
        };
        let own = Layout { name: "as the kernel did".to_owned(), ..Layout::default() };
        let layouts = std::iter::once(own).chain(others).collect();
        let (_, end) = context.selection.span(context.session);
        (collectors.add(Replay { layouts, end }), found)
    }

    fn compute(&self, context: &ReportContext<'_, '_>, handles: &Self::Handles) -> WhatIfRows {
        rows::compute(context, context.analysis.get(handles.0), handles.1.as_ref())
    }

    /// Layouts against the kernel's own, and the requests that waste most.
    fn screen(&self, WhatIfRows { what_if: rows }: &WhatIfRows, view: &View) -> Screen {
        let mut screen = Screen::new(answer(rows, view));
        for layout in rows.layouts.iter().filter(|layout| layout.requests_not_served > 0) {
            let requests = counted(layout.requests_not_served, "request", "requests");
            let held = view.bytes(layout.slab_bytes_on_average);
            screen.answer(format!(
                "The layout {} would need {held}, but not serve {requests}.",
                quoted(layout)
            ));
        }
        if rows.bytes_alloc == 0 {
            screen.next("caches", "slab memory by cache");
            return screen;
        }
        screen.table(layouts(rows));
        screen.table(requests(rows, view));
        let apart = rows.call_sites_apart.as_deref().unwrap_or_default();
        screen.lines("call sites with slabs of their own", named(apart, view));
        let long_lived = rows.long_lived_call_sites.as_deref().unwrap_or_default();
        screen.lines(
            "long-lived call sites (objects held for at least 10 % of the time)",
            named(long_lived, view),
        );
        screen.note(
            "Simulation: an object goes to the fullest slab of its class, and a class keeps 5 empty slabs. Objects older than the trace, per-CPU slabs, nodes and cgroups are left out: compare layouts with each other only.",
        );
        screen.next("sizes", "requested sizes of each size class");
        screen.next("callers --sort wasted", "call sites that waste most");
        screen
    }
}

/// Call sites that are named, unless more are allowed.
const NAMED: usize = 6;

/// Requests, unless more are allowed.
const REQUESTS: usize = 6;

/// Longest name of a layout that other columns give way to, in characters.
const NAME_MAX: usize = 34;

/// The layout that saves most, and how much.
fn answer(rows: &WhatIfTable, view: &View) -> String {
    let Some((own, others)) = rows.layouts.split_first().filter(|_| rows.bytes_alloc > 0) else {
        return "Nothing to simulate: no kmalloc of at most two pages. A trace with such kmallocs and their frees has an answer.".to_owned();
    };
    let held = own.slab_bytes_on_average;
    // Slabs that are saved because requests are not served are no gain.
    let serves = |layout: &&LayoutRow| layout.requests_not_served == 0;
    let serving = if others.iter().all(|layout| serves(&layout)) { "" } else { " that serves all requests" };
    let Some(best) = others.iter().filter(serves).min_by_key(|layout| layout.slab_bytes_on_average) else {
        let held = view.bytes(held);
        return format!("kmalloc slabs hold {held} on average. Add size classes with --add or --best.");
    };
    match held.checked_sub(best.slab_bytes_on_average).filter(|&saved| saved > 0) {
        Some(saved) => format!(
            "The layout {} would save {} of {} of kmalloc slabs on average ({}).",
            quoted(best),
            view.bytes(saved),
            view.bytes(held),
            share(saved, held)
        ),
        None => format!(
            "No simulated layout{serving} saves memory: kmalloc slabs hold {} on average; {} would need {}.",
            view.bytes(held),
            quoted(best),
            view.bytes(best.slab_bytes_on_average)
        ),
    }
}

fn quoted(layout: &LayoutRow) -> String {
    format!("\"{}\"", layout.name)
}

/// Layouts, the kernel's own first.
fn layouts(rows: &WhatIfTable) -> Table {
    let longest = rows.layouts.iter().map(|layout| layout.name.chars().count()).max().unwrap_or(0);
    let name = if longest > NAME_MAX { Column::name("size classes") } else { Column::whole("size classes") };
    let own = rows.layouts.first();
    let own = |index: usize| own.filter(|_| index > 0);
    let change = |(index, layout): &(usize, &LayoutRow), of: fn(&LayoutRow) -> u64| {
        own(*index).map(|own| of(layout).wrapping_sub(of(own)) as i64)
    };
    let bytes = |change: Option<i64>| change.map_or(Cell::Empty, Cell::BytesChange);
    let average = |row: &(usize, &LayoutRow)| change(row, |layout| layout.slab_bytes_on_average);
    let percent = |row: &(usize, &LayoutRow)| {
        own(row.0).zip(average(row)).map_or(Cell::Empty, |(own, change)| {
            Cell::Percent(100.0 * change as f64 / own.slab_bytes_on_average.max(1) as f64)
        })
    };
    Table::of_rows("", rows.layouts.iter().enumerate())
        .column(name, |(_, layout)| Cell::text(&layout.name))
        .column(Column::number("average slabs"), |(_, layout)| Cell::Bytes(layout.slab_bytes_on_average))
        .column(Column::number("change"), |row| bytes(average(row)))
        .column(Column::number("change %").leaves(4), percent)
        .column(Column::number("peak slabs").leaves(2), |(_, layout)| Cell::Bytes(layout.slab_bytes_max))
        .column(Column::number("peak change").leaves(5), |row| bytes(change(row, |l| l.slab_bytes_max)))
        .column(Column::number("slabs at end").leaves(6), |(_, layout)| Cell::Bytes(layout.slab_bytes_at_end))
        .column(Column::number("wasted").leaves(3), |(_, layout)| Cell::Bytes(layout.bytes_wasted))
        .column(Column::number("peak in objects").leaves(7), |(_, layout)| Cell::Bytes(layout.bytes_live_max))
        .column(Column::number("not served").leaves(1), |(_, layout)| Cell::Count(layout.requests_not_served))
        .explain("wasted", "wasted: bytes allocated beyond those requested, over all allocations.")
        .explain("not served", "not served: requests larger than every size class.")
        .into()
}

/// Requests that waste most.
fn requests(rows: &WhatIfTable, view: &View) -> Table {
    let shown = rows.worst_requests.iter().take(part(view.limit, REQUESTS));
    Table::of_rows("requests that waste most", shown)
        .of("request", "requests", rows.worst_requests.len())
        .column(Column::number("requested"), |request| Cell::Count(request.bytes_req))
        .column(Column::number("size class"), |request| Cell::Count(request.bytes_alloc))
        .column(Column::number("allocs"), |request| Cell::Count(request.alloc_events))
        .column(Column::number("average waste"), |request| Cell::Bytes(request.bytes_wasted_on_average))
        .into()
}

/// Some call sites by name.
fn named(sites: &[String], view: &View) -> Vec<String> {
    let most = if is_more(view.limit) { sites.len() } else { NAMED };
    let names = sites.iter().take(most).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = match sites.len().saturating_sub(most) as u64 {
        0 => String::new(),
        more => format!("; not shown: {} (-l 0)", counted(more, "call site", "call sites")),
    };
    if names.is_empty() { Vec::new() } else { vec![names + &more] }
}
