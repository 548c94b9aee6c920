//! Output of exports: buffered; ends when the reader is gone.
//!
//! Exports, pictures, the page and new traces write through it. Files are created by the rules of `kmt_common::output`:
//! 0600, never over a file unasked, and with their name only when they are complete. Writing ends without an error when
//! a pipe is closed.

use std::io::{self, Write};

use kmt_common::kmt_file::ChunkOutput;
use kmt_common::output::Output;
pub use kmt_common::output::Target;

use crate::env::Env;
use crate::failure::Result;

/// Approximate size of a write to the output, in bytes.
const BUFFER_LEN: usize = 1 << 18;

/// An export being written.
pub struct Export {
    sink: ExportSink,
    buffer: Vec<u8>,
    closed: bool,
}

enum ExportSink {
    Output(Output),
    /// Captured in memory instead of standard output.
    Held(Box<dyn Write>),
}

impl Export {
    /// Opens a text output.
    pub fn open(target: &Target, env: &Env) -> Result<Self> {
        Ok(Self::new(Self::held(target, env).map_or_else(|| target.open().map(ExportSink::Output), Ok)?))
    }

    fn held(target: &Target, env: &Env) -> Option<ExportSink> {
        let is_held = target.path == std::path::Path::new("-") && env.is_in_memory();
        is_held.then(|| ExportSink::Held(env.stdout()))
    }

    /// Opens a binary output, which must not be a terminal.
    pub fn open_binary(target: &Target, env: &Env) -> Result<Self> {
        Ok(Self::new(
            Self::held(target, env).map_or_else(|| target.open_binary().map(ExportSink::Output), Ok)?,
        ))
    }

    fn new(sink: ExportSink) -> Self {
        Self { sink, buffer: Vec::with_capacity(BUFFER_LEN), closed: false }
    }

    /// Appends bytes; false if the reader is gone.
    pub fn write(&mut self, bytes: &[u8]) -> Result<bool> {
        if !self.closed {
            self.buffer.extend_from_slice(bytes);
            if self.buffer.len() >= BUFFER_LEN {
                self.flush()?;
            }
        }
        Ok(!self.closed)
    }

    fn flush(&mut self) -> Result<()> {
        let written = match &mut self.sink {
            ExportSink::Output(output) => output.try_write(&self.buffer),
            ExportSink::Held(held) => held.write_all(&self.buffer),
        };
        match (written, &self.sink) {
            (Err(error), _) if error.kind() == io::ErrorKind::BrokenPipe => self.closed = true,
            (Err(error), ExportSink::Output(output)) => return Err(output.failed_to_write(&error)),
            _ => {}
        }
        self.buffer.clear();
        Ok(())
    }

    /// Lets every user read the file: [`Output::make_public`].
    pub fn make_public(&self) -> Result<()> {
        match &self.sink {
            ExportSink::Output(output) => output.make_public(),
            ExportSink::Held(_) => Ok(()),
        }
    }

    /// Completes the file.
    pub fn finish(mut self) -> Result<()> {
        if !self.closed {
            self.flush()?;
        }
        match self.sink {
            ExportSink::Output(output) => output.finish(),
            ExportSink::Held(_) => Ok(()),
        }
    }
}

impl ChunkOutput for Export {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.write(bytes).map(drop)
    }

    fn finish(self) -> Result<()> {
        self.finish()
    }
}
