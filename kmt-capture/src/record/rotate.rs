//! `record --rotate`: one recording in several files, each of which can be read alone.
//!
//! `recorder/rotate` closes a file and begins the next one; here are the limit and the names of files, and the removal
//! of the oldest.

use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use kmt_common::quantity;

use super::RecordOptions;
use super::series::{Removed, Series};
use crate::failure::{Failure, Result};
use crate::output::Output;

/// Shortest time of a file: the state of the machine at its begin and its end may have the size of a small limit.
const SHORTEST: Duration = Duration::from_secs(1);
/// Smallest limit, in bytes: a file without events may have a quarter of it.
const SIZE_MIN: u64 = 1 << 20;
/// How long a file waits for names of functions that are looked for in the background.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time until a file is created again that could not be created; the recording continues in the file before meanwhile.
const PAUSE: Duration = Duration::from_secs(10);

/// Warnings that are remembered, at most.
const WARNED_MAX: usize = 32;

/// When the next file begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RotateAt {
    /// At this size in bytes, about.
    Size(u64),
    /// After this time.
    Time(Duration),
}

/// Options of `--rotate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RotateOptions {
    /// When the next file begins.
    pub at: RotateAt,
    /// Number of files that are kept; `None`: all.
    pub max_files: Option<u32>,
}

impl RotateAt {
    /// Parses `100M` or `10m`.
    pub fn parse(text: &str) -> std::result::Result<Self, String> {
        if text.ends_with(|c: char| c.is_ascii_digit()) {
            return Err(format!("{text:?} has no unit: expected a size such as 100M, or a time such as 10m"));
        }
        let minutes = text.strip_suffix('m').map(|number| format!("{number}min"));
        if let Ok(time) = quantity::seconds(minutes.as_deref().unwrap_or(text)) {
            return match time >= SHORTEST {
                true => Ok(Self::Time(time)),
                false => Err(format!("{text:?} is too short: the shortest time is 1s")),
            };
        }
        match quantity::size(text) {
            Ok(size) if size >= SIZE_MIN => Ok(Self::Size(size)),
            Ok(_) => Err(format!("{text:?} is too small: the smallest size is 1M")),
            Err(_) => {
                Err(format!("{text:?} is neither a size nor a time: expected such as 100M, 2G, 10m or 1h"))
            }
        }
    }
}

/// The files of a recording.
#[derive(Debug)]
pub(super) struct Rotation {
    options: RotateOptions,
    series: Series,
    /// Numbers of the first and of the current file in the series.
    first: u64,
    current: u64,
    /// Numbers between these that other files have.
    skipped: Vec<RangeInclusive<u64>>,
    /// Number of the current file in the recording, from 1.
    pub part: u64,
    /// When the current file began.
    began: Instant,
    /// When its limit was reached.
    due: Option<Instant>,
    /// When the next file can be created, if it could not be.
    again: Option<Instant>,
    /// Gives the file before its name, once it is on the disk.
    ending: Option<JoinHandle<FileEnd>>,
    /// Warnings that were given: each is given once.
    warned: HashSet<String>,
    /// True if a file has no name, or one of too many could not be removed.
    pub has_failed: bool,
}

/// How a file ended.
#[derive(Debug, Default)]
pub(super) struct FileEnd {
    /// Why it has no name: its events are in the unfinished file.
    failure: Option<Failure>,
    removed: Removed,
}

/// The next file, in which nothing is. It is removed if it is not begun.
#[derive(Debug)]
pub(super) struct NextFile {
    pub output: Output,
    number: u64,
}

impl Rotation {
    /// The files that `options` ask for; `None`: they ask for one. `output` is the name to which numbers are added.
    pub fn new(options: &RecordOptions, output: &std::path::Path) -> Result<Option<Self>> {
        let Some(rotate) = options.rotate else { return Ok(None) };
        let series = Series::new(output, "--rotate")?;
        let first = series.next_number()?;
        let (skipped, due, again, ending, warned, has_failed) = Default::default();
        Ok(Some(Self {
            options: rotate,
            series,
            first,
            current: first,
            skipped,
            part: 1,
            began: Instant::now(),
            due,
            again,
            ending,
            warned,
            has_failed,
        }))
    }

