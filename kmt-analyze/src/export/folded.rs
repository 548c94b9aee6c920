//! Folded stacks: `outermost;...;innermost NUMBER`.
//!
//! Stacks are those of the points of `points`, with the cache, or the order and migrate type, as the innermost frame.
//! Functions have no offsets, so that calls from one function are one frame. Flame graphs of `chart` are drawn of the
//! same stacks.

use std::collections::BTreeMap;

use super::output::{Export, Target};
use super::points::{self, Point, Points, frames};
use super::sums::check_profile;
use super::tabular::object::{Resolver, lives};
use super::{ExportOptions, Weight, report_trust};
use crate::failure::{Failure, Outcome, Result};
use crate::pass::Analysis;
use crate::pass::selection::Selection;
use crate::reports::common::basis::Input;
use crate::trace::names::function_of;
use crate::trace::open::outcome;
use crate::trace::session::Session;

/// Weights by stack: frames from the outermost on, separated by `;`.
pub struct Stacks {
    /// Each stack once.
    pub lines: BTreeMap<String, u64>,
    /// The pass that they are of.
    pub result: Analysis,
}

/// Writes the stacks.
pub fn run(session: &Session<'_>, options: &ExportOptions) -> Result<Outcome> {
    let mut out = Export::open(&options.target(), &session.env)?;
    let Stacks { lines, result } =
        stacks(session, &options.selection, &options.target(), options.by, options.pages)?;
    report_trust(session, &options.selection, &result);
    write(&mut out, &lines)?;
    out.finish()?;
    Ok(outcome(session, &result.faults))
}

/// The stacks of slab objects, or of pages. At an instant nothing is allocated: what is live counts.
/// `target` has room for all lives beside it.
pub fn stacks(
    session: &Session<'_>,
    selection: &Selection,
    target: &Target,
    weight: Weight,
    pages: bool,
) -> Result<Stacks> {
    let weight = if weight == Weight::Alloc && selection.at.is_some() { Weight::Live } else { weight };
    check_profile(session, selection, weight == Weight::Live)?;
    if pages { of_pages(session, selection, weight) } else { of_objects(session, selection, target, weight) }
}

/// Objects without a stack get one from their cache and call site; the leaf is the cache.
fn of_objects(
    session: &Session<'_>,
    selection: &Selection,
    target: &Target,
    weight: Weight,
) -> Result<Stacks> {
    let is_live = weight == Weight::Live || selection.at.is_some();
    let rests_on = if is_live { Input::SlabLives } else { Input::SlabAllocs };
    let mut lives = lives(session, selection, target, rests_on)?;
    let names = Resolver::new(session, &lives.result);
    let (_, last) = selection.span(session);
    let points = Points::of(&mut lives, &names, last, false)?;
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for (key, point) in &points.points {
        let mut path: Vec<String> =
            frames(key, &lives, &names).iter().rev().map(|&a| frame(&names.symbol(a))).collect();
        path.push(frame(&format!("[{}]", key.3)));
        *lines.entry(path.join(";")).or_default() += weight_of(point, weight);
    }
    drop(names);
    Ok(Stacks { lines, result: lives.result })
}

/// The leaf is the order and migrate type.
fn of_pages(session: &Session<'_>, selection: &Selection, weight: Weight) -> Result<Stacks> {
    if weight == Weight::Waste {
        return Err(Failure::new("pages are used as requested: --by waste is for slab objects"));
    }
    let pages = points::page_points(session, selection)?;
    let is_live = weight == Weight::Live || selection.at.is_some();
    if is_live && !pages.ends_known {
        return Err(Failure::new("page frees were not recorded, so live pages are unknown"));
    }
    let symbols = session.symbolizer();
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for page in &pages.points {
        let name = |&address: &u64| frame(&symbols.shown(address));
        let mut path: Vec<String> = page.frames.iter().rev().map(name).collect();
        if path.is_empty() {
            path.push("(no stack)".to_owned());
        }
        path.push(frame(&format!("[{}]", page.kind)));
        *lines.entry(path.join(";")).or_default() += weight_of(&page.point, weight);
    }
    Ok(Stacks { lines, result: pages.result })
}

fn weight_of(point: &Point, weight: Weight) -> u64 {
    match weight {
        Weight::Alloc => point.bytes_alloc,
        Weight::Live => point.bytes_live,
        Weight::Waste => point.bytes_alloc.saturating_sub(point.bytes_req),
        Weight::Count => point.allocs,
    }
}

fn write(out: &mut Export, lines: &BTreeMap<String, u64>) -> Result<()> {
    for (path, weight) in lines.iter().filter(|(_, weight)| **weight > 0) {
        if !out.write(format!("{path} {weight}\n").as_bytes())? {
            break;
        }
    }
    Ok(())
}

/// Name of a frame: a function without offset, so that its calls are summed up; without separators.
fn frame(name: &str) -> String {
    function_of(name).replace(';', ":").replace('\n', " ")
}
