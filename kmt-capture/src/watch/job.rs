//! Children of the watch, one at a time: the recorder, which is this program again, then the command of `--exec` with its file.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::plan::Plan;
use crate::failure::{Failure, Result};

/// The running program, also after its file was replaced.
const PROGRAM: &str = "/proc/self/exe";

/// Time in which a child that is asked to end does so: a recorder completes its file and restores tracefs.
const END: Duration = Duration::from_secs(25);

/// A child and the file that it is about.
#[derive(Debug)]
pub struct Job {
    /// The recording.
    pub file: PathBuf,
    /// The recording that it makes; `None` for the command of `--exec`.
    pub plan: Option<Plan>,
    /// True if a signal asked for the recording, and no growth.
    pub is_asked: bool,
    /// When it was started.
    pub start: Instant,
    child: Child,
}

impl Job {
    /// Starts a recording.
    pub fn record(plan: Plan, arguments: Vec<OsString>, file: PathBuf) -> Result<Self> {
        let child = Command::new(PROGRAM).args(arguments).stdin(Stdio::null()).spawn();
        let child = child.map_err(|e| Failure::os("starting the recorder", &e))?;
        let is_asked = plan.is_asked;
        Ok(Self { file, plan: Some(plan), is_asked, start: Instant::now(), child })
    }

    /// Starts the user's command on a file.
    pub fn exec(command: &Path, recording: &Self) -> Result<Self> {
        let (file, is_asked) = (recording.file.clone(), recording.is_asked);
        let child = Command::new(command).arg(&file).stdin(Stdio::null()).spawn();
        let child = child.map_err(|e| Failure::os(format!("starting {}", command.display()), &e))?;
        Ok(Self { file, plan: None, is_asked, start: Instant::now(), child })
    }

    /// Exit code if it ended; 128 + N if signal N ended it.
    pub fn ended(&mut self) -> Option<i32> {
        use std::os::unix::process::ExitStatusExt;
        let status = self.child.try_wait().ok().flatten()?;
        status.code().or_else(|| status.signal().map(|signal| 128 + signal))
    }

    /// Ends it as Ctrl-C does, and waits for [`END`] at most.
    pub fn end(mut self) {
        let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) else { return };
        // It may have ended meanwhile.
        let _ = kill_process(pid, Signal::INT);
        let start = Instant::now();
        while self.ended().is_none() && start.elapsed() < END {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
