//! Failures: one message that names file, fact and remedy; and exit codes.

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

use rustix::io::Errno;

use crate::text::line;

/// Remedies where too many files are open: by this process, in the whole system.
const REMEDIES: [(Errno, &str); 2] = [
    (Errno::MFILE, "raise the limit on open files of this shell, such as with `ulimit -n 1024`"),
    (
        Errno::NFILE,
        "close other programs, or raise the limit on open files of the system: sysctl fs.file-max",
    ),
];

/// Reason why the program fails.
#[derive(Debug)]
pub struct Failure {
    what: String,
    hint: Option<String>,
    /// The hint is the remedy whatever was tried.
    is_settled: bool,
    /// The command line is wrong.
    is_usage: bool,
}

/// A result whose error ends the program.
pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// A failure with the message `what`.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), hint: None, is_settled: false, is_usage: false }
    }

    /// A failure of `action` on a file.
    pub fn io(action: &str, path: &Path, error: &std::io::Error) -> Self {
        Self::os(format!("{action} {}", path.display()), error)
    }

    /// The failure `what` by an error of the system. If files are open up to a limit, that is the reason whatever was tried,
    /// and other hints are not given.
    pub fn os(what: impl fmt::Display, error: &std::io::Error) -> Self {
        let failure = Self::new(format!("{what}: {error}"));
        let errno = error.raw_os_error();
        let remedy = REMEDIES.iter().find(|(limit, _)| errno == Some(limit.raw_os_error()));
        match remedy {
            Some((_, remedy)) => Self { is_settled: true, hint: Some((*remedy).to_owned()), ..failure },
            None => failure,
        }
    }

    /// This failure, for a mistake in the command line that only shows when the command runs.
    pub fn usage(self) -> Self {
        Self { is_usage: true, ..self }
    }

    /// Exit code of a program that fails so.
    pub fn exit_code(&self) -> u8 {
        if self.is_usage { 2 } else { 1 }
    }

    /// The fact, without the remedy.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// The remedy.
    pub fn remedy(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// With what the user can do about it.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        if !self.is_settled {
            self.hint = Some(hint.into());
        }
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
