//! The world of a command: standard output, files, limits, progress. The program takes those of its process; `in_process`
//! has files and output in memory.
//!
//! A command has one `Env` and hands it to all it calls; there are no globals. Tests and the fuzz targets run commands
//! in memory with it. Messages go to standard error by `tell!`, which is not part of it.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;

use crate::files::{Files, InMemory, Written};
use crate::limits::RunLimits;
use crate::source::SourceArgs;

/// Standard output, files, limits and progress of a command. Messages go to the standard error of the process (`tell!`).
#[derive(Debug, Clone, Default)]
pub struct Env {
    /// Files and output.
    pub files: Files,
    /// Limits on the use of memory by a file.
    pub limits: RunLimits,
    /// Debug information.
    pub source: SourceArgs,
    /// The files of the trace, if they are several of one recording.
    pub parts: Vec<PathBuf>,
    /// Passes print their progress, if standard error is a terminal.
    pub shows_progress: bool,
}

impl Env {
    /// Files and output in memory.
    pub fn in_memory(memory: Arc<InMemory>) -> Self {
        Self { files: Files::from(memory), ..Self::default() }
    }

    /// Streams and files of a program's process, whose passes print their progress.
    pub fn of_process() -> Self {
        Self { shows_progress: true, ..Self::default() }
    }

    /// This environment with these limits.
    pub fn with_limits(self, limits: RunLimits) -> Self {
        Self { limits, ..self }
    }

    /// This environment with this debug information.
    pub fn with_source(self, source: SourceArgs) -> Self {
        Self { source, ..self }
    }

    /// True if files and output are in memory.
    pub fn is_in_memory(&self) -> bool {
        self.files.memory().is_some()
    }

    /// Standard output.
    pub fn stdout(&self) -> Box<dyn Write> {
        match self.files.memory() {
            Some(memory) => Box::new(Written(Arc::clone(memory))),
            None => Box::new(io::stdout()),
        }
    }

    /// True if standard output is a terminal.
    pub fn is_terminal(&self) -> bool {
        !self.is_in_memory() && io::stdout().is_terminal()
    }
}