    /// The current file.
    pub fn path(&self) -> PathBuf {
        self.series.path(self.current)
    }

    /// The files that are there.
    pub fn files(&self) -> Vec<PathBuf> {
        // Another program may give a file any number.
        let begins = std::iter::once(self.first).chain(self.skipped.iter().map(|skipped| skipped.end() + 1));
        let ends = self.skipped.iter().map(|skipped| skipped.start() - 1).chain([self.current]);
        begins
            .zip(ends)
            .flat_map(|(begin, end)| begin..=end)
            .map(|number| self.series.path(number))
            .filter(|path| path.is_file())
            .collect()
    }

    /// The first file begins now.
    pub fn start(&mut self) {
        self.began = Instant::now();
    }

    /// True if the file, which would have `len` bytes if it ended now, has reached its limit.
    pub fn is_due(&mut self, len: u64) -> bool {
        if self.again.is_some_and(|again| Instant::now() < again) {
            return false;
        }
        let length = self.began.elapsed();
        let is_due = match self.options.at {
            RotateAt::Size(size) => len >= size && length >= SHORTEST,
            RotateAt::Time(time) => length >= time,
        };
        if is_due {
            self.due.get_or_insert_with(Instant::now);
        }
        is_due
    }

    /// True if the file cannot wait any longer.
    pub fn is_overdue(&self) -> bool {
        self.due.is_some_and(|due| due.elapsed() >= PATIENCE)
    }

