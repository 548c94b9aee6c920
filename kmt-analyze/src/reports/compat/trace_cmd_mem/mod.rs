//! `summary --compat trace-cmd-mem`: the output of trace-cmd mem for the same events.

mod rows;
mod text;

#[cfg(test)]
pub use rows::TraceCmdMemRows;

use kmt_common::text::tame;

use super::{CompatOptions, others};
use crate::failure::{Outcome, Result};
use crate::render::out::{Schema, print, print_json};
use crate::trace::open::outcome;
use crate::trace::session::Session;

/// Prints the output of trace-cmd mem.
pub fn run(session: &Session<'_>, options: &CompatOptions, json: bool) -> Result<Outcome> {
    let others = others(session);
    let rows = rows::compute(session, &others, options.lines.unwrap_or(usize::MAX));
    if json {
        print_json(&session.env, Schema::first("trace-cmd-mem"), &rows)?;
    } else {
        print(&session.env, false, tame(&text::text(&rows.functions)).as_bytes())?;
    }
    Ok(outcome(session, &others.faults))
}
