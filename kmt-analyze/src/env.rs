//! The world of a command: standard output, files, limits, progress. The program takes those of its process; `in_process`
//! has files and output in memory.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::limits::RunLimits;
use crate::source::SourceArgs;

/// Standard output, files, limits and progress of a command. Messages go to the standard error of the process (`tell!`).
#[derive(Debug, Clone, Default)]
pub struct Env {
    /// Files and output in memory, instead of those of the process.
    memory: Option<Arc<InMemory>>,
    /// Limits on the use of memory by a file.
    pub limits: RunLimits,
    /// Debug information.
    pub source: SourceArgs,
    /// Passes print their progress, if standard error is a terminal.
    pub shows_progress: bool,
}

/// Files by name, and the output.
#[derive(Debug, Default)]
pub struct InMemory {
    files: Vec<(String, Vec<u8>)>,
    written: Mutex<Vec<u8>>,
}

impl InMemory {
    /// Files by name; nothing is written yet.
    pub fn new(files: Vec<(String, Vec<u8>)>) -> Arc<Self> {
        Arc::new(Self { files, written: Mutex::default() })
    }

    /// Takes the output so far.
    pub fn take_written(&self) -> Vec<u8> {
        std::mem::take(&mut self.written.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Env {
    /// Files and output in memory.
    pub fn in_memory(memory: Arc<InMemory>) -> Self {
        Self { memory: Some(memory), ..Self::default() }
    }

    /// Streams and files of a program's process, whose passes print their progress.
    pub fn of_process() -> Self {
        Self { shows_progress: true, ..Self::default() }
    }

    /// The same with these limits.
    pub fn with_limits(self, limits: RunLimits) -> Self {
        Self { limits, ..self }
    }

    /// The same with this debug information.
    pub fn with_source(self, source: SourceArgs) -> Self {
        Self { source, ..self }
    }

    /// True if files and output are in memory.
    pub fn is_in_memory(&self) -> bool {
        self.memory.is_some()
    }

    /// Contents of a file in memory; `None`: it is not there, or files are those of the process.
    pub fn file(&self, path: &Path) -> Option<Vec<u8>> {
        let files = &self.memory.as_ref()?.files;
        files.iter().find(|(name, _)| Path::new(name) == path).map(|(_, bytes)| bytes.clone())
    }

    /// Standard output.
    pub fn stdout(&self) -> Box<dyn Write> {
        match &self.memory {
            Some(memory) => Box::new(Written(Arc::clone(memory))),
            None => Box::new(io::stdout()),
        }
    }

    /// True if standard output is a terminal.
    pub fn is_terminal(&self) -> bool {
        !self.is_in_memory() && io::stdout().is_terminal()
    }
}

/// Output in memory.
struct Written(Arc<InMemory>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.written.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
