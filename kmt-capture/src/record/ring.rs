//! Reading one CPU's ring buffer, a sub-buffer at a time.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::OFlags;

use crate::tracefs::TraceDir;

/// The ring buffer of one CPU.
#[derive(Debug)]
pub struct Ring {
    /// CPU.
    pub cpu: u32,
    file: File,
}

impl Ring {
    /// Opens it.
    pub fn open(dir: &TraceDir, cpu: u32) -> io::Result<Self> {
        let name = format!("per_cpu/cpu{cpu}/trace_pipe_raw");
        Ok(Self { cpu, file: dir.open(&name, OFlags::RDONLY | OFlags::NONBLOCK)? })
    }

    /// The next sub-buffer, or as much of it as there is: `buffer` is one sub-buffer long. `None` if there is nothing.
    pub fn next<'b>(&'b mut self, buffer: &'b mut [u8]) -> io::Result<Option<&'b [u8]>> {
        loop {
            match self.file.read(buffer) {
                // Not the end: there is none. A shorter read cannot be, since the kernel hands out whole sub-buffers.
                Ok(0) => return Ok(None),
                Ok(len) => return Ok(buffer.get(..len)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                // A CPU that never was there has no buffer yet (5.0 and later).
                Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NODEV.raw_os_error()) => {
                    return Ok(None);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
