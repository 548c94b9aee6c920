//! A recording by the program on the target, into the file.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Instant;

use kmt_common::shell::quoted;
use kmt_common::tell;

use super::shell::{ANSWER, Shell};
use super::stream::{Receiver, StreamBounds, StreamEnd, receive};
use super::verdict::{Verdict, end_in_place, unusable, verdict};
use super::{RemoteOptions, convert_received, cut_reason};
use crate::failure::{Failure, Outcome, Result};
use crate::output::Output;
use crate::record::line::PROGRAM;

/// Runs the recorder, and receives the file.
pub fn record(shell: &mut Shell, folder: &str, options: &RemoteOptions, path: &Path) -> Result<Outcome> {
    let output = match options.output {
        Some(_) => Output::record(path, options.force)?,
        None => Output::record_new(path)?,
    };
    let mut to = Receiver::new(output);
    shell.run(&recorder(folder, options))?;
    let bounds = StreamBounds { duration: options.record.duration, max_size: options.record.max_size };
    let stream_end = match receive(&mut shell.line, &mut to, bounds) {
        Ok(stream_end) => stream_end,
        Err(failure) => {
            shell.line.close();
            return save(to, options, path).and(Err(failure));
        }
    };
    let reason = match stream_end {
        StreamEnd::Complete | StreamEnd::Stopped => {
            // The target ends in the meantime.
            let status = status_of(shell);
            shell.line.messages.progress.show(b"checking the file");
            let complete = complete(to, options, path);
            shell.line.messages.progress.clear();
            let complete = complete?;
            return match (complete, status?) {
                (Outcome::Done, status) if stream_end == StreamEnd::Complete => Ok(status),
                _ => Ok(Outcome::Incomplete),
            };
        }
        StreamEnd::Full => to.space.reason().to_owned(),
        StreamEnd::Cut(reason) => reason,
        StreamEnd::Text => {
            let status = shell.answer("status", Some(Instant::now() + ANSWER));
            let status = status.unwrap_or_else(|_| "unknown".to_owned());
            let reason = format!("recording failed on the target (status {})", cut_reason(&status));
            if to.output.is_empty() {
                return Err(Failure::new(reason));
            }
            reason
        }
    };
    shell.line.close();
    tell!("warning: the recording is cut: {reason}");
    save(to, options, path)
}

/// Outcome of a recorder that has sent the whole file.
fn status_of(shell: &mut Shell) -> Result<Outcome> {
    // If only the last word of the shell is missing, what the recorder reported may be, too.
    let Ok(status) = shell.answer("status", Some(Instant::now() + ANSWER)) else {
        return Ok(Outcome::Incomplete);
    };
    Ok(match status.trim().parse() {
        Ok(0) => Outcome::Done,
        Ok(3) => Outcome::Incomplete,
        Ok(status) => Outcome::Command(status),
        Err(_) => return Err(shell.unexpected("a status")),
    })
}

/// Gives a file that the target calls complete its name, once it was checked.
fn complete(mut to: Receiver, options: &RemoteOptions, path: &Path) -> Result<Outcome> {
    match verdict(&to.output, to.passing.take())? {
        Verdict::Empty => {
            Err(Failure::new("the target sent no recording: it reports a complete file of 0 bytes"))
        }
        Verdict::Unusable(error) => Err(unusable(&error, to.output.unfinished())),
        Verdict::Sound => to.output.finish().map(|()| Outcome::Done),
        Verdict::Damaged => {
            tell!("warning: the recording arrived damaged or cut, and the target reports it as complete");
            // The reader of a pipe has all bytes already.
            if to.output.unfinished().is_none() { Ok(Outcome::Incomplete) } else { save(to, options, path) }
        }
    }
}

/// The command that records on the target.
fn recorder(folder: &str, options: &RemoteOptions) -> Vec<u8> {
    let timeout = format!("{}ms", options.line_timeout.as_millis());
    let mut words: Vec<Vec<u8>> =
        [&format!("{folder}/{PROGRAM}"), "record", "-o", "-", "--line", folder, "--line-timeout", &timeout]
            .map(|word| word.as_bytes().to_vec())
            .to_vec();
    if options.quiet {
        words.push(b"--quiet".to_vec());
    }
    let own = options.args.iter().take_while(|word| *word != "--");
    if !own.clone().any(|word| word.as_bytes().starts_with(b"--compress")) {
        words.extend([b"--compress".to_vec(), b"lz4".to_vec()]);
    }
    words.extend(options.args.iter().map(|word| word.as_bytes().to_vec()));
    let words: Vec<Vec<u8>> = words.iter().map(|word| quoted(word)).collect();
    // The status may not get out of a line that is silent: the shell ends all the same.
    [b"unwatch\n".as_slice(), &words.join(&b' '), b"; r=$?; watch; say status $r; unwatch; exit"].concat()
}

/// Makes a complete file of a recording that was cut. Fails if nothing usable came.
fn save(mut to: Receiver, options: &RemoteOptions, path: &Path) -> Result<Outcome> {
    let Some(part) = to.output.unfinished().map(Path::to_owned) else {
        // The reader of a pipe has all bytes already.
        return match verdict(&to.output, to.passing.take())? {
            Verdict::Empty => Err(nothing()),
            Verdict::Unusable(error) => Err(unusable(&error, None)),
            Verdict::Damaged | Verdict::Sound => Ok(Outcome::Incomplete),
        };
    };
    if to.output.is_empty() {
        return Err(nothing());
    }
    to.output.check_name()?;
    if !to.space.is_for_copy(to.output.len()) && end_in_place(&mut to.output, options.record.compression)? {
        return to.output.finish().map(|()| Outcome::Incomplete);
    }
    drop(to);
    match convert_received(&part, path, options) {
        Ok(_) => {
            let _ = std::fs::remove_file(&part);
            Ok(Outcome::Incomplete)
        }
        Err(failure) => {
            Err(Failure::new(format!("{failure}; the bytes that came are in {}", part.display())))
        }
    }
}

fn nothing() -> Failure {
    Failure::new("the target sent no recording")
}
