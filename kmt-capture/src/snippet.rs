//! `snippet`: a shell script for targets that have no kmt-capture.

use crate::failure::{Failure, Outcome, Result};

/// The script, for BusyBox `sh`.
pub const SCRIPT: &str = include_str!("snippet.sh");

/// Prints it.
pub fn snippet() -> Result<Outcome> {
    use std::io::Write;
    match std::io::stdout().write_all(SCRIPT.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("writing to standard output: {error}")))
        }
        _ => Ok(Outcome::Done),
    }
}
