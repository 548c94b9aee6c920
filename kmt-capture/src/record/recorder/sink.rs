//! Output of a recording: a file, or a line to another machine.

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use kmt_common::kmt_file::ChunkOutput;

use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::record::RecordOptions;
use crate::record::command::Signals;
use crate::record::line::{self, Line};

/// Where the output goes that has no file yet: nothing is written to it.
const NOWHERE: &str = "/dev/null";

/// The output, and the signals that end waiting for a reader that does not read.
pub(in crate::record) struct Sink {
    pub out: Output,
    pub signals: Signals,
    /// The file, where it is created when its content is there: [`Sink::begin`].
    later: Option<PathBuf>,
    /// True if the output is a line, on which frames are sent.
    is_line: bool,
    /// True if the user was warned that the output is not being read.
    is_warned: bool,
}

impl Sink {
    /// Opens the output, and takes the signals over that end a recording.
    pub fn open(path: &Path, options: &RecordOptions) -> Result<Self> {
        // Opening a pipe without a reader blocks: until it is open, signals end the process.
        let is_ring = options.black_box.is_some();
        let early = if is_pipe(path) { None } else { Some(Signals::new(is_ring)?) };
        // A disk that is full or read-only while a ring waits again and again may have room when a condition holds.
        let is_later = options.black_box.as_ref().is_some_and(|black_box| black_box.rearm);
        let out = match options.output {
            _ if is_later => Output::record(Path::new(NOWHERE), true)?,
            Some(_) => Output::record(path, options.force)?,
            None => Output::record_new(path)?,
        };
        let line = options.line.as_ref().map(Line::new);
        let signals = early.map_or_else(|| Signals::new(is_ring), Ok)?.with_line(line);
        let later = is_later.then(|| path.to_owned());
        Ok(Self { out, signals, later, is_line: options.line.is_some(), is_warned: false })
    }

    /// Creates the file, if that was left until now; true if so.
    pub fn begin(&mut self) -> Result<bool> {
        let Some(path) = self.later.take() else { return Ok(false) };
        self.out = Output::record(&path, false)?;
        Ok(true)
    }

    /// Fails if the output is a line that is silent or closed.
    pub fn check_line(&mut self) -> Result<()> {
        match self.is_line && self.signals.asked() > 1 {
            true => Err(Failure::new("the connection is silent or closed")),
            false => Ok(()),
        }
    }

    /// Sends a frame if the output is a line. Other outputs get the bytes of the file alone.
    pub fn frame(&mut self, kind: u8, bytes: &[u8]) -> Result<()> {
        match (self.is_line, kind) {
            (true, _) => {
                self.write_unframed(&line::header(kind, bytes.len()))?;
                self.write_unframed(bytes)
            }
            (false, line::DATA) => self.write_unframed(bytes),
            (false, _) => Ok(()),
        }
    }

    fn write_unframed(&mut self, bytes: &[u8]) -> Result<()> {
        let Self { out, signals, is_warned, .. } = self;
        out.write_unless(bytes, &mut || {
            if signals.asked() == 1 && !std::mem::replace(is_warned, true) {
                kmt_common::message!(
                    "the output is not being read; Ctrl-C again to give up the rest of the recording"
                );
            }
            signals.asked() > 1
        })
    }
}

impl ChunkOutput for Sink {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.frame(line::DATA, bytes)
    }

    fn finish(mut self) -> Result<()> {
        self.frame(line::END, &[])?;
        self.out.finish()
    }
}

fn is_pipe(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo())
}
