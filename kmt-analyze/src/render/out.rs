//! Standard output: pages and JSON documents; and sentences about lost events, the same everywhere.
//!
//! Screens, pictures and JSON have these sentences inside. Dumps, exports and tables as CSV have no place for them, so they go to
//! standard error.

use std::io::{self, Write};

use kmt_common::tell;
use kmt_common::text::json_safe;
use serde::Serialize;
use serde_json::Value;

use super::look::Pager;
use crate::env::Env;
use crate::failure::{Failure, Result};
use crate::render::head::is_minimum;
use crate::render::words::{count, counted};
use crate::trace::folded;
use crate::trace::losses::Losses;
use crate::trace::session::Session;

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
pub fn print_json(env: &Env, schema: Schema, keys: &dyn erased_serde::Serialize) -> Result<()> {
    let mut out = Out::stdout(env);
    let text = serde_json::to_string_pretty(&Document { schema, keys }).map_err(|e| failed(&e))?;
    out.write(json_safe(&text).as_bytes())?;
    out.write(b"\n")?;
    out.finish()
}

/// Prints the JSON document of rows: at most `limit` of each list, if there is a limit. Of a key that a file has twice, the
/// last value is printed.
pub fn print_rows(
    env: &Env,
    schema: Schema,
    rows: &dyn erased_serde::Serialize,
    limit: Option<usize>,
) -> Result<()> {
    print_json(env, schema, &limited(rows, limit.unwrap_or(usize::MAX))?)
}

/// A document with at most `limit` rows in each list. Lists in rows are whole, and so are those of `trace`.
pub fn limited(rows: &dyn erased_serde::Serialize, limit: usize) -> Result<Value> {
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

/// Reports on standard error that events were lost.
pub fn warn_of_losses(session: &Session<'_>) {
    if let Some(sentence) = losses(session) {
        warn(session, &sentence);
    }
}

/// Reports on standard error, beside data, a sentence about how far the data can be trusted.
pub fn warn(session: &Session<'_>, sentence: &str) {
    tell!("warning: {}: {sentence}", session.path.display());
}

/// Lost events of a recording, and their effect; `None`: none were lost, as far as is known.
pub fn losses(session: &Session<'_>) -> Option<String> {
    const EFFECT: &str = "event counts are minimums; live figures are uncertain";
    let losses = &session.losses;
    if !losses.any() {
        return None;
    }
    let (lost, events) = (losses.lost_since_first(), folded::all_events(session.trace));
    Some(match lost {
        0 if !losses.has_gaps() => format!("{}: {EFFECT}.", uncounted(losses)),
        0 => format!("Parts of the recording are missing, not counted: {EFFECT}."),
        _ if losses.missing_in_input > 0 => {
            let missing = missing_in_input(losses, events);
            format!("{missing} Event counts are minimums; live figures are uncertain.")
        }
        _ => {
            let were = if lost == 1 { "was" } else { "were" };
            let part = part([lost, events], is_minimum(losses));
            format!("{part} {were} lost: {EFFECT}; `summary` has ranges.")
        }
    })
}

/// Events that the header of a converted text counts and the text does not have, beside `events` that it has.
pub fn missing_in_input(losses: &Losses, events: u64) -> String {
    let (lost, missing) = (losses.lost_since_first(), losses.missing_in_input);
    let are = if lost == 1 { "is" } else { "are" };
    // In a hole of the text they have a time.
    let [theirs, its] = match losses.silence {
        Some(_) => ["CPUs", "CPU"],
        None => ["CPUs and times", "CPU and time"],
    };
    let (of, is) = match missing {
        _ if missing < lost => (format!("{theirs} of {}", count(missing)), "are"),
        1 => (format!("its {its}"), if losses.silence.is_some() { "is" } else { "are" }),
        _ => (format!("their {theirs}"), "are"),
    };
    format!(
        "{} {are} missing: the converted text has not all events that its header counts; {of} {is} unknown.",
        part([lost, events], is_minimum(losses))
    )
}

/// `At least 12 events (3.4 % of all)`.
fn part([lost, events]: [u64; 2], is_minimum: bool) -> String {
    let least = if is_minimum { "At least " } else { "" };
    let share = 100.0 * lost as f64 / (lost as f64 + events as f64).max(1.0);
    format!("{least}{} ({share:.1} % of all)", counted(lost, "event", "events"))
}

/// Events that may be missing although no lost event is counted or marked.
fn uncounted(losses: &Losses) -> String {
    let none = match losses.has_all_stats() {
        true => "The kernel counted no lost events",
        false => "No lost events are marked",
    };
    let but = match losses.ended_early {
        true => "the recording was cut, and events that were still in the ring buffers are unknown",
        false if losses.lacks_sums => "sums of objects that died young are missing for a part of the time",
        false => "another process changed the recording",
    };
    format!("{none}, but {but}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_events_have_one_sentence() {
        let of = |missing, silence| {
            let mut losses = Losses::default();
            (losses.missing_in_input, losses.silence) = (missing, silence);
            losses
        };
        assert_eq!(
            missing_in_input(&of(12, None), 88),
            "12 events (12.0 % of all) are missing: the converted text has not all events that its header counts; their CPUs and times are unknown."
        );
        let one = missing_in_input(&of(1, None), 99);
        assert!(one.starts_with("1 event (1.0 % of all) is missing: "), "{one}");
        assert!(one.ends_with("; its CPU and time are unknown."), "{one}");
        let one = missing_in_input(&of(1, Some((3, 9))), 99);
        assert!(one.ends_with("; its CPU is unknown."), "{one}");
        let several = missing_in_input(&of(3_000, Some((3, 9))), 99);
        assert!(several.ends_with("; their CPUs are unknown."), "{several}");
    }
}
