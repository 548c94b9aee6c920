//! `summary --compat trace-cmd-mem`: the output of trace-cmd mem for the same events.

mod rows;
mod text;

#[cfg(test)]
pub use rows::TraceCmdMemRows;

use super::{CompatOptions, others};
use crate::failure::{Outcome, Result};
use crate::render::out::{Out, Schema, print_json};
use crate::trace::open::outcome;
use crate::trace::session::Session;

/// Prints the output of trace-cmd mem.
pub fn run(session: &Session<'_>, options: &CompatOptions, json: bool) -> Result<Outcome> {
    let others = others(session);
    let rows = rows::compute(session, &others, options.lines.unwrap_or(usize::MAX));
    if json {
        print_json(&session.env, Schema::first("trace-cmd-mem"), &rows)?;
    } else {
        let mut out = Out::stdout(&session.env);
        out.page(&text::text(&rows.functions))?;
        out.finish()?;
    }
    Ok(outcome(&session.path, session.trace, &others.damages, session.losses.any()))
}
