//! `record --rotate`: one recording in several files, each of which can be read alone.
//!
//! `recorder/rotate` closes a file and begins the next one; here are the limit and the names of files, and the removal
//! of the oldest.

use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use kmt_common::quantity;

use super::RecordOptions;
use super::series::Series;
use crate::failure::{Failure, Result};
use crate::output::Output;

/// Shortest time of a file: the state of the machine at its begin and its end may have the size of a small limit.
const SHORTEST: Duration = Duration::from_secs(1);
/// Smallest limit, in bytes: a file without events may have a quarter of it.
const SIZE_MIN: u64 = 1 << 20;
/// How long a file waits for names of functions that are looked for in the background.
const PATIENCE: Duration = Duration::from_secs(1);

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
    /// Number of the first file in the series.
    first: u64,
    /// Number of the current file in the recording, from 1.
    pub part: u64,
    /// When the current file began.
    began: Instant,
    /// When its limit was reached.
    due: Option<Instant>,
    /// Gives the file before its name, once it is on the disk; returns the files that were removed.
    ending: Option<JoinHandle<Result<Vec<PathBuf>>>>,
}

impl Rotation {
    /// The files that `options` ask for; `None`: they ask for one. `output` is the name to which numbers are added.
    pub fn new(options: &RecordOptions, output: &std::path::Path) -> Result<Option<Self>> {
        let Some(rotate) = options.rotate else { return Ok(None) };
        let series = Series::new(output, "--rotate")?;
        let first = series.next_number()?;
        let (began, part) = (Instant::now(), 1);
        Ok(Some(Self { options: rotate, series, first, part, began, due: None, ending: None }))
    }

    /// Number of the current file in the series.
    fn number(&self) -> u64 {
        self.first.saturating_add(self.part - 1)
    }

    /// The current file.
    pub fn path(&self) -> PathBuf {
        self.series.path(self.number())
    }

    /// The files that are there.
    pub fn files(&self) -> Vec<PathBuf> {
        (self.first..=self.number())
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

    /// The next file; nothing is written to it yet.
    pub fn open_next(&mut self) -> Result<Output> {
        self.part += 1;
        (self.began, self.due) = (Instant::now(), None);
        Output::record(&self.path(), false)
    }

    /// Completes the file before: in the background, since the disk may take seconds.
    pub fn end_file(&mut self, file: Output) -> Result<()> {
        // The file that is being written counts too.
        let (series, most) = (self.series.clone(), self.options.max_files.map(|most| most.max(2) - 1));
        let current = self.number();
        let end = move || {
            file.finish()?;
            series.remove_oldest_before(current, most)
        };
        let thread = std::thread::Builder::new().name("kmt-rotate".to_owned());
        let ending = thread.spawn(end);
        self.ending = Some(ending.map_err(|e| Failure::os("cannot start a thread", &e))?);
        Ok(())
    }

    /// Waits until the file before has its name; returns the files that were removed.
    pub fn wait(&mut self) -> Result<Vec<PathBuf>> {
        match self.ending.take() {
            Some(ending) => ending.join().map_err(|_| Failure::new("completing a file failed"))?,
            None => Ok(Vec::new()),
        }
    }

    /// After the last file: removes the oldest of too many; returns them.
    pub fn finish(&self) -> Result<Vec<PathBuf>> {
        self.series.remove_oldest(self.options.max_files)
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
            let before = std::mem::replace(&mut output, rotation.open_next().unwrap());
            rotation.end_file(before).unwrap();
            removed.extend(rotation.wait().unwrap());
        }
        output.write(b"x").unwrap();
        output.finish().unwrap();
        removed.extend(rotation.finish().unwrap());
        let files: Vec<String> = rotation.files().into_iter().map(name).collect();
        assert_eq!(files, ["a-4.kmt", "a-5.kmt"]);
        assert_eq!(removed.into_iter().map(name).collect::<Vec<_>>(), ["a-1.kmt.part", "a-2.kmt", "a-3.kmt"]);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
