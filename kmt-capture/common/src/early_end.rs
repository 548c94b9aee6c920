//! The end of the program by a signal: unfinished files are removed first.
//!
//! A thread waits for SIGINT, SIGTERM, SIGHUP, for the fault of a mapping, and for the end of memory. It removes what is unfinished, and then
//! ends the process: by the signal itself, so that the shell sees it, or with a message. The signal handlers themselves
//! only wake that thread, so nothing here has to be safe inside a handler. The handlers are installed with the first
//! unfinished file; programs that write none keep the default actions.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use rustix::fs::{AtFlags, Stat, statat, unlinkat};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

use crate::failure::{Failure, Result};
use crate::text::escaped;

/// A file that has no final name yet, or a directory made for one.
struct Entry {
    number: u64,
    dir: Arc<OwnedFd>,
    name: OsString,
    /// Device and inode; `None` for a directory, which is removed only if it is empty.
    file: Option<FileId>,
}

/// Device and inode of a file.
pub(crate) type FileId = (u64, u64);

/// Device and inode of a file's status.
pub(crate) fn file_id(stat: &Stat) -> FileId {
    // Their widths differ between architectures.
    #[allow(clippy::unnecessary_cast)]
    (stat.st_dev as u64, stat.st_ino as u64)
}

struct Entries {
    all: Vec<Entry>,
    next: u64,
}

static ENTRIES: Mutex<Entries> = Mutex::new(Entries { all: Vec::new(), next: 0 });

fn entries() -> MutexGuard<'static, Entries> {
    ENTRIES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Something that is removed when this is dropped, or when a signal ends the program before.
#[derive(Debug)]
pub(crate) struct Unfinished {
    number: u64,
}

impl Unfinished {
    /// Makes a file, or a directory, and watches over it: `name` in `dir`. Returns the result of `make` too; the
    /// identity of the file ensures that no other file of that name is removed. Signals wait meanwhile.
    pub fn make<T>(
        dir: &Arc<OwnedFd>,
        name: &OsString,
        make: impl FnOnce() -> Result<(T, Option<FileId>)>,
    ) -> Result<(T, Self)> {
        install_handlers().map_err(|e| Failure::os("cannot watch for signals", &e))?;
        let mut entries = entries();
        let (made, file) = make()?;
        let number = entries.next;
        entries.next += 1;
        entries.all.push(Entry { number, dir: dir.clone(), name: name.clone(), file });
        Ok((made, Self { number }))
    }

    /// Runs `work`, which gives the file its name; if that succeeds, it is finished. Signals wait meanwhile.
    pub fn finish_with(self, work: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let mut entries = entries();
        let done = work();
        if done.is_ok() {
            entries.all.retain(|entry| entry.number != self.number);
        }
        drop(entries);
        done
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let mut entries = entries();
        let position = entries.all.iter().position(|entry| entry.number == self.number);
        if let Some(entry) = position.map(|at| entries.all.swap_remove(at)) {
            entry.remove();
        }
    }
}

impl Entry {
    fn remove(&self) {
        let Some(file) = self.file else {
            // Directories with something in them stay.
            let _ = unlinkat(&self.dir, &self.name, AtFlags::REMOVEDIR);
            return;
        };
        let is_ours =
            statat(&self.dir, &self.name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|stat| file_id(&stat) == file);
        if is_ours {
            let _ = unlinkat(&self.dir, &self.name, AtFlags::empty());
        }
    }
}

/// Wakes the thread. The bytes in it carry no information.
static WAKER: OnceLock<std::result::Result<UnixStream, Option<i32>>> = OnceLock::new();

/// Finds the file of a mapping in which an access failed; the path is `None` if it is unknown.
pub(crate) type Faulted = fn() -> Option<Option<PathBuf>>;

static FAULTED: OnceLock<Faulted> = OnceLock::new();

/// Has the thread that ends the program call `faulted` each time that it wakes.
pub(crate) fn watch_faults(faulted: Faulted) {
    let _ = FAULTED.set(faulted);
}

/// Wakes the thread that ends the program; starts it at the first call.
pub(crate) fn waker() -> io::Result<&'static UnixStream> {
    let start = || {
        let (receiver, sender) = UnixStream::pair()?;
        thread::Builder::new().name("early end".into()).spawn(|| wait(receiver))?;
        Ok(sender)
    };
    WAKER
        .get_or_init(|| start().map_err(|error: io::Error| error.raw_os_error()))
        .as_ref()
        .map_err(|errno| errno.map_or(io::ErrorKind::Other.into(), io::Error::from_raw_os_error))
}

/// True if memory ran out.
static OUT_OF_MEMORY: AtomicBool = AtomicBool::new(false);

/// Has the thread remove unfinished files and end the process with code 1, if it is running; allocates nothing.
pub(crate) fn end_without_memory() -> bool {
    OUT_OF_MEMORY.store(true, Ordering::SeqCst);
    let Some(Ok(waker)) = WAKER.get() else { return false };
    rustix::io::write(waker, &[0]).is_ok()
}

static SIGNAL: OnceLock<Arc<AtomicUsize>> = OnceLock::new();

fn install_handlers() -> io::Result<()> {
    static INSTALLED: Mutex<bool> = Mutex::new(false);
    let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    if *installed {
        return Ok(());
    }
    let waker = waker()?;
    let received = SIGNAL.get_or_init(Arc::default);
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // Started with nohup or in the background: the signal stays ignored.
        if !is_ignored(signal) {
            flag::register_usize(signal, received.clone(), signal as usize)?;
            low_level::pipe::register(signal, waker.try_clone()?)?;
        }
    }
    *installed = true;
    Ok(())
}

fn wait(mut receiver: UnixStream) {
    let mut byte = [0];
    while receiver.read_exact(&mut byte).is_ok() {
        let signal = SIGNAL.get().map_or(0, |signal| signal.load(Ordering::SeqCst));
        let is_without_memory = OUT_OF_MEMORY.load(Ordering::SeqCst);
        let fault = if is_without_memory { None } else { FAULTED.get().and_then(|faulted| faulted()) };
        if fault.is_none() && signal == 0 && !is_without_memory {
            continue;
        }
        // Held to the end: nothing gets its name any more.
        let entries = entries();
        entries.all.iter().rev().for_each(Entry::remove);
        if is_without_memory {
            low_level::exit(1);
        }
        if let Some(path) = fault {
            report_fault(path.as_deref());
            low_level::exit(1);
        }
        let _ = low_level::emulate_default_handler(signal as i32);
    }
}

fn report_fault(path: Option<&Path>) {
    let program = std::env::args_os().next().unwrap_or_default();
    let program = Path::new(&program).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let name = path.map_or("the input".into(), |p| escaped(p.as_os_str().as_encoded_bytes()));
    let text = format!(
        "{program}: {name} became shorter while it was read, or its storage failed\n\
         hint: wait until the file is complete, then use it, or a copy of it\n"
    );
    // The thread that faulted may hold the lock of standard error.
    let _ = rustix::io::write(io::stderr(), text.as_bytes());
}

/// True if that signal is ignored: `SigIgn` of /proc/self/status.
pub fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask =
        status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
