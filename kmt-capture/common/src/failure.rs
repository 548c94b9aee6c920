//! Failures: one message that names file, fact and remedy; and exit codes.

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

use crate::text::line;

/// Reason why the program fails.
#[derive(Debug)]
pub struct Failure {
    what: String,
    hint: Option<String>,
}

/// A result whose error ends the program.
pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// A failure with the message `what`.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), hint: None }
    }

    /// A failure of `action` on a file.
    pub fn io(action: &str, path: &Path, error: &std::io::Error) -> Self {
        Self::new(format!("{action} {}: {error}", path.display()))
    }

    /// The fact, without the remedy.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// With what the user can do about it.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<kmt_format::Error> for Failure {
    fn from(error: kmt_format::Error) -> Self {
        Self::new(error.to_string())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Names of files and texts from them are among the words.
        write!(f, "{}", line(&self.what))?;
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {}", line(hint)),
            None => Ok(()),
        }
    }
}

/// Result of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All is well: exit code 0.
    Done,
    /// Done, but events were lost or the input was damaged: exit code 3.
    Incomplete,
    /// All is well, and the status of the recorded command is the exit code.
    Command(u8),
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done => Self::SUCCESS,
            Outcome::Incomplete => Self::from(3),
            Outcome::Command(status) => Self::from(status),
        }
    }
}
