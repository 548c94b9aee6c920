//! Folded stacks: `outermost;...;innermost NUMBER`.

use std::collections::BTreeMap;

use super::objects::{Resolver, lives};
use super::output::Export;
use super::points::{Point, Points, frames};
use super::{ExportOptions, Weight, page_points};
use crate::failure::{Failure, Outcome, Result};
use crate::render::text::escaped;
use crate::reports::common::basis::Input;
use crate::trace::open::outcome;
use crate::trace::session::Session;

/// Writes the stacks. Objects without a stack get one from their cache and call site.
pub fn run(session: &Session<'_>, options: &ExportOptions) -> Result<Outcome> {
    if options.pages {
        return pages(session, options);
    }
    let mut out = Export::open(&options.target)?;
    let is_live = options.weight == Weight::Live || options.selection.at.is_some();
    let rests_on = if is_live { Input::SlabLives } else { Input::SlabAllocs };
    let mut lives = lives(session, &options.selection, &options.target, rests_on)?;
    let names = Resolver::new(session, &lives.result);
    let (_, last) = options.selection.span(session);
    let points = Points::of(&mut lives, &names, last, false)?;
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for (place, point) in &points.points {
        let mut path: Vec<String> =
            frames(place, &lives, &names).iter().rev().map(|&a| frame(&names.symbol(a))).collect();
        // The leaf is the cache.
        path.push(frame(&format!("[{}]", place.3)));
        *lines.entry(path.join(";")).or_default() += weight(point, options);
    }
    write(&mut out, &lines)?;
    out.finish()?;
    Ok(outcome(&session.path, session.trace, &lives.result.damages, session.losses.any()))
}

/// Writes pages by stack; the leaf is their order and migrate type.
fn pages(session: &Session<'_>, options: &ExportOptions) -> Result<Outcome> {
    if options.weight == Weight::Waste {
        return Err(Failure::new("pages are used as requested: --by waste is for slab objects"));
    }
    let mut out = Export::open(&options.target)?;
    let pages = page_points::of(session, &options.selection)?;
    let is_live = options.weight == Weight::Live || options.selection.at.is_some();
    if is_live && !pages.ends_known {
        return Err(Failure::new("page frees were not recorded, so live pages are unknown"));
    }
    let env = session.print_env();
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for page in &pages.points {
        let name = |&address: &u64| frame(&escaped(&env.symbol_with_offset(address)));
        let mut path: Vec<String> = page.frames.iter().rev().map(name).collect();
        if path.is_empty() {
            path.push("(no stack)".to_owned());
        }
        path.push(frame(&format!("[{}]", page.kind)));
        *lines.entry(path.join(";")).or_default() += weight(&page.point, options);
    }
    write(&mut out, &lines)?;
    out.finish()?;
    Ok(outcome(&session.path, session.trace, &pages.result.damages, session.losses.any()))
}

/// Weight of a stack. At an instant nothing is allocated: what is live counts.
fn weight(point: &Point, options: &ExportOptions) -> u64 {
    match options.weight {
        Weight::Alloc if options.selection.at.is_some() => point.bytes_live,
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
    let name = match name.split_once("+0x") {
        Some((function, rest)) => match rest.split_once(' ') {
            Some((_, module)) => format!("{function} {module}"),
            None => function.to_owned(),
        },
        None => name.to_owned(),
    };
    name.replace(';', ":").replace('\n', " ")
}
