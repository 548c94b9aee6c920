//! Reading one CPU's ring buffer, a sub-buffer at a time.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};

use kmt_format::kernel::{ByteOrder, HeaderPage};
use rustix::fs::OFlags;

use super::mapped::Mapped;
use crate::tracefs::TraceDir;

/// How sub-buffers come out of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The ring buffer mapped into our memory (6.10 and later).
    Mapped,
    /// `read`, which copies.
    Read,
}

/// The ring buffer of one CPU.
#[derive(Debug)]
pub struct Ring {
    /// CPU.
    pub cpu: u32,
    file: File,
    mapped: Option<Mapped>,
}

impl Ring {
    /// Opens it; `None` for a CPU that never was there.
    pub fn open(
        dir: &TraceDir,
        cpu: u32,
        header: &HeaderPage,
        order: ByteOrder,
        access: Access,
    ) -> io::Result<Self> {
        let name = format!("per_cpu/cpu{cpu}/trace_pipe_raw");
        let file = dir.open(&name, OFlags::RDONLY | OFlags::NONBLOCK)?;
        let mapped = match access {
            Access::Mapped => Mapped::new(&file, header, order),
            Access::Read => None,
        };
        Ok(Self { cpu, file, mapped })
    }

    /// Bytes of it in our memory.
    pub fn mapped_len(&self) -> usize {
        self.mapped.as_ref().map_or(0, Mapped::len)
    }

    /// How it is read.
    pub fn access(&self) -> Access {
        if self.mapped.is_some() { Access::Mapped } else { Access::Read }
    }

    /// The next sub-buffer, or as much of it as there is: `buffer` is one sub-buffer long. `None` if there is nothing.
    pub fn next<'b>(&'b mut self, buffer: &'b mut [u8]) -> io::Result<Option<&'b [u8]>> {
        if let Some(mapped) = &mut self.mapped {
            return mapped.next(&self.file, buffer);
        }
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
