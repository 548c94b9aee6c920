//! Folded stacks: `outermost;...;innermost NUMBER`.

use std::collections::BTreeMap;

use super::objects::{Resolver, lives};
use super::output::Export;
use super::points::{Points, frames};
use super::{Options, Weight};
use crate::failure::{Outcome, Result};
use crate::reports::common::basis::Input;
use crate::trace::open::outcome;
use crate::trace::session::Session;

/// Writes them. Objects without a stack have their cache and call site for one.
pub fn run(session: &Session<'_>, options: &Options) -> Result<Outcome> {
    let mut out = Export::open(&options.target)?;
    let is_live = options.weight == Weight::Live || options.selection.at.is_some();
    let rests_on = if is_live { Input::SlabLives } else { Input::SlabAllocs };
    let mut lives = lives(session, &options.selection, &options.target, rests_on)?;
    let names = Resolver::new(session, &lives.result);
    let (_, last) = options.selection.span(session);
    let points = Points::of(&mut lives, &names, last, false)?;
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for (place, point) in &points.points {
        // At one instant nothing is allocated.
        let weight = match options.weight {
            Weight::Alloc if options.selection.at.is_some() => point.bytes_live,
            Weight::Alloc => point.bytes_alloc,
            Weight::Live => point.bytes_live,
            Weight::Waste => point.bytes_alloc.saturating_sub(point.bytes_req),
            Weight::Count => point.allocs,
        };
        let mut path: Vec<String> =
            frames(place, &lives, &names).iter().rev().map(|&a| frame(&names.symbol(a))).collect();
        // The leaf says what was allocated.
        path.push(frame(&format!("[{}]", place.3)));
        *lines.entry(path.join(";")).or_default() += weight;
    }
    for (path, weight) in lines.iter().filter(|(_, weight)| **weight > 0) {
        if !out.write(format!("{path} {weight}\n").as_bytes())? {
            break;
        }
    }
    out.finish()?;
    Ok(outcome(&session.path, session.trace, &lives.result.damages, session.losses.any()))
}

/// A frame's name: functions without offsets, so that calls from one function fall together; no separators in it.
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
