//! A recording by the program on the target, into the file.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Instant;

use kmt_common::shell::quoted;
use kmt_common::tell;

use super::shell::{ANSWER, Shell};
use super::stream::{Ended, StreamBounds, receive};
use super::{RemoteOptions, convert_received, cut_reason};
use crate::failure::{Failure, Outcome, Result};
use crate::output::Output;
use crate::record::line::PROGRAM;

/// Runs the recorder, and receives the file.
pub fn record(shell: &mut Shell, folder: &str, options: &RemoteOptions, path: &Path) -> Result<Outcome> {
    let mut output = Output::record(path, options.force)?;
    shell.run(&recorder(folder, options))?;
    let bounds = StreamBounds { duration: options.record.duration, max_size: options.record.max_size };
    let ended = match receive(&mut shell.line, &mut output, bounds) {
        Ok(ended) => ended,
        Err(failure) => {
            shell.line.close();
            return save(output, options, path).and(Err(failure));
        }
    };
    let reason = match ended {
        Ended::Complete => {
            output.finish()?;
            return status_of(shell);
        }
        Ended::Cut(reason) => reason,
        Ended::Text => {
            let status = shell.answer("status", Some(Instant::now() + ANSWER))?;
            let reason = format!("recording failed on the target (status {})", cut_reason(&status));
            if output.is_empty() {
                return Err(Failure::new(reason));
            }
            reason
        }
    };
    shell.line.close();
    tell!("warning: the recording is cut: {reason}");
    save(output, options, path)
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

/// Makes a complete file of a recording that was cut.
fn save(output: Output, options: &RemoteOptions, path: &Path) -> Result<Outcome> {
    let Some(part) = output.unfinished().map(Path::to_owned).filter(|_| !output.is_empty()) else {
        return Ok(Outcome::Incomplete);
    };
    drop(output);
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
