//! `info`: contents, losses and integrity of the file.

mod chunks;
mod cpus;
mod losses;
mod rows;
mod text;

pub use rows::InfoRows;

use crate::failure::{Outcome, Result};
use crate::render::out::{Out, Schema, print_rows};
use crate::reports::common::trust::title;
use crate::trace::open::outcome;
use crate::trace::session::Session;

/// Prints the report.
pub fn run(session: &Session<'_>, as_json: bool) -> Result<Outcome> {
    let (rows, damages) = rows::of(session);
    if as_json {
        print_rows(Schema::first("info"), &rows)?;
    } else {
        let mut out = Out::stdout();
        out.page(&format!("{}\n\n{}", title(session), text::of(&rows, session.unit())))?;
        out.finish()?;
    }
    Ok(outcome(&session.path, session.trace, &damages, session.losses.any()))
}
