//! Live tests one at a time, of all programs: a machine has one tracefs, and each recording is in the others.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

use super::skip::{Lack, skip};

/// Place of live recordings.
pub const TRACING: &str = "/sys/kernel/tracing";

/// The right to record, until it is dropped. A test that fails meanwhile names the recordings of others that it met.
pub struct Alone {
    _lock: File,
    watch: Option<(Sender<()>, JoinHandle<BTreeSet<String>>)>,
}

impl Alone {
    /// Waits until no other live test records. `None`, counted as a skip, where nothing can be recorded.
    pub fn or_skip() -> Option<Self> {
        match Self::wait() {
            Ok(alone) => Some(alone),
            Err(reason) => {
                skip(Lack::Machine, reason);
                None
            }
        }
    }

    fn wait() -> Result<Self, &'static str> {
        const NO_RIGHT: &str = "no right to record: run the tests as root";
        let tracing = Path::new(TRACING);
        if !tracing.join("trace_clock").exists() {
            return Err("no tracefs at /sys/kernel/tracing: mount -t tracefs none /sys/kernel/tracing");
        }
        let lock = File::open(tracing.join("instances")).map_err(|_| NO_RIGHT)?;
        flock(&lock, FlockOperation::LockExclusive).unwrap();
        let probe = tracing.join(format!("instances/kmt-probe-{}", std::process::id()));
        fs::create_dir(&probe).map_err(|_| NO_RIGHT)?;
        fs::remove_dir(&probe).unwrap();
        let (stop, stopped) = mpsc::channel();
        let watch = thread::spawn(move || {
            let mut met = BTreeSet::new();
            loop {
                met.extend(recordings_of_others());
                match stopped.recv_timeout(Duration::from_millis(200)) {
                    Err(RecvTimeoutError::Timeout) => {}
                    _ => return met,
                }
            }
        });
        Ok(Self { _lock: lock, watch: Some((stop, watch)) })
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        let Some((stop, watch)) = self.watch.take() else { return };
        drop(stop);
        let met = watch.join().unwrap_or_default();
        if thread::panicking() && !met.is_empty() {
            let met: Vec<String> = met.into_iter().collect();
            eprintln!("DISTURBED by other recordings: {}. Stop them and run the test again.", met.join(", "));
        }
    }
}

/// Recordings that neither this process nor a child of it made.
pub fn recordings_of_others() -> Vec<String> {
    let top = Path::new(TRACING);
    let instances = fs::read_dir(top.join("instances")).into_iter().flatten().flatten();
    let others = instances
        .map(|e| e.path())
        .filter(|p| is_foreign(&p.file_name().unwrap_or_default().to_string_lossy()));
    let recording = others.filter(|p| is_recording(p)).map(|p| format!("instance {}", p.display()));
    let top_level = is_recording(top).then(|| format!("events of {TRACING} itself"));
    recording.chain(top_level).collect()
}

/// True if a buffer gets events. A new one is on from the start, before it has any: one of a recorder is off until all is set.
pub fn is_recording(dir: &Path) -> bool {
    let read = |name: &str| fs::read_to_string(dir.join(name)).unwrap_or_default();
    read("tracing_on").trim() == "1"
        && (read("events/enable").trim() != "0" || read("current_tracer").trim() != "nop")
}

/// True if an instance is of another process: names end in the number of the process that made them, or are
/// `kmt-PID-START`. Those of recorders that are gone do not count.
pub fn is_foreign(name: &str) -> bool {
    let recorder = name.strip_prefix("kmt-").and_then(|rest| rest.split('-').next());
    let number = |text: &str| text.parse::<u32>().ok();
    let maker = recorder.and_then(number).or_else(|| number(name.rsplit('-').next().unwrap_or_default()));
    let Some(mut process) = maker else { return true };
    while process != std::process::id() {
        let Some(parent) = parent_of(process) else { return false };
        if parent <= 1 {
            return true;
        }
        process = parent;
    }
    false
}

fn parent_of(process: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // Behind the name, which may hold anything: state, parent.
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}
