//! Standard output: pages and JSON documents.

use std::io::{self, Write};

use kmt_common::text::json_safe;
use serde::Serialize;
use serde_json::Value;

use super::terminal::Pager;
use crate::env::Env;
use crate::failure::{Failure, Result};

/// Standard output, buffered; a reader that went away ends the output and is no failure.
pub struct Out {
    inner: io::BufWriter<Box<dyn Write>>,
    closed: bool,
}

impl Out {
    /// Standard output.
    pub fn stdout(env: &Env) -> Self {
        Self { inner: io::BufWriter::with_capacity(1 << 18, env.stdout()), closed: false }
    }

    /// Standard output through a pager, if it is a terminal.
    pub fn paged(env: &Env) -> Self {
        let inner: Box<dyn Write> = match Pager::start(env) {
            Some(pager) => Box::new(pager),
            None => env.stdout(),
        };
        Self { inner: io::BufWriter::with_capacity(1 << 18, inner), closed: false }
    }

    /// Writes; returns false once the reader is gone.
    pub fn write(&mut self, bytes: &[u8]) -> Result<bool> {
        if !self.closed {
            let written = self.inner.write_all(bytes);
            self.note(written)?;
        }
        Ok(!self.closed)
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

/// Prints all of a text, through a pager if that is wanted and standard output is a terminal.
pub fn print(env: &Env, is_paged: bool, text: &[u8]) -> Result<()> {
    let mut out = if is_paged { Out::paged(env) } else { Out::stdout(env) };
    out.write(text)?;
    out.finish()
}

/// Name and version of a document: the version rises when a key changes its meaning or goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Schema {
    /// Name of the report.
    pub report: &'static str,
    /// Version of its keys.
    pub version: u32,
}

impl Schema {
    /// The first version of a report's keys.
    pub const fn first(report: &'static str) -> Self {
        Self { report, version: 1 }
    }
}

/// A JSON document: its schema, then its own keys.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Document<D> {
    /// Name and version of the document.
    pub schema: Schema,
    /// Keys of the document itself.
    #[serde(flatten)]
    pub keys: D,
}

/// Prints a JSON document, which begins with its schema. No key may occur twice.
pub fn print_json(env: &Env, schema: Schema, keys: &impl Serialize) -> Result<()> {
    let mut out = Out::stdout(env);
    let text = serde_json::to_string_pretty(&Document { schema, keys }).map_err(|e| failed(&e))?;
    out.write(json_safe(&text).as_bytes())?;
    out.write(b"\n")?;
    out.finish()
}

/// Prints the JSON document of rows: at most `limit` of each list, if there is a limit. Of a key that a file has twice, the
/// last value is printed.
pub fn print_rows(env: &Env, schema: Schema, rows: &impl Serialize, limit: Option<usize>) -> Result<()> {
    print_json(env, schema, &limited(rows, limit.unwrap_or(usize::MAX))?)
}

/// A document with at most `limit` rows in each list. Lists in rows are whole, and so are those of `trace`.
pub fn limited(rows: &impl Serialize, limit: usize) -> Result<Value> {
    let mut document = serde_json::to_value(rows).map_err(|e| failed(&e))?;
    if let Value::Object(keys) = &mut document {
        let own = keys.iter_mut().filter(|(key, _)| *key != "trace");
        own.for_each(|(_, value)| _ = cut(value, limit));
    }
    Ok(document)
}

/// Cuts lists of rows to that many rows; returns true if there were more.
pub fn cut(value: &mut Value, rows_max: usize) -> bool {
    match value {
        Value::Object(keys) => {
            keys.iter_mut().fold(false, |is_cut, (_, value)| cut(value, rows_max) || is_cut)
        }
        Value::Array(rows) if rows.len() > rows_max && rows.iter().any(Value::is_object) => {
            rows.truncate(rows_max);
            true
        }
        _ => false,
    }
}

fn failed(error: &serde_json::Error) -> Failure {
    Failure::new(format!("making JSON: {error}"))
}
