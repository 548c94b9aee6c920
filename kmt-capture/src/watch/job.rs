//! Children of the watch, one at a time: the recorder, which is this program again, then the command of `--exec` with its file.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::budget::{Budget, cpu_time};
use super::plan::Plan;
use crate::failure::{Failure, Result};
use crate::record::EndReason;

/// The running program, also after its file was replaced.
const PROGRAM: &str = "/proc/self/exe";

/// Time in which a child that is asked to end does so: a recorder completes its file and restores tracefs.
const END: Duration = Duration::from_secs(25);
/// Time of the command of `--exec`: the next recording waits for it.
pub const EXEC_MAX: Duration = Duration::from_secs(60);
/// Bytes of the recorder's reason that are read.
const REASON_LEN_MAX: usize = 64;

/// What a child does.
#[derive(Debug)]
pub enum Work {
    /// The recording of this plan.
    Record(Plan, Budget),
    /// The command of `--exec`, which is ended after this time.
    Exec(Duration),
}

/// A child and the file that it is about.
#[derive(Debug)]
pub struct Job {
    /// The recording.
    pub file: PathBuf,
    /// What it does.
    pub work: Work,
    /// True if a signal asked for the recording, and no growth.
    pub is_asked: bool,
    /// When it was started.
    pub start: Instant,
    /// Why it was stopped before its end.
    pub stopped: Option<Stopped>,
    child: Child,
}

/// Why a child was stopped.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Stopped {
    /// A recording had this share of one CPU, in percent.
    Budget(f64),
    /// A command ran for too long.
    Overdue,
}

impl Job {
    /// Starts a recording, which may have this share of one CPU, in percent. `samples` are stored in its file.
    pub fn record(
        plan: Plan,
        arguments: Vec<OsString>,
        file: PathBuf,
        budget: f64,
        samples: &str,
    ) -> Result<Self> {
        let mut command = Command::new(PROGRAM);
        command.args(arguments).arg("--end-reason").stdin(Stdio::null()).stdout(Stdio::piped());
        // Without them the recording is as good.
        if let Ok(samples) = in_memory(samples) {
            command.arg("--samples").stdin(samples);
        }
        let child = command.spawn();
        let child = child.map_err(|e| Failure::os("starting the recorder", &e))?;
        let (is_asked, start) = (plan.is_asked, Instant::now());
        let work = Work::Record(plan, Budget::new(budget, start));
        Ok(Self { file, work, is_asked, start, stopped: None, child })
    }

    /// Starts the user's command on the file of a recording, in a process group of its own.
    pub fn exec(command: &Path, file: &Path, is_asked: bool, most: Duration) -> Result<Self> {
        let child = Command::new(command).arg(file).stdin(Stdio::null()).process_group(0).spawn();
        let child = child.map_err(|e| Failure::os(format!("starting {}", command.display()), &e))?;
        let (file, start) = (file.to_owned(), Instant::now());
        Ok(Self { file, work: Work::Exec(most), is_asked, start, stopped: None, child })
    }

    fn pid(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }

    /// Exit code if it ended; 128 + N if signal N ended it.
    pub fn ended(&mut self) -> Option<i32> {
        let status = self.child.try_wait().ok().flatten()?;
        status.code().or_else(|| status.signal().map(|signal| 128 + signal))
    }

    /// Why a recording ended, as the recorder reports it. It has ended.
    pub fn reason(&mut self) -> Option<EndReason> {
        // Not to the end: a process that the recorder started may have the pipe, too.
        let mut text = [0; REASON_LEN_MAX];
        let len = self.child.stdout.take()?.read(&mut text).ok()?;
        EndReason::of_word(std::str::from_utf8(text.get(..len)?).ok()?.trim())
    }

    /// Stops a child that exceeds its limit: a recording ends with what it has, a command and its processes are killed.
    pub fn limit(&mut self) {
        let (pid, id, now) = (self.pid(), self.child.id(), Instant::now());
        let Some(pid) = pid.filter(|_| self.stopped.is_none()) else { return };
        // It may have ended meanwhile.
        match &mut self.work {
            Work::Exec(most) if now.saturating_duration_since(self.start) >= *most => {
                self.stopped = Some(Stopped::Overdue);
                let _ = kill_process_group(pid, Signal::KILL);
            }
            Work::Exec(_) => {}
            Work::Record(_, budget) => {
                if budget.left(now).is_zero() {
                    let share = cpu_time(id).and_then(|used| budget.exceeded(now, used));
                    self.stopped = share.map(Stopped::Budget);
                    if self.stopped.is_some() {
                        let _ = kill_process(pid, Signal::INT);
                    }
                }
            }
        }
    }

    /// Time until [`Job::limit`] has something to do; `None`: it has nothing any more.
    pub fn left(&self, now: Instant) -> Option<Duration> {
        let left = match &self.work {
            Work::Exec(most) => most.saturating_sub(now.saturating_duration_since(self.start)),
            Work::Record(_, budget) => budget.left(now),
        };
        self.stopped.is_none().then_some(left)
    }

    /// Ends it as Ctrl-C does, and waits for [`END`] at most. A command that has not ended then is killed with its processes.
    pub fn end(mut self) {
        let Some(pid) = self.pid() else { return };
        let is_exec = matches!(self.work, Work::Exec(_));
        // It may have ended meanwhile.
        let _ = if is_exec { kill_process_group(pid, Signal::INT) } else { kill_process(pid, Signal::INT) };
        let start = Instant::now();
        while self.ended().is_none() {
            if start.elapsed() >= END {
                if is_exec {
                    let _ = kill_process_group(pid, Signal::KILL);
                }
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A file in memory, without a name, that is read from its begin.
fn in_memory(text: &str) -> std::io::Result<File> {
    let mut file = File::from(memfd_create("kmt-samples", MemfdFlags::CLOEXEC)?);
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// Waits until something holds, for a few seconds.
    fn wait(mut holds: impl FnMut() -> bool) -> bool {
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(20) {
            if holds() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        false
    }

    #[test]
    fn a_command_that_hangs_is_killed_with_its_processes() {
        let folder = std::env::temp_dir().join(format!("kmt-job-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (script, pids) = (folder.join("hangs"), folder.join("leak-1.kmt"));
        fs::write(&script, "#!/bin/sh\nsleep 1000 &\necho $! > \"$1.new\"; mv \"$1.new\" \"$1\"\nwait\n")
            .unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let mut job = Job::exec(&script, &pids, false, Duration::from_millis(300)).unwrap();
        assert!(job.left(Instant::now()).is_some_and(|left| left <= Duration::from_millis(300)));
        assert!(wait(|| pids.exists()), "the command gets the name of the file");
        let pid: u32 = fs::read_to_string(&pids).unwrap().trim().parse().unwrap();
        let is_running = || {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.contains("(sleep)") && !stat.contains(") Z ")
        };
        assert!(is_running());
        assert!(wait(|| {
            job.limit();
            job.ended() == Some(128 + 9)
        }));
        assert_eq!((job.stopped, job.left(Instant::now())), (Some(Stopped::Overdue), None));
        assert!(wait(|| !is_running()), "its process ends, too");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_command_that_ends_is_not_stopped() {
        let mut job = Job::exec(Path::new("true"), Path::new("x.kmt"), true, EXEC_MAX).unwrap();
        assert!(wait(|| {
            job.limit();
            job.ended() == Some(0)
        }));
        assert_eq!((job.stopped, job.is_asked), (None, true));
    }
}