    /// True if the file before has its name.
    pub fn is_ready(&self) -> bool {
        self.ending.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Creates the next file, before the current one gets its end: if that fails, the recording continues in the current one,
    /// and the warning is returned.
    pub fn open_next(&mut self) -> std::result::Result<NextFile, Option<String>> {
        let number = self.series.next_number().map(|next| next.max(self.current.saturating_add(1)));
        let opened = number.and_then(|number| {
            let output = Output::record(&self.series.path(number), false)?;
            Ok(NextFile { output, number })
        });
        opened.map_err(|failure| {
            self.again = Some(Instant::now() + PAUSE);
            self.once(format!(
                "warning: the recording continues in {}, since the next file cannot be created: {failure}",
                self.path().display()
            ))
        })
    }

    /// Begins the next file.
    pub fn begin(&mut self, next: NextFile) -> Output {
        if next.number - self.current > 1 {
            self.skipped.push(self.current + 1..=next.number - 1);
        }
        (self.current, self.part) = (next.number, self.part + 1);
        (self.began, self.due, self.again) = (Instant::now(), None, None);
        next.output
    }

    /// Completes the file before: in the background, since the disk may take seconds.
    pub fn end_file(&mut self, file: Output) -> Result<()> {
        // The file that is being written counts too.
        let (series, most) = (self.series.clone(), self.options.max_files.map(|most| most.max(2) - 1));
        let (current, unfinished) = (self.current, file.unfinished().map(Path::to_owned));
        let end = move || {
            let failure = file.finish().err();
            FileEnd { failure, removed: series.remove_oldest_before(current, most) }
        };
        let thread = std::thread::Builder::new().name("kmt-rotate".to_owned());
        let ending = thread.spawn(end).map_err(|error| {
            let failure = Failure::os("cannot start a thread", &error);
            match unfinished {
                Some(path) => failure.hint(format!("{} is complete, without its name", path.display())),
                None => failure,
            }
        });
        self.ending = Some(ending?);
        Ok(())
    }

    /// Waits until the file before has its name.
    pub fn wait(&mut self) -> FileEnd {
        match self.ending.take().map(JoinHandle::join) {
            Some(Ok(end)) => end,
            Some(Err(_)) => FileEnd { failure: Some(Failure::new("the thread ended")), ..FileEnd::default() },
            None => FileEnd::default(),
        }
    }

    /// Messages on the end of a file: those that were removed, and warnings that were not given before.
    pub fn notices(&mut self, end: FileEnd) -> Vec<String> {
        self.has_failed |= end.failure.is_some() || end.removed.failure.is_some();
        let unnamed = end.failure.map(|failure| {
            format!("warning: a file of the recording keeps its name with .part at the end: {failure}")
        });
        let warnings = unnamed.into_iter().chain(end.removed.warning());
        let warnings: Vec<String> = warnings.filter_map(|warning| self.once(warning)).collect();
        end.removed.messages().chain(warnings).collect()
    }

    /// A warning that was not given before; `None`: it was.
    fn once(&mut self, text: String) -> Option<String> {
        if self.warned.len() >= WARNED_MAX {
            self.warned.clear();
        }
        self.warned.insert(text.clone()).then_some(text)
    }

    /// After the last file: removes the oldest of too many.
    pub fn finish(&self) -> FileEnd {
        FileEnd { failure: None, removed: self.series.remove_oldest(self.options.max_files) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_size_or_a_time() {
        let parse = RotateAt::parse;
        assert_eq!(parse("100M"), Ok(RotateAt::Size(100 << 20)));
        assert_eq!(parse("10m"), Ok(RotateAt::Time(Duration::from_secs(600))));
        assert_eq!(parse("1.5min"), Ok(RotateAt::Time(Duration::from_secs(90))));
        assert_eq!(parse("1GiB"), Ok(RotateAt::Size(1 << 30)));
        for wrong in ["100", "10ms", "4K", "x", "", "m", "-1s"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    /// Ends a file, and begins the next one.
    fn switch(rotation: &mut Rotation, output: &mut Output) -> FileEnd {
        let next = rotation.open_next().unwrap();
        let next = rotation.begin(next);
        rotation.end_file(std::mem::replace(output, next)).unwrap();
        rotation.wait()
    }

    /// The files of a recording in a folder of its own, and the first one, with a byte in it.
    fn begun(name: &str, max_files: Option<u32>) -> (PathBuf, Rotation, Output) {
        let folder = std::env::temp_dir().join(format!("kmt-rotation-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let rotate = RotateOptions { at: RotateAt::Size(5 << 20), max_files };
        let options = RecordOptions { rotate: Some(rotate), ..RecordOptions::default() };
        let rotation = Rotation::new(&options, &folder.join("a.kmt")).unwrap().unwrap();
        let mut output = Output::record(&rotation.path(), false).unwrap();
        output.write(b"x").unwrap();
        (folder, rotation, output)
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap().flatten();
        let mut names: Vec<String> = entries.map(|e| e.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_name_that_another_file_has_is_passed_over() {
        let (folder, mut rotation, mut output) = begun("taken", None);
        std::fs::write(folder.join("a-2.kmt"), "of another program").unwrap();
        std::fs::create_dir(folder.join("a-3.kmt")).unwrap();
        assert!(switch(&mut rotation, &mut output).failure.is_none());
        assert_eq!((rotation.path(), rotation.part), (folder.join("a-4.kmt"), 2));
        std::fs::write(folder.join("a-4000000000000000000.kmt"), "").unwrap();
        output.write(b"x").unwrap();
        assert!(switch(&mut rotation, &mut output).failure.is_none());
        output.write(b"x").unwrap();
        output.finish().unwrap();
        let own = ["a-1.kmt", "a-4.kmt", "a-4000000000000000001.kmt"].map(|name| folder.join(name));
        assert_eq!(rotation.files(), own);
        assert_eq!(std::fs::read(folder.join("a-2.kmt")).unwrap(), b"of another program");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn without_a_next_file_the_recording_continues_in_this_one() {
        let (folder, mut rotation, mut output) = begun("away", None);
        let away = folder.with_extension("away");
        std::fs::rename(&folder, &away).unwrap();
        let warning = rotation.open_next().unwrap_err().expect("a warning");
        assert!(warning.contains("a-1.kmt, since the next file cannot be created: "), "{warning}");
        assert!(warning.starts_with("warning: the recording continues in "), "{warning}");
        assert_eq!(rotation.open_next().unwrap_err(), None, "it is given once");
        assert_eq!((rotation.path(), rotation.part), (folder.join("a-1.kmt"), 1));
        assert!(!rotation.is_due(u64::MAX), "not before a pause");
        std::fs::rename(&away, &folder).unwrap();
        // A file that is not begun is removed.
        drop(rotation.open_next().unwrap());
        assert_eq!((names(&folder), rotation.part), (vec!["a-1.kmt.part".to_owned()], 1));
        output.write(b"y").unwrap();
        assert!(switch(&mut rotation, &mut output).failure.is_none());
        assert_eq!(std::fs::read(folder.join("a-1.kmt")).unwrap(), b"xy");
        assert_eq!((rotation.part, rotation.has_failed), (2, false));
        drop(output);
        assert_eq!(names(&folder), ["a-1.kmt"]);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_file_that_cannot_get_its_name_stays_and_is_reported() {
        let (folder, mut rotation, mut output) = begun("unnamed", Some(2));
        std::fs::write(folder.join("a-1.kmt"), "of another program").unwrap();
        let end = switch(&mut rotation, &mut output);
        let notices = rotation.notices(end);
        assert!(rotation.has_failed);
        assert!(
            notices.len() == 1 && notices[0].contains("keeps its name with .part at the end: "),
            "{notices:?}"
        );
        assert!(notices[0].contains("a-1.kmt already exists"), "{notices:?}");
        assert_eq!(std::fs::read(folder.join("a-1.kmt.part")).unwrap(), b"x");
        assert_eq!(std::fs::read(folder.join("a-1.kmt")).unwrap(), b"of another program");
        output.write(b"y").unwrap();
        output.finish().unwrap();
        assert_eq!(std::fs::read(folder.join("a-2.kmt")).unwrap(), b"y");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn files_that_cannot_be_removed_are_reported_once() {
        let (folder, mut rotation, mut output) = begun("kept", Some(2));
        // Not a file: it cannot be removed as one.
        let mut said = Vec::new();
        for number in 1..=4 {
            if number == 2 {
                std::fs::create_dir(folder.join("a-1.kmt.part")).unwrap();
            }
            output.write(b"x").unwrap();
            let end = switch(&mut rotation, &mut output);
            said.extend(rotation.notices(end));
            if number == 2 {
                std::fs::write(folder.join("a-1.kmt"), "again").unwrap();
            }
        }
        assert!(rotation.has_failed);
        let warnings: Vec<&String> = said.iter().filter(|text| text.starts_with("warning: ")).collect();
        assert!(warnings.len() == 1 && warnings[0].contains("a-1.kmt.part"), "{said:?}");
        drop(output);
        assert_eq!(names(&folder), ["a-1.kmt.part", "a-4.kmt"]);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn files_follow_each_other_and_the_oldest_go() {
        let folder = std::env::temp_dir().join(format!("kmt-rotation-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        // Of a recorder that was killed.
        std::fs::write(folder.join("a-1.kmt.part"), "x").unwrap();
        let rotate = RotateOptions { at: RotateAt::Size(5 << 20), max_files: Some(2) };
        let options = RecordOptions { rotate: Some(rotate), ..RecordOptions::default() };
        let mut rotation = Rotation::new(&options, &folder.join("a.kmt")).unwrap().unwrap();
        let name = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        assert_eq!(name(rotation.path()), "a-2.kmt");
        let mut output = Output::record(&rotation.path(), false).unwrap();
        let mut removed = Vec::new();
        for _ in 0..3 {
            output.write(b"x").unwrap();
            assert!(!rotation.is_due(5 << 20), "it is not a second old");
            removed.extend(switch(&mut rotation, &mut output).removed.files);
        }
        output.write(b"x").unwrap();
        output.finish().unwrap();
        removed.extend(rotation.finish().removed.files);
        let files: Vec<String> = rotation.files().into_iter().map(name).collect();
        assert_eq!(files, ["a-4.kmt", "a-5.kmt"]);
        assert_eq!(removed.into_iter().map(name).collect::<Vec<_>>(), ["a-1.kmt.part", "a-2.kmt", "a-3.kmt"]);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
