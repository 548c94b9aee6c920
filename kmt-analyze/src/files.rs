//! Files of a command: those of its process or, for tests, files and output in memory.
//!
//! A command opens its inputs by `trace::open`, which looks here first. Tests give files by name, and read the output,
//! without a file system; the program has none in memory.

use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

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

/// Files of the process, or in memory.
#[derive(Debug, Clone, Default)]
pub struct Files(Option<Arc<InMemory>>);

impl From<Arc<InMemory>> for Files {
    fn from(memory: Arc<InMemory>) -> Self {
        Self(Some(memory))
    }
}

impl Files {
    /// Files and output in memory; `None`: they are those of the process.
    pub fn memory(&self) -> Option<&Arc<InMemory>> {
        self.0.as_ref()
    }

    /// Contents of a file in memory; `None`: it is not there, or files are those of the process.
    pub fn get(&self, path: &Path) -> Option<Vec<u8>> {
        let files = &self.0.as_ref()?.files;
        files.iter().find(|(name, _)| Path::new(name) == path).map(|(_, bytes)| bytes.clone())
    }
}

/// Output in memory.
pub struct Written(pub Arc<InMemory>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.written.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
