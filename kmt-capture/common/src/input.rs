//! Bytes of an input file: mapped where it is a regular file, in memory where it is not.

use std::fs::File;
use std::ops::Deref;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::failure::{Failure, Result};
use crate::mapping::Mapping;
use crate::out_of_memory::spawn;

/// Bytes of an input.
#[derive(Debug)]
pub enum InputBytes {
    /// A mapped file: not copied, and its pages are loaded on first use.
    Mapped(Mapping),
    /// In memory: pipes and files of length 0 cannot be mapped; decompressed and converted bytes have no file.
    InMemory(Vec<u8>),
}

impl Deref for InputBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::InMemory(bytes) => bytes,
        }
    }
}

/// Files up to this size stay mapped as a whole.
const SMALL_BYTES: usize = 96 << 20;
/// Of larger files about this much stays mapped.
const MAPPED_KIB: u64 = 48 << 10;
/// Time between two checks of that.
const CHECK_PERIOD: Duration = Duration::from_millis(5);
/// CPU time of the process from one look to the next at least.
const WORKED: Duration = Duration::from_millis(2);

impl InputBytes {
    /// Maps an open file, or calls `read` where it cannot be mapped. Files of /proc and tracefs have length 0 too.
    pub fn of_file(path: &Path, file: File, read: impl FnOnce(File) -> Result<Vec<u8>>) -> Result<Self> {
        let metadata = file.metadata().map_err(|e| Failure::io("opening", path, &e))?;
        if !metadata.is_file() || metadata.len() == 0 {
            return read(file).map(Self::InMemory);
        }
        Mapping::of(path, &file).map(Self::Mapped)
    }

    /// Runs `work` and unmaps pages of the file meanwhile, so that memory does not grow with the file. The kernel keeps
    /// them in its page cache, and maps a page again when it is used again.
    pub fn without_growing<R>(&self, work: impl FnOnce() -> R) -> R {
        let Self::Mapped(map) = self else { return work() };
        if map.len() < SMALL_BYTES {
            return work();
        }
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let keeper = spawn(scope, || {
                let mut looked = Duration::ZERO;
                while !done.load(Ordering::Relaxed) {
                    // A program that waits maps nothing, and is not to wake for it more than it must.
                    let worked = process_time().saturating_sub(looked) >= WORKED;
                    if worked && mapped_kib().is_some_and(|kib| kib > MAPPED_KIB) {
                        // An old kernel may refuse; then the pages stay.
                        if map.release_pages().is_err() {
                            return;
                        }
                    }
                    if worked {
                        looked = process_time();
                    }
                    thread::park_timeout(CHECK_PERIOD);
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

/// Size of the file pages that this process has mapped.
/// CPU time of the process.
fn process_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

fn mapped_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("RssFile:"))?;
    line.trim().trim_end_matches("kB").trim().parse().ok()
}
