//! Children of the watch, one at a time: the recorder, which is this program again, then the command of `--exec` with its file.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::failure::{Failure, Result};

/// The running program, also after its file was replaced.
const PROGRAM: &str = "/proc/self/exe";

/// A child and the file that it is about.
#[derive(Debug)]
pub struct Job {
    /// The recording.
    pub file: PathBuf,
    /// True for the recorder, false for the command of `--exec`.
    pub is_recorder: bool,
    child: Child,
}

impl Job {
    /// Starts a recording.
    pub fn record(arguments: Vec<OsString>, file: PathBuf) -> Result<Self> {
        let child = Command::new(PROGRAM).args(arguments).stdin(Stdio::null()).spawn();
        let child = child.map_err(|e| Failure::os("starting the recorder", &e))?;
        Ok(Self { file, is_recorder: true, child })
    }

    /// Starts the user's command on a file.
    pub fn exec(command: &Path, file: PathBuf) -> Result<Self> {
        let child = Command::new(command).arg(&file).stdin(Stdio::null()).spawn();
        let child = child.map_err(|e| Failure::os(format!("starting {}", command.display()), &e))?;
        Ok(Self { file, is_recorder: false, child })
    }

    /// Exit code if it ended; 128 + N if signal N ended it.
    pub fn ended(&mut self) -> Option<i32> {
        use std::os::unix::process::ExitStatusExt;
        let status = self.child.try_wait().ok().flatten()?;
        status.code().or_else(|| status.signal().map(|signal| 128 + signal))
    }

    /// Ends it as Ctrl-C does, and waits: a recorder completes its file and restores tracefs.
    pub fn end(mut self) -> i32 {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // It may have ended meanwhile.
            let _ = kill_process(pid, Signal::INT);
        }
        self.child.wait().ok().and_then(|status| status.code()).unwrap_or(1)
    }
}
