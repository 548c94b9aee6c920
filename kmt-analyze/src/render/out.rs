//! Standard output: pages and JSON documents.

use std::io::{self, Write};

use kmt_common::text::{json_safe, tame};
use serde::Serialize;

use crate::failure::{Failure, Result};
use crate::stdio;

/// Standard output, buffered; a reader that went away ends the output and is no failure.
pub struct Out {
    inner: io::BufWriter<Box<dyn Write>>,
    closed: bool,
}

impl Out {
    /// Standard output.
    pub fn stdout() -> Self {
        Self { inner: io::BufWriter::with_capacity(1 << 18, stdio::stdout()), closed: false }
    }

    /// Whether it is a terminal.
    pub fn is_terminal() -> bool {
        stdio::stdout_is_terminal()
    }

    /// Writes; returns false once the reader is gone.
    pub fn write(&mut self, bytes: &[u8]) -> Result<bool> {
        if !self.closed {
            let written = self.inner.write_all(bytes);
            self.note(written)?;
        }
        Ok(!self.closed)
    }

    /// Writes a page for people: nothing in it steers a terminal.
    pub fn page(&mut self, page: &str) -> Result<bool> {
        self.write(tame(page).as_bytes())
    }

    /// Writes what is buffered; returns false once the reader is gone.
    pub fn flush(&mut self) -> Result<bool> {
        if !self.closed {
            let flushed = self.inner.flush();
            self.note(flushed)?;
        }
        Ok(!self.closed)
    }

    /// Writes what is buffered.
    pub fn finish(mut self) -> Result<()> {
        self.flush().map(|_| ())
    }

    fn note(&mut self, result: io::Result<()>) -> Result<()> {
        match result {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(())
            }
            Err(error) => Err(Failure::new(format!("writing to standard output: {error}"))),
        }
    }
}

/// Prints a JSON document.
pub fn print_json(value: serde_json::Map<String, serde_json::Value>) -> Result<()> {
    let mut out = Out::stdout();
    let text = serde_json::to_string_pretty(&serde_json::Value::Object(value))
        .map_err(|e| Failure::new(format!("making JSON: {e}")))?;
    out.write(json_safe(&text).as_bytes())?;
    out.write(b"\n")?;
    out.finish()
}

/// Writes the JSON document of rows.
pub fn print_rows(rows: &impl Serialize) -> Result<()> {
    match serde_json::to_value(rows) {
        Ok(serde_json::Value::Object(document)) => print_json(document),
        Ok(_) => Err(Failure::new("making JSON: rows are not an object")),
        Err(error) => Err(Failure::new(format!("making JSON: {error}"))),
    }
}
