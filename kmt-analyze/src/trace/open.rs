//! Opening the file: mapped where it is a regular file, read where it is not.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use kmt_common::mapping::Mapping;
use kmt_common::tell;
use kmt_format::Fault;
use kmt_format::read::Trace;

use crate::failure::{Failure, Outcome, Result};
use crate::limits;
use crate::stdio;

/// The bytes of a file.
#[derive(Debug)]
pub enum Bytes {
    /// Mapped: nothing is copied, and pages come in as they are used.
    Mapped(Mapping),
    /// Read into memory: pipes and empty files cannot be mapped.
    Read(Vec<u8>),
}

impl std::ops::Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Read(bytes) => bytes,
        }
    }
}

/// Files of this size are left alone.
const SMALL: usize = 96 << 20;
/// Of larger ones about so much stays mapped.
const MAPPED_KIB: u64 = 48 << 10;
/// How often that is looked at.
const PERIOD: Duration = Duration::from_millis(5);

impl Bytes {
    /// Runs `work`, and lets go of pages meanwhile: what is read once need not stay mapped, so that memory does not
    /// grow with the file. The kernel keeps them in its cache; a page that is wanted again is mapped again.
    pub fn without_growing<R>(&self, work: impl FnOnce() -> R) -> R {
        let Self::Mapped(map) = self else { return work() };
        if map.len() < SMALL {
            return work();
        }
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let keeper = scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    if mapped_kib().is_some_and(|kib| kib > MAPPED_KIB) {
                        // An old kernel may refuse; then the pages stay.
                        if map.release_pages().is_err() {
                            return;
                        }
                    }
                    thread::park_timeout(PERIOD);
                }
            });
            let _done = SetOnDrop(&done, keeper.thread().clone());
            work()
        })
    }
}

/// Ends the keeper also when the work panics.
struct SetOnDrop<'d>(&'d AtomicBool, thread::Thread);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        self.1.unpark();
    }
}

/// Pages of files that this process has mapped.
fn mapped_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("RssFile:"))?;
    line.trim().trim_end_matches("kB").trim().parse().ok()
}

/// Opens `path` for reading; `-` is standard input.
pub fn bytes(path: &Path) -> Result<Bytes> {
    if let Some(bytes) = stdio::file(path) {
        return Ok(Bytes::Read(bytes));
    }
    if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).map_err(|e| Failure::io("reading", path, &e))?;
        return Ok(Bytes::Read(bytes));
    }
    let mut file = File::open(path).map_err(|e| Failure::io("opening", path, &e))?;
    let metadata = file.metadata().map_err(|e| Failure::io("opening", path, &e))?;
    if metadata.is_dir() {
        return Err(Failure::new(format!("{} is a directory", path.display()))
            .hint("kmt-capture convert makes a .kmt file of saved ring buffers"));
    }
    if !metadata.is_file() || metadata.len() == 0 {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|e| Failure::io("reading", path, &e))?;
        return Ok(Bytes::Read(bytes));
    }
    Ok(Bytes::Mapped(Mapping::of(path, &file)?))
}

/// Opens the trace in `bytes`.
pub fn trace<'d>(path: &Path, bytes: &'d [u8]) -> Result<Trace<'d>> {
    Trace::builder().limits(limits::of_file()).open(bytes).map_err(|error| {
        let failure = Failure::new(format!("{}: {error}", path.display()));
        match error.fault() {
            Fault::Input if bytes.is_empty() => Failure::new(format!("{} is empty", path.display())),
            Fault::Input => failure.hint("kmt-capture convert makes .kmt files of saved ring buffers, trace.dat, perf.data, and text of ftrace, trace-cmd or perf script"),
            Fault::Limit => failure.hint(limits::REMEDY),
            _ => failure,
        }
    })
}

/// Tells damage on stderr; says whether the run is complete. `found` is what reading the events turned up.
pub fn outcome(path: &Path, trace: &Trace<'_>, found: &[kmt_format::read::Damage], lost: bool) -> Outcome {
    const TOLD: usize = 5;
    let name = path.display();
    let damages: Vec<_> = trace.damages().iter().chain(found).collect();
    for damage in damages.iter().take(TOLD) {
        tell!("warning: {name}: {} ({} bytes cannot be used)", damage.error, damage.len);
    }
    if damages.len() > TOLD {
        tell!("warning: {name}: {} more damaged places", damages.len() - TOLD);
    }
    if !trace.is_finished() {
        tell!("warning: {name} has no end: its writer was interrupted, or the copy was cut");
    }
    let missing: u64 = trace.streams().values().fold(0, |sum, s| sum.saturating_add(s.events_missing));
    if missing > 0 {
        tell!("warning: {name}: {missing} events are missing with the chunks that held them");
    }
    let damaged = !damages.is_empty() || !trace.is_finished() || missing > 0;
    if damaged || lost { Outcome::Incomplete } else { Outcome::Done }
}
