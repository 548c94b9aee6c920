//! `record --repeat`: recordings of one command after each other, each in a file of its own. They are one side of a
//! comparison: the noise of `kmt-analyze diff` then is that between runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kmt_common::early_end::is_ignored;
use kmt_common::output::Target;
use kmt_common::shell;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::console::Console;
use super::{RecordOptions, description, record};
use crate::failure::{Failure, Outcome, Result};
use crate::tracefs;

/// Records the command `times` times. The first failure ends it, and so does a signal that ends a recording.
pub fn repeat(options: &RecordOptions, times: u32) -> Result<Outcome> {
    tracefs::check_user(options.tracefs.as_deref())?;
    let given = options.output.clone();
    let force = options.force && given.is_some();
    let output = given.unwrap_or_else(|| PathBuf::from(description::own_default_name()));
    let paths = paths(&output, times)?;
    paths.iter().try_for_each(|path| check(path, force))?;
    let asked = asked()?;
    let (mut outcome, mut whole) = (Outcome::Done, Vec::new());
    for path in &paths {
        if asked.load(Ordering::Relaxed) {
            break;
        }
        let options = RecordOptions { output: Some(path.clone()), force, ..options.clone() };
        outcome = both(outcome, record(&options)?);
        // The last one may have ended before its command did.
        if !asked.load(Ordering::Relaxed) {
            whole.push(path.as_path());
        }
    }
    report(&mut Console::new(options.quiet, false), &whole, times);
    Ok(outcome)
}

/// `FILE-1.kmt`, `FILE-2.kmt` and so on.
fn paths(output: &Path, times: u32) -> Result<Vec<PathBuf>> {
    let stem = output.file_stem().filter(|_| output != Path::new("-"));
    let Some(stem) = stem else {
        return Err(Failure::new(format!("--repeat cannot write several files to {}", output.display()))
            .hint("give the name of a file with -o, to which numbers are added"));
    };
    let numbered = |number: u32| {
        let mut name = stem.to_owned();
        name.push(format!("-{number}"));
        if let Some(extension) = output.extension() {
            name.push(".");
            name.push(extension);
        }
        output.with_file_name(name)
    };
    Ok((1..=times).map(numbered).collect())
}

/// Fails where a recording could not be written, before the first one begins.
fn check(path: &Path, force: bool) -> Result<()> {
    Target { path: path.to_owned(), force }.check()?;
    match path.symlink_metadata() {
        Ok(found) if !found.is_file() => {
            Err(Failure::new(format!("{} is not a regular file", path.display()))
                .hint("--repeat writes files; give another name with -o"))
        }
        _ => Ok(()),
    }
}

/// Set by the signals that end a recording, also between two of them.
fn asked() -> Result<Arc<AtomicBool>> {
    let asked = Arc::new(AtomicBool::new(false));
    let signals =
        [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&signal| signal != SIGHUP || !is_ignored(signal));
    for signal in signals {
        signal_hook::flag::register(signal, Arc::clone(&asked))
            .map_err(|e| Failure::os("cannot watch for signals", &e))?;
    }
    Ok(asked)
}

/// Result of two recordings: lost events first, then the first status that is not 0.
fn both(first: Outcome, second: Outcome) -> Outcome {
    match (first, second) {
        (Outcome::Incomplete, _) | (_, Outcome::Incomplete) => Outcome::Incomplete,
        (Outcome::Command(status), _) if status != 0 => first,
        _ => second,
    }
}

/// Prints how many are complete, and the command that compares them.
fn report(console: &mut Console, whole: &[&Path], times: u32) {
    if whole.len() < times as usize {
        console.print(format_args!("stopped: {} of {times} recordings are complete", whole.len()));
    }
    if let Some((first, others)) = whole.split_first().filter(|(_, others)| !others.is_empty()) {
        let others: String =
            others.iter().map(|path| format!(" --repeat-before {}", shell::path(path))).collect();
        console.say(format_args!(
            "compare with OTHER.kmt: kmt-analyze diff{others} {} OTHER.kmt",
            shell::path(first)
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_numbered() {
        let names = |output: &str| {
            let paths = paths(Path::new(output), 2).unwrap();
            paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(names("dir/a.b.kmt"), ["dir/a.b-1.kmt", "dir/a.b-2.kmt"]);
        assert_eq!(names("trace"), ["trace-1", "trace-2"]);
        assert!(paths(Path::new("-"), 2).is_err() && paths(Path::new("/"), 2).is_err());
    }

    #[test]
    fn losses_count_before_the_status() {
        let command = Outcome::Command;
        assert_eq!(both(Outcome::Done, command(0)), command(0));
        assert_eq!(both(command(7), command(0)), command(7));
        assert_eq!(both(command(0), command(7)), command(7));
        assert_eq!(both(command(7), Outcome::Incomplete), Outcome::Incomplete);
        assert_eq!(both(Outcome::Incomplete, Outcome::Done), Outcome::Incomplete);
    }
}
