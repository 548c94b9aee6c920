//! A second process that restores tracefs when the recorder is killed.
//!
//! It is this program, started again: it sleeps in `read` on a pipe of which only the recorder has the other end, so that
//! it wakes however the recorder ends. A recorder that ends normally restores tracefs itself, and ends the guard.

use std::ffi::OsStr;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use super::dir::TraceDir;
use super::instance;
use super::owner::Owner;
use super::probe::remove_of as remove_probe_of;
use super::undo::put_back;

/// First argument that makes the program a guard; the second names the recorder.
pub const COMMAND: &str = "guard";
/// How long files of an instance may be open after its recorder is gone: a process that is killed closes its files one
/// after the other, and may have much memory to give back in between.
const PATIENCE: Duration = Duration::from_secs(30);

/// The guard of this recorder, as long as it is not needed. Dropped after all else was put back.
#[derive(Debug)]
pub struct Guard(Child);

impl Guard {
    /// Starts it; `None` where this program cannot be found again, such as without /proc.
    pub fn start() -> Option<Self> {
        Self::spawn(Command::new("/proc/self/exe"))
    }

    fn spawn(mut program: Command) -> Option<Self> {
        // A process group of its own: Ctrl-C is the recorder's.
        let child = program
            .arg0("kmt-capture")
            .args([COMMAND, &Owner::this().name()])
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        child.ok().map(Self)
    }

    /// Tells it which tracefs is recorded from.
    pub fn watch(&mut self, top: &TraceDir) {
        if let Some(pipe) = &mut self.0.stdin {
            // Without it, only settings outside the instance are put back.
            let _ = pipe.write_all(&[top.path().as_os_str().as_bytes(), b"\0"].concat());
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Is the guard of the recorder that `owner` names: returns when that is gone and tracefs is as it was.
pub fn run(owner: &OsStr) {
    let Some(owner) = owner.to_str().and_then(Owner::parse) else { return };
    // A service manager stops all processes of a service by SIGTERM: the recorder ends by it, and with it the guard.
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        let _ = signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)));
    }
    // It is needed most where memory runs out. Without CAP_SYS_RESOURCE it stays as it is.
    let _ = std::fs::write("/proc/self/oom_score_adj", "-1000");
    // Keeps no file system of the recorder's in use.
    let _ = std::env::set_current_dir("/");
    let mut recorder = std::io::stdin().lock();
    let top = path_from(&mut recorder).map(|path| TraceDir::at(std::ffi::OsString::from_vec(path)));
    while next(&mut recorder).is_some() {}
    if let Some(top) = &top {
        // Where the top level recorded, its settings are among what is put back below.
        instance::remove_of(top, owner, PATIENCE);
        remove_probe_of(top, owner);
    }
    put_back(Some(owner), top.as_ref());
}

/// Text up to the first zero; `None` if the recorder is gone before that.
fn path_from(pipe: &mut impl Read) -> Option<Vec<u8>> {
    let mut path = Vec::new();
    loop {
        match next(pipe)? {
            0 => return Some(path),
            byte => path.push(byte),
        }
    }
}

/// The next byte; `None` at the end.
fn next(pipe: &mut impl Read) -> Option<u8> {
    let mut byte = [0];
    loop {
        match pipe.read(&mut byte) {
            Ok(0) => return None,
            Ok(_) => return Some(byte[0]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}
