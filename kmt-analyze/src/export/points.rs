//! Lives, or pages, summed up by allocation stack; lives without a stack by call site.
//!
//! pprof, DHAT and folded stacks are made of these points. Totals are those of `summary`.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use kmt_common::tell;

use super::tabular::object::{ObjectLives, Resolver, next};
use crate::collect::{Collectors, PageGroups};
use crate::failure::{Failure, Result};
use crate::ledger::frames::NO_STACK;
use crate::ledger::totals::FrameTotals;
use crate::pass::selection::Selection;
use crate::pass::{self, Analysis, Request};
use crate::reports::common::basis::Input;
use crate::reports::common::page_sums::of_users;
use crate::reports::common::rows::RecordedSums;
use crate::reports::common::{Context, ReportContext};
use crate::stream::Api;
use crate::trace::session::Session;

/// Key of a sum: number of the stack, call site, interface, cache.
pub type PointKey = (Option<u32>, u64, Api, String);

/// Allocations of one point in the window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Point {
    /// Allocations.
    pub allocs: u64,
    /// Bytes allocated.
    pub bytes_alloc: u64,
    /// Bytes requested.
    pub bytes_req: u64,
    /// Objects live at the end.
    pub live: u64,
    /// Bytes live at the end.
    pub bytes_live: u64,
    /// Sum of the known lifetimes within the window, in the clock's unit.
    pub lifetimes: u64,
}

/// A change at a point: time, index of the point, bytes.
pub type PointChange = (u64, u32, i64);

/// Sums of all points, and if requested each birth and end in time order.
#[derive(Debug, Default)]
pub struct Points {
    /// Sums by point, in the order of their first lives.
    pub points: IndexMap<PointKey, Point>,
    /// Births and ends in time order, ends first.
    pub changes: Vec<PointChange>,
    /// Lives of unknown length.
    pub unknown_age: u64,
}

impl Points {
    /// Sums of all lives born in the window, whose last time is `last`, and of older ones that are live at its end;
    /// changes are of the former only.
    pub fn of(
        lives: &mut ObjectLives,
        names: &Resolver<'_, '_>,
        last: u64,
        with_changes: bool,
    ) -> Result<Self> {
        let mut points: IndexMap<PointKey, Point> = IndexMap::new();
        let (mut changes, mut unknown_age) = (Vec::new(), 0);
        while let Some(object) = next(&mut lives.objects)? {
            let counts = object.is_born || object.is_live && !with_changes;
            let Some(site) = lives.result.interner.sites.get(object.site).filter(|_| counts) else {
                continue;
            };
            let key = (object.stack, site.call_site, site.api, names.cache(&object).to_owned());
            let entry = points.entry(key);
            let number = entry.index() as u32;
            let point = entry.or_default();
            let end = object.end.filter(|_| !object.is_live);
            if object.is_born {
                point.allocs += 1;
                point.bytes_alloc = point.bytes_alloc.saturating_add(site.bytes_alloc);
                point.bytes_req = point.bytes_req.saturating_add(site.bytes_req);
            }
            point.live += u64::from(object.is_live);
            point.bytes_live += if object.is_live { site.bytes_alloc } else { 0 };
            let lived = names.ages.length(object.born, end.unwrap_or(last));
            unknown_age += u64::from(lived.is_none());
            point.lifetimes = point.lifetimes.saturating_add(lived.unwrap_or(0));
            // A life that ends at the time of its birth is never live.
            if with_changes && end != Some(object.born) {
                let bytes = site.bytes_alloc.min(i64::MAX as u64) as i64;
                changes.push((object.born, number, bytes));
                changes.extend(end.map(|end| (end, number, -bytes)));
            }
        }
        changes.sort_unstable_by_key(|&(time, number, bytes)| (time, bytes, number));
        Ok(Self { points, changes, unknown_age })
    }
}

/// Frames of a point, innermost first, without those of the tracer and the allocator: the call site if there is no
/// stack.
pub fn frames(key: &PointKey, lives: &ObjectLives, names: &Resolver<'_, '_>) -> Vec<u64> {
    let stack = key.0.and_then(|number| lives.result.interner.stacks.get(number));
    let frames: Vec<u64> = stack.map_or(Vec::new(), |stack| of_users(stack, |a| names.symbol(a)).collect());
    if frames.is_empty() { vec![key.1] } else { frames }
}

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
pub fn page_points(session: &Session<'_>, selection: &Selection) -> Result<PagePoints> {
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
