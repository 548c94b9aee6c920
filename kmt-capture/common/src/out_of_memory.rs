//! The end of the program when memory runs out: a message and exit code 1.
//!
//! Rust aborts where an allocation fails. The programs have [`Checked`] as their allocator: it is the system's, and where
//! that has no memory, it removes unfinished files, prints a message and ends the process. So an allocation whose failure
//! would be handled ends the program, too: kmt has none.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Duration;

use signal_hook::low_level;

use crate::early_end;

/// The system's allocator, which ends the program where memory runs out.
#[derive(Debug)]
pub struct Checked {
    /// Name of the program.
    pub program: &'static str,
    /// Options that reduce its memory.
    pub hint: &'static str,
}

// SAFETY: each call is passed to `System` unchanged, and its result is returned unchanged unless it is null; then the
// call does not return. `end` allocates nothing, so it does not call the allocator again.
unsafe impl GlobalAlloc for Checked {
    // SAFETY: the caller promises a layout of a size that is not 0.
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises about the layout are those of `System`.
        self.checked(unsafe { System.alloc(layout) }, layout.size())
    }

    // SAFETY: the caller promises a layout of a size that is not 0.
    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises about the layout are those of `System`.
        self.checked(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    // SAFETY: the caller promises a block of this allocator with this layout, and a new size that is not 0.
    #[inline]
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: all blocks are of `System`, so the caller's promises about this one and the layout are those of `System`.
        self.checked(unsafe { System.realloc(at, layout, size) }, size)
    }

    // SAFETY: the caller promises a block of this allocator with this layout, which is not used any more.
    #[inline]
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: all blocks are of `System`, so the caller's promises about this one are those of `System`.
        unsafe { System.dealloc(at, layout) }
    }
}

impl Checked {
    #[inline]
    fn checked(&self, block: *mut u8, size: usize) -> *mut u8 {
        if block.is_null() {
            self.end(size);
        }
        block
    }

    /// Ends the program. Locks may be held here, and nothing can be allocated: the message is made on the stack, and another
    /// thread removes the unfinished files, unless that does not succeed within a second.
    #[cold]
    fn end(&self, size: usize) -> ! {
        let mut text = [0u8; 512];
        let mut rest = &mut text[..];
        let Self { program, hint } = self;
        let _ = write!(rest, "{program}: out of memory: {size} bytes could not be allocated\nhint: {hint}\n");
        let left = rest.len();
        finish(text.get(..text.len() - left).unwrap_or_default())
    }
}

/// Removes unfinished files, prints a message, and ends the process with code 1.
fn finish(message: &[u8]) -> ! {
    static ENDING: AtomicBool = AtomicBool::new(false);
    if !ENDING.swap(true, Ordering::SeqCst) {
        let _ = rustix::io::write(io::stderr(), message);
        if early_end::end_without_memory() {
            // That thread ends the process.
            std::thread::sleep(Duration::from_secs(1));
        }
        low_level::exit(1);
    }
    // Memory ran out in several threads: the first of them ends the process.
    std::thread::sleep(Duration::from_secs(3));
    low_level::exit(1)
}

/// Starts a thread; where the system refuses one, the program ends with a message as where memory runs out.
pub fn spawn<'s, F, T>(scope: &'s Scope<'s, '_>, work: F) -> ScopedJoinHandle<'s, T>
where
    F: FnOnce() -> T + Send + 's,
    T: Send + 's,
{
    Builder::new().spawn_scoped(scope, work).unwrap_or_else(|_| {
        finish(
            b"out of memory: a thread could not be started\nhint: raise the limit of memory or of threads (ulimit -a)\n",
        )
    })
}
