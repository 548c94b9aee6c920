//! Files mapped for reading, also files that become shorter meanwhile.
//!
//! An access beyond the end of a mapped file raises SIGBUS. A handler checks that the address is in one of our
//! mappings and has the program end with a message and exit code 1, its unfinished files removed. Elsewhere SIGBUS has
//! its default action. What remains:
//!
//! - A file that is overwritten in place while it is read gives wrong bytes, which checksums find in most places.
//! - A system call that is given mapped bytes beyond the end fails with EFAULT; that is reported as it is.
//! - A file that shrinks within its last page reads as zeros there.

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use memmap2::{Mmap, MmapOptions, UncheckedAdvice};
use signal_hook::consts::SIGBUS;
use signal_hook::low_level;

use crate::early_end::{waker, watch_faults};
use crate::failure::{Failure, Result};
use crate::holes::blank_holes;

/// Files that can be mapped at the same time: more than the parts of any recording.
const MAPPED_MAX: usize = 1024;

/// Start and end of a mapping; 0 and 0 if there is none. Read by the signal handler.
struct Range {
    start: AtomicUsize,
    end: AtomicUsize,
}

static RANGES: [Range; MAPPED_MAX] =
    [const { Range { start: AtomicUsize::new(0), end: AtomicUsize::new(0) } }; MAPPED_MAX];
/// The file of each range.
static PATHS: Mutex<Vec<Option<PathBuf>>> = Mutex::new(Vec::new());
/// Number of the range in which an access failed, plus 1.
static FAULT: AtomicUsize = AtomicUsize::new(0);

/// A file mapped for reading.
#[derive(Debug)]
pub struct Mapping {
    map: Mmap,
    range: usize,
}

impl Mapping {
    /// Maps a regular file.
    pub fn of(path: &Path, file: &File) -> Result<Self> {
        let failed = |e: &io::Error| Failure::io("mapping", path, e);
        install_handler().map_err(|e| failed(&e))?;
        // SAFETY: the map is private and only read. Should another process change the file meanwhile, the bytes may
        // change under us; every access is a checked slice operation on plain integers, so that can make a check or an
        // index fail, not break memory safety. Should it shrink the file, the handler ends the program.
        let map = unsafe { MmapOptions::new().map_copy_read_only(file) }.map_err(|e| failed(&e))?;
        blank_holes(&map, file);
        let Some(range) = register(path, &map) else {
            return Err(Failure::new(format!(
                "{}: {MAPPED_MAX} files are already mapped, and no more can be",
                path.display()
            )));
        };
        Ok(Self { map, range })
    }

    /// Lets go of pages that were read; they come in again when they are used.
    pub fn release_pages(&self) -> io::Result<()> {
        // SAFETY: the map is private, read-only and of a file: the advice drops page table entries and nothing that was
        // written, and the next access maps the same bytes of the file again.
        unsafe { self.map.unchecked_advise(UncheckedAdvice::DontNeed) }
    }
}

impl Deref for Mapping {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.map
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let mut paths = PATHS.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(range), Some(path)) = (RANGES.get(self.range), paths.get_mut(self.range)) {
            range.end.store(0, Ordering::SeqCst);
            range.start.store(0, Ordering::SeqCst);
            *path = None;
        }
    }
}

/// Makes a mapping known to the handler; its number.
fn register(path: &Path, map: &[u8]) -> Option<usize> {
    let mut paths = PATHS.lock().unwrap_or_else(PoisonError::into_inner);
    let free = paths.iter().position(Option::is_none);
    let number = free.unwrap_or(paths.len());
    let range = RANGES.get(number)?;
    if free.is_none() {
        paths.push(None);
    }
    *paths.get_mut(number)? = Some(path.to_owned());
    let start = map.as_ptr() as usize;
    range.start.store(start, Ordering::SeqCst);
    // The kernel maps whole pages.
    range.end.store(start.saturating_add(map.len()), Ordering::SeqCst);
    Some(number)
}

/// The file in whose mapping an access failed, if one did.
fn faulted() -> Option<Option<PathBuf>> {
    let number = FAULT.load(Ordering::SeqCst).checked_sub(1)?;
    let paths = PATHS.lock().unwrap_or_else(PoisonError::into_inner);
    Some(paths.get(number).cloned().flatten())
}

fn install_handler() -> io::Result<()> {
    static INSTALLED: OnceLock<Option<i32>> = OnceLock::new();
    watch_faults(faulted);
    let waker = waker()?;
    let install = || {
        // SAFETY: the handler reads and writes atomics, reads the fault's address, writes a byte to a socket and waits,
        // or takes the default action. All of that may be done inside a signal handler; it does not allocate, lock or
        // panic. The address is read where the kernel sets it: for faults, whose code is positive.
        let registered = unsafe {
            signal_hook_registry::register_sigaction(SIGBUS, move |info| {
                let address = if info.si_code > 0 { info.si_addr() as usize } else { 0 };
                handle(address, waker);
            })
        };
        registered.err().map(|error| error.raw_os_error().unwrap_or(0))
    };
    match INSTALLED.get_or_init(install) {
        None => Ok(()),
        Some(error) => Err(io::Error::from_raw_os_error(*error)),
    }
}

/// Runs inside the signal handler: it must not return to the access that failed.
fn handle(address: usize, waker: &std::os::unix::net::UnixStream) {
    let has = |range: &Range| {
        (range.start.load(Ordering::SeqCst)..range.end.load(Ordering::SeqCst)).contains(&address)
    };
    let Some(number) = RANGES.iter().position(has) else {
        let _ = low_level::emulate_default_handler(SIGBUS);
        low_level::abort();
    };
    FAULT.store(number + 1, Ordering::SeqCst);
    let _ = rustix::io::write(waker, &[0]);
    loop {
        rustix::event::pause();
    }
}
