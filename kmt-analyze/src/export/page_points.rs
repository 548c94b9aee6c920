//! Pages summed up by allocation stack, order and migrate type.

use std::collections::BTreeMap;

use kmt_common::tell;

use super::points::Point;
use crate::collect::{Collectors, PageGroups};
use crate::failure::{Failure, Result};
use crate::ledger::frames::NO_STACK;
use crate::ledger::page_totals::FrameTotals;
use crate::pass::selection::Selection;
use crate::pass::{self, Analysis, Request};
use crate::reports::common::basis::Input;
use crate::reports::common::page_sums::of_users;
use crate::reports::common::rows::RecordedSums;
use crate::reports::common::{Context, ReportContext};
use crate::trace::session::Session;

/// Pages of one stack and kind.
#[derive(Debug)]
pub struct PagePoint {
    /// Frames of the stack outside the tracer and the allocator, innermost first; empty without a stack.
    pub frames: Vec<u64>,
    /// `order 0, Movable`.
    pub kind: String,
    /// Sums: its objects are pages, all of their bytes are requested.
    pub point: Point,
}

/// Pages of a selection, and the pass over it.
pub struct PagePoints {
    /// Sums and tables.
    pub result: Analysis,
    /// Sums by stack and kind.
    pub points: Vec<PagePoint>,
    /// False where frees were not recorded: live pages are unknown.
    pub ends_known: bool,
}

/// Sums of a selection. Refuses if pages were not recorded.
pub fn compute(session: &Session<'_>, selection: &Selection) -> Result<PagePoints> {
    let mut collectors = Collectors::default();
    let groups = collectors.add(PageGroups);
    let result = pass::run(session, &Request::new(selection, &collectors));
    let context = ReportContext::new(&Context { session, selection, limit: 0 }, &result);
    let basis = context.basis();
    if let Some(reason) = basis.lacks(Input::Pages) {
        return Err(Failure::new(format!("{}: no export: {reason}", session.path.display())));
    }
    if result.get(groups).0.keys().all(|group| group.stack == NO_STACK) {
        tell!("note: pages have no stacks: record with --stack kmem:mm_page_alloc");
    }
    let symbols = session.symbolizer();
    let mut sums: BTreeMap<(u32, u8, i32), FrameTotals> = BTreeMap::new();
    for (group, totals) in result.get(groups).0.iter().filter(|(_, totals)| !totals.has_no_pages()) {
        if let Some(site) = result.interner.pages.get(group.site) {
            *sums.entry((group.stack, site.order, site.migratetype)).or_default() += totals;
        }
    }
    let point = |((stack, order, migratetype), totals): ((u32, u8, i32), FrameTotals)| {
        let addresses = result.interner.stacks.get(stack).map(Vec::as_slice).unwrap_or_default();
        PagePoint {
            frames: of_users(addresses, |address| symbols.shown(address)).collect(),
            kind: format!("order {order}, {}", result.migratetypes.name(migratetype)),
            point: point(&totals, result.page_size.0),
        }
    };
    let points = sums.into_iter().map(point).collect();
    let ends_known = RecordedSums::pages(basis).lives;
    Ok(PagePoints { points, ends_known, result })
}

fn point(totals: &FrameTotals, page_size: u64) -> Point {
    let bytes = |pages: u64| pages.saturating_mul(page_size);
    Point {
        allocs: totals.frames_alloc,
        bytes_alloc: bytes(totals.frames_alloc),
        bytes_req: bytes(totals.frames_alloc),
        live: totals.frames_live,
        bytes_live: bytes(totals.frames_live),
        lifetimes: 0,
    }
}
