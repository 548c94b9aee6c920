//! Opening the file: mapped where it is a regular file, read where it is not.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use kmt_format::read::Trace;
use kmt_format::{Fault, Limits};
use memmap2::{Mmap, MmapOptions};

use crate::failure::{Failure, Outcome, Result};

/// The bytes of a file.
#[derive(Debug)]
pub enum Bytes {
    /// Mapped: nothing is copied, and pages come in as they are used.
    Mapped(Mmap),
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

/// Opens `path` for reading; `-` is standard input.
pub fn bytes(path: &Path) -> Result<Bytes> {
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
    // SAFETY: the map is private and only read. Should another process change the file meanwhile, the bytes may
    // change under us; every access is a checked slice operation on plain integers, so that can make a checksum or
    // an index fail, not break memory safety. Should it shrink the file, the kernel ends us with SIGBUS, which the
    // manual states; files that grow or shrink are not to be mapped.
    let map = unsafe { MmapOptions::new().map_copy_read_only(&file) }
        .map_err(|e| Failure::io("mapping", path, &e))?;
    Ok(Bytes::Mapped(map))
}

/// Opens the trace in `bytes`.
pub fn trace<'d>(path: &Path, bytes: &'d [u8]) -> Result<Trace<'d>> {
    Trace::open(bytes, Limits::default()).map_err(|error| {
        let failure = Failure::new(format!("{}: {error}", path.display()));
        match error.fault() {
            Fault::Input if bytes.is_empty() => Failure::new(format!("{} is empty", path.display())),
            Fault::Input => failure.hint("kmt-capture convert makes .kmt files of saved ring buffers"),
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
        eprintln!("warning: {name}: {} ({} bytes cannot be used)", damage.error, damage.len);
    }
    if damages.len() > TOLD {
        eprintln!("warning: {name}: {} more damaged places", damages.len() - TOLD);
    }
    if !trace.is_finished() {
        eprintln!("warning: {name} has no end: its writer was interrupted, or the copy was cut");
    }
    let missing: u64 = trace.streams().values().fold(0, |sum, s| sum.saturating_add(s.events_missing));
    if missing > 0 {
        eprintln!("warning: {name}: {missing} events are missing with the chunks that held them");
    }
    let damaged = !damages.is_empty() || !trace.is_finished() || missing > 0;
    if damaged || lost { Outcome::Incomplete } else { Outcome::Done }
}
