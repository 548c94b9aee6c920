//! `verify`: damage of a file, chunk by chunk and event by event.

mod rows;
mod text;

#[cfg(test)]
pub use rows::VerifyRows;

use crate::failure::{Outcome, Result};
use crate::render::lossy_output::warn_of_losses;
use crate::render::out::{Schema, print_json};
use crate::render::text::escaped;
use crate::reports::document::print_screen;
use crate::reports::output::Output;
use crate::trace::session::Session;

/// Checks everything and prints the result.
pub fn run(session: &Session<'_>, bytes: &[u8], output: &Output) -> Result<Outcome> {
    let rows = rows::compute(session.trace, bytes, session.env.limits.file);
    if output.json {
        print_json(&session.env, Schema::first("verify"), &rows)?;
    } else {
        let file = escaped(session.path.as_os_str().as_encoded_bytes());
        print_screen(session, text::screen(&file, &rows.verify), &output.show)?;
        warn_of_losses(session);
    }
    // An unfinished file is sound as far as it goes, and may lack events.
    let is_whole = rows.verify.sound && rows.verify.finished;
    Ok(if is_whole { Outcome::Done } else { Outcome::Incomplete })
}
