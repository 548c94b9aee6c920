//! Bytes of a growing file, or of a stream, as they arrive.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, Instant};

use kmt_common::interrupt::Interrupt;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::env::Env;
use crate::failure::{Failure, Result};

/// Interval of polling a file at its end, and of looking for SIGINT.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Time after SIGINT in which the writer of a stream, which got it too, may finish its file.
const GRACE: Duration = Duration::from_secs(2);

/// A file that may grow, or a stream.
pub struct Arrivals<'p> {
    path: &'p Path,
    input: ArrivalInput,
    /// `None` for bytes in memory, which never wait.
    interrupt: Option<Interrupt>,
    /// When SIGINT was first seen.
    interrupted: Option<Instant>,
}

enum ArrivalInput {
    Held(io::Cursor<Vec<u8>>),
    Stream(io::StdinLock<'static>),
    File(File),
}

/// Bytes, or why there are no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// This many bytes are in the buffer.
    Bytes(usize),
    /// The end of a stream, or of a finished file.
    End,
    /// SIGINT came before the end.
    Interrupted,
}

impl<'p> Arrivals<'p> {
    /// Opens a file; `-` is standard input.
    pub fn open(path: &'p Path, env: &Env) -> Result<Self> {
        let input = match env.files.get(path) {
            Some(bytes) => ArrivalInput::Held(io::Cursor::new(bytes)),
            None if path == Path::new("-") => ArrivalInput::Stream(io::stdin().lock()),
            None => ArrivalInput::File(File::open(path).map_err(|e| Failure::io("opening", path, &e))?),
        };
        let waits = !matches!(input, ArrivalInput::Held(_));
        let interrupt = waits.then(Interrupt::watch).transpose();
        let interrupt = interrupt.map_err(|e| Failure::os("cannot watch for signals", &e))?;
        Ok(Self { path, input, interrupt, interrupted: None })
    }

    /// Waits for bytes; `is_finished` is true if the file has its end.
    pub fn next(&mut self, buffer: &mut [u8], is_finished: bool) -> Result<Arrival> {
        loop {
            if self.interrupt.as_ref().is_some_and(Interrupt::is_received) {
                let since = *self.interrupted.get_or_insert_with(Instant::now);
                // A file is read as far as it is there; a stream for a moment longer.
                if matches!(self.input, ArrivalInput::Stream(_)) && since.elapsed() > GRACE {
                    return Ok(Arrival::Interrupted);
                }
            }
            if !self.is_ready()? {
                continue;
            }
            let read = match &mut self.input {
                ArrivalInput::Held(bytes) => bytes.read(buffer),
                ArrivalInput::Stream(stream) => stream.read(buffer),
                ArrivalInput::File(file) => file.read(buffer),
            };
            match read {
                Ok(0) if matches!(self.input, ArrivalInput::File(_)) && !is_finished => {
                    if self.interrupted.is_some() {
                        return Ok(Arrival::Interrupted);
                    }
                    std::thread::sleep(POLL_INTERVAL);
                }
                Ok(0) => return Ok(Arrival::End),
                Ok(len) => return Ok(Arrival::Bytes(len)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Failure::io("reading", self.path, &error)),
            }
        }
    }

    /// False if a stream had nothing for a moment.
    fn is_ready(&self) -> Result<bool> {
        let ArrivalInput::Stream(stream) = &self.input else { return Ok(true) };
        let wait = Timespec { tv_sec: 0, tv_nsec: POLL_INTERVAL.subsec_nanos().into() };
        let mut fds = [PollFd::new(stream, PollFlags::IN)];
        match poll(&mut fds, Some(&wait)) {
            Ok(ready) => Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(Failure::io("reading", self.path, &error.into())),
        }
    }
}
