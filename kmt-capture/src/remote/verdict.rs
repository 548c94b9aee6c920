//! Check of a recording that the target calls complete: nothing that comes is trusted.

use std::fs::File;
use std::path::Path;

use kmt_common::input::InputBytes;
use kmt_format::edit::{Rewrite, RewriteOptions};
use kmt_format::read::{Arrived, Incremental, Trace};
use kmt_format::write::Writer;
use kmt_format::{Compression, Error, Limits};

use crate::failure::{Failure, Result};
use crate::output::Output;

/// Longest chunk of a pipe that is kept for its check: recorders write shorter ones.
const CHUNK_LEN_MAX: u64 = 64 << 20;

/// State of a file.
#[derive(Debug)]
pub enum Verdict {
    /// Nothing came.
    Empty,
    /// Not a .kmt file, or one that must be refused.
    Unusable(Error),
    /// Damaged, or without its end.
    Damaged,
    /// Complete.
    Sound,
}

/// Check of the bytes of a pipe, which cannot be read again. A file is checked as a whole when it is complete.
#[derive(Debug)]
pub struct Passing {
    reader: Incremental,
    is_damaged: bool,
    refused: Option<Error>,
    is_empty: bool,
}

impl Passing {
    /// Nothing has come.
    pub fn new() -> Self {
        let mut limits = Limits::default();
        limits.chunk_len = CHUNK_LEN_MAX;
        Self { reader: Incremental::with_limits(limits), is_damaged: false, refused: None, is_empty: true }
    }

    /// Takes the next bytes.
    pub fn take(&mut self, bytes: &[u8]) {
        self.is_empty &= bytes.is_empty();
        if self.refused.is_none() {
            self.reader.push(bytes);
            self.read();
        }
    }

    fn read(&mut self) {
        loop {
            match self.reader.next() {
                Ok(Some(arrived)) => self.is_damaged |= matches!(arrived, Arrived::Damage(_)),
                Ok(None) => return,
                Err(error) => {
                    self.refused = Some(error);
                    return;
                }
            }
        }
    }

    /// State of all that came.
    fn verdict(mut self) -> Verdict {
        if self.is_empty {
            return Verdict::Empty;
        }
        if self.refused.is_none() {
            self.reader.end();
            self.read();
        }
        match self.refused {
            Some(error) => Verdict::Unusable(error),
            None if self.is_damaged || !self.reader.is_finished() => Verdict::Damaged,
            None => Verdict::Sound,
        }
    }
}

/// State of what is in an output, or has passed through it.
pub fn verdict(output: &Output, passing: Option<Passing>) -> Result<Verdict> {
    if let Some(passing) = passing {
        return Ok(passing.verdict());
    }
    let Some(bytes) = written(output)? else { return Ok(Verdict::Empty) };
    let rewrite = bytes.without_growing(|| {
        Rewrite::new(&bytes, Limits::default(), RewriteOptions::new()).map(|r| r.recovery().is_sound())
    });
    Ok(match rewrite {
        Err(error) => Verdict::Unusable(error),
        Ok(true) => Verdict::Sound,
        Ok(false) => Verdict::Damaged,
    })
}

/// Ends a file that was cut, in its place: what is after its last whole chunk goes, and an index follows. False if it is
/// damaged elsewhere, too.
pub fn end_in_place(output: &mut Output, compression: Compression) -> Result<bool> {
    let Some(bytes) = written(output)? else { return Ok(false) };
    let Ok(trace) = Trace::open(&bytes) else { return Ok(false) };
    let len = bytes.len() as u64;
    let tail = trace.damages().iter().find(|damage| damage.offset.saturating_add(damage.len) >= len);
    let keep = tail.map_or(len, |damage| damage.offset);
    let whole = usize::try_from(keep).ok().and_then(|keep| bytes.get(..keep)).unwrap_or_default();
    let Ok(writer) = Writer::append_to(whole, Limits::default(), compression) else { return Ok(false) };
    let end = writer.finish()?;
    drop(trace);
    drop(bytes);
    output.cut(keep)?;
    output.write(&end)?;
    Ok(true)
}

/// Bytes of an output that is a file; `None` if there are none.
fn written(output: &Output) -> Result<Option<InputBytes>> {
    let Some(path) = output.unfinished().filter(|_| !output.is_empty()) else { return Ok(None) };
    let failed = |e: std::io::Error| Failure::io("reading", path, &e);
    let file = File::open(path).map_err(failed)?;
    InputBytes::of_file(path, file, |_| Err(failed(std::io::ErrorKind::UnexpectedEof.into()))).map(Some)
}

/// The failure of a target that sent nothing usable.
pub fn unusable(error: &Error, part: Option<&Path>) -> Failure {
    let kept =
        part.map_or_else(String::new, |part| format!("; the bytes that came are in {}", part.display()));
    Failure::new(format!("the target sent no recording: {error}{kept}"))
        .hint("run the command by hand, and check that nothing on the way changes binary data")
}
