//! `record --ring --rearm`: waits again after each file. Files are numbered, and the oldest are removed.
//!
//! After the first wait has begun, only a signal or `--duration` ends the recorder: a disk that is full now may have room at the
//! next condition, and the kernel may have memory for the ring buffers again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kmt_common::early_end::is_ignored;
use kmt_common::output::Target;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};

use super::black_box::BlackBoxOptions;
use super::console::Console;
use super::run::{Ended, once};
use super::{RecordOptions, description};
use crate::failure::{Failure, Outcome, Result};
use crate::tracefs;

/// Time until a wait is tried again that could not begin: the first, and the longest. Each is twice as long as the one before.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// How often signals are looked at meanwhile.
const LOOK: Duration = Duration::from_millis(100);

/// Waits and writes a file, again and again, until a signal, the end of `--duration`, or a failure before the first wait.
pub fn rearm(options: &RecordOptions, black_box: &BlackBoxOptions) -> Result<Outcome> {
    tracefs::check_user(options.tracefs.as_deref())?;
    let output = options.output.clone().unwrap_or_else(|| PathBuf::from(description::own_default_name()));
    let series = Series::new(&output)?;
    let asked = asked()?;
    let start = Instant::now();
    let mut console = Console::new(options.quiet, false);
    let mut outcome = Outcome::Done;
    let mut is_again = false;
    let mut pause = PAUSE.0;
    // Files are created when their content is there: what is wrong with the name is reported now.
    Target { path: series.next()?, force: false }.check()?;
    while !asked.load(Ordering::Relaxed) {
        let left = options.duration.map(|duration| duration.saturating_sub(start.elapsed()));
        if is_again && left.is_some_and(|left| left.is_zero()) {
            break;
        }
        let ended = series.next().and_then(|path| {
            once(&RecordOptions {
                output: Some(path),
                force: false,
                duration: left,
                black_box: Some(BlackBoxOptions { is_again, ..black_box.clone() }),
                ..options.clone()
            })
        });
        let Ended { outcome: one, is_by_condition, .. } = match ended {
            Err(failure) if is_again => {
                console.print(format_args!("warning: trying again in {} s: {failure}", pause.as_secs()));
                outcome = Outcome::Incomplete;
                sleep(pause.min(left.unwrap_or(pause)), &asked);
                pause = pause.saturating_mul(2).min(PAUSE.1);
                continue;
            }
            ended => ended?,
        };
        pause = PAUSE.0;
        if one == Outcome::Incomplete {
            outcome = one;
        }
        if !is_by_condition {
            break;
        }
        is_again = true;
        match series.remove_oldest(black_box.max_files) {
            Ok(removed) => removed.iter().for_each(|path| {
                console.say(format_args!("removed {}: --max-files", path.display()));
            }),
            Err(failure) => {
                console.print(format_args!("warning: more files than --max-files are kept: {failure}"));
                outcome = Outcome::Incomplete;
            }
        }
    }
    Ok(outcome)
}

/// Sleeps, but not longer than until a signal asks for the end.
fn sleep(time: Duration, asked: &AtomicBool) {
    let until = Instant::now() + time;
    while !asked.load(Ordering::Relaxed) && Instant::now() < until {
        std::thread::sleep(LOOK.min(until.saturating_duration_since(Instant::now())));
    }
}

/// What the name of an unfinished file ends with ([`Target::record`]).
const PART: &str = ".part";

/// Files `STEM-N.EXTENSION` in a folder.
struct Series {
    /// The name that was given, to which numbers are added.
    output: PathBuf,
    folder: PathBuf,
    stem: String,
    extension: String,
}

