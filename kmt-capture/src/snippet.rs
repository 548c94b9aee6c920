//! `snippet`: a shell script for targets without kmt-capture.

use crate::failure::{Outcome, Result};
use crate::output::print;

/// The script, for BusyBox `sh`.
pub const SCRIPT: &str = include_str!("snippet.sh");

/// Prints the script.
pub fn snippet() -> Result<Outcome> {
    print(SCRIPT.as_bytes())
}