impl Series {
    fn new(output: &Path) -> Result<Self> {
        let stem = output.file_stem().filter(|_| output != Path::new("-")).and_then(|stem| stem.to_str());
        let Some(stem) = stem else {
            return Err(Failure::new(format!("--rearm cannot write several files to {}", output.display()))
                .hint("give the name of a file with -o, to which numbers are added"));
        };
        let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty());
        let extension = output.extension().and_then(|extension| extension.to_str());
        Ok(Self {
            output: output.to_owned(),
            folder: folder.unwrap_or(Path::new(".")).to_owned(),
            stem: stem.to_owned(),
            extension: extension.map_or_else(String::new, |extension| format!(".{extension}")),
        })
    }

    /// Number of a file of the series. The file of an interrupted recording counts: it is not overwritten.
    fn number(&self, name: &str) -> Option<u64> {
        let name = name.strip_prefix(&self.stem)?.strip_prefix('-')?;
        let of = |name: &str| name.strip_suffix(&self.extension).map(str::to_owned);
        let number = of(name).or_else(|| of(name.strip_suffix(PART)?))?;
        let is_plain = number.bytes().all(|b| b.is_ascii_digit()) && !number.starts_with('0');
        number.parse().ok().filter(|_| is_plain)
    }

    fn path(&self, number: u64) -> PathBuf {
        self.output.with_file_name(format!("{}-{number}{}", self.stem, self.extension))
    }

    /// Numbers of the files that exist, the oldest first. Files of earlier runs are among them.
    fn numbers(&self) -> Result<Vec<u64>> {
        let entries = fs::read_dir(&self.folder).map_err(|e| Failure::io("reading", &self.folder, &e))?;
        let files = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
        let mut numbers: Vec<u64> =
            files.filter_map(|entry| self.number(entry.file_name().to_str()?)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        Ok(numbers)
    }

    /// The next file.
    fn next(&self) -> Result<PathBuf> {
        Ok(self.path(self.numbers()?.last().map_or(1, |last| last.saturating_add(1))))
    }

    /// Removes the oldest files of more than `max_files`; returns them.
    fn remove_oldest(&self, max_files: Option<u32>) -> Result<Vec<PathBuf>> {
        let Some(most) = max_files else { return Ok(Vec::new()) };
        let numbers = self.numbers()?;
        let surplus = numbers.len().saturating_sub(most.max(1) as usize);
        let oldest = numbers.iter().take(surplus).map(|number| self.path(*number));
        let oldest = oldest.flat_map(|path| {
            let mut part = path.clone().into_os_string();
            part.push(PART);
            [path, PathBuf::from(part)]
        });
        oldest
            .filter_map(|path| match fs::remove_file(&path) {
                Ok(()) => Some(Ok(path)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => Some(Err(Failure::io("removing", &path, &error))),
            })
            .collect()
    }
}

/// Set by the signals that end a recording, also between two of them; SIGUSR1 between two of them has no effect.
fn asked() -> Result<Arc<AtomicBool>> {
    let (asked, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let ends = [SIGINT, SIGTERM, SIGHUP].into_iter();
    let ends = ends.filter(|&signal| signal != SIGHUP || !is_ignored(signal)).map(|signal| (signal, &asked));
    for (signal, flag) in ends.chain([(SIGUSR1, &written)]) {
        signal_hook::flag::register(signal, Arc::clone(flag))
            .map_err(|e| Failure::os("cannot watch for signals", &e))?;
    }
    Ok(asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_numbered_and_the_oldest_go_first() {
        let folder = std::env::temp_dir().join(format!("kmt-rearm-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let series = Series::new(&folder.join("a.b.kmt")).unwrap();
        let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
        assert_eq!(name(&series.next().unwrap()), "a.b-1.kmt");
        // Those of an earlier run, and others that are not of the series.
        for other in [
            "a.b-9.kmt",
            "a.b-10.kmt",
            "a.b-11.kmt",
            "a.b.kmt",
            "a.b-x.kmt",
            "a.b-012.kmt",
            "a.b-12.kmt.parts",
            "b-13.kmt",
        ] {
            fs::write(folder.join(other), "").unwrap();
        }
        assert_eq!(name(&series.next().unwrap()), "a.b-12.kmt");
        assert!(series.remove_oldest(None).unwrap().is_empty());
        assert!(series.remove_oldest(Some(3)).unwrap().is_empty());
        let removed = |most| -> Vec<String> {
            series.remove_oldest(Some(most)).unwrap().iter().map(|path| name(path)).collect()
        };
        assert_eq!(removed(1), ["a.b-9.kmt", "a.b-10.kmt"]);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 6);
        // Of a recorder that was killed while it wrote.
        fs::write(folder.join("a.b-12.kmt.part"), "").unwrap();
        fs::write(folder.join("a.b-11.kmt.part"), "").unwrap();
        assert_eq!(name(&series.next().unwrap()), "a.b-13.kmt");
        fs::write(folder.join("a.b-13.kmt"), "").unwrap();
        assert_eq!(removed(2), ["a.b-11.kmt", "a.b-11.kmt.part"]);
        assert_eq!(removed(1), ["a.b-12.kmt.part"]);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 6);
        fs::remove_dir_all(&folder).unwrap();
        assert!(series.next().is_err());
    }

    #[test]
    fn standard_output_cannot_have_several_files() {
        assert!(Series::new(Path::new("-")).is_err() && Series::new(Path::new("/")).is_err());
        let here = Series::new(Path::new("trace")).unwrap();
        assert_eq!(here.path(3), Path::new("trace-3"));
    }
}
