//! Settings outside our own instance: their values before, and restoring them, also after a kill.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags, flock};

use super::dir::TraceDir;
use super::owner::Owner;
use crate::failure::Result;

/// Directories of the files that undo changes after a kill: gone with the next boot, as the settings themselves.
const UNDO_DIRS: [&str; 3] = ["/run/kmt-capture", "/var/run/kmt-capture", "/tmp/.kmt-capture"];

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// Write VALUE to the file at PATH, replacing what is there.
    Write(PathBuf, String),
    Unmount(PathBuf),
}

/// Changes to undo, the last one first. They are undone when this is dropped.
#[derive(Debug, Default)]
pub struct Undo {
    steps: Vec<Step>,
    saved: Option<PathBuf>,
    /// Directories of tracefs that the steps reach into.
    dirs: Vec<TraceDir>,
}

impl Undo {
    /// Changes a setting to `value`, and remembers what it was.
    ///
    /// `before` is what to write to get the present state back. It is noted before the change is made.
    pub fn change(&mut self, dir: &TraceDir, name: &str, before: &str, value: &str) -> Result<()> {
        self.remember(dir, name, before);
        dir.write(name, value)
    }

    /// Remembers what to write to get the present state back.
    pub fn remember(&mut self, dir: &TraceDir, name: &str, before: &str) {
        if !self.dirs.contains(dir) {
            self.dirs.push(dir.clone());
        }
        self.push(Step::Write(dir.file(name), before.to_owned()));
    }

    /// Remembers a mount of ours.
    pub fn unmount(&mut self, dir: &Path) {
        self.push(Step::Unmount(dir.to_owned()));
    }

    fn push(&mut self, step: Step) {
        self.steps.push(step);
        if let Err(error) = self.save_steps() {
            kmt_common::message!("warning: cannot save the settings to restore after a kill: {error}");
        }
    }

    fn save_steps(&mut self) -> std::io::Result<()> {
        let text: String = self.steps.iter().map(Step::line).collect();
        let path = match &self.saved {
            Some(path) => path.clone(),
            None => {
                let path = undo_dir()?.join(format!("{}.undo", Owner::this().name()));
                self.saved = Some(path.clone());
                path
            }
        };
        // A second file that takes the name: a kill in between leaves the notes of before.
        let fresh = path.with_extension("new");
        let _ = fs::remove_file(&fresh);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
        file.write_all(format!("boot {}\n{text}", boot_id()).as_bytes())?;
        fs::rename(&fresh, &path)
    }

    /// Puts everything back.
    fn run(&mut self) {
        while let Some(step) = self.steps.pop() {
            if let Err(error) = step.run(&self.dirs) {
                kmt_common::message!("warning: {step:?} failed: {error}");
            }
        }
        if let Some(saved) = self.saved.take() {
            let _ = fs::remove_file(&saved);
            // Stays if another recorder has notes in it.
            let _ = saved.parent().map(fs::remove_dir);
        }
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        self.run();
    }
}

impl Step {
    /// `dirs` are open directories of tracefs: its files are reached through it.
    fn run(&self, dirs: &[TraceDir]) -> std::io::Result<()> {
        match self {
            Self::Write(path, value) => {
                let within = |dir: &TraceDir| {
                    let name = path.strip_prefix(dir.path()).ok()?.to_str()?;
                    Some(dir.put(name, value, OFlags::TRUNC))
                };
                dirs.iter().find_map(within).unwrap_or_else(|| {
                    File::options().write(true).truncate(true).open(path)?.write_all(value.as_bytes())
                })
            }
            Self::Unmount(dir) => Ok(rustix::mount::unmount(dir, rustix::mount::UnmountFlags::DETACH)?),
        }
    }

    fn line(&self) -> String {
        let (word, path, value) = match self {
            Self::Write(path, value) => ("write", path, value.as_str()),
            Self::Unmount(path) => ("unmount", path, ""),
        };
        format!("{word}\t{}\t{}\n", escape(&path.to_string_lossy()), escape(value))
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split('\t');
        let (word, path, value) = (words.next()?, words.next()?, words.next()?);
        let path = PathBuf::from(unescape(path));
        Some(match word {
            "write" => Self::Write(path, unescape(value)),
            "unmount" => Self::Unmount(path),
            _ => return None,
        })
    }
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n").replace('\t', "\\t")
}

fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        out.push(match (c, c == '\\') {
            (_, true) => match chars.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some(other) => other,
                None => '\\',
            },
            (c, false) => c,
        });
    }
    out
}

/// A line of notes as it would be written again, if it is one. For fuzz targets.
#[doc(hidden)]
pub fn undo_step(line: &str) -> Option<String> {
    Step::parse(line).map(|step| step.line())
}

fn boot_id() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

/// A directory that only we can have made: no one else may choose what is written where.
fn undo_dir() -> std::io::Result<PathBuf> {
    let mut last = std::io::Error::from(std::io::ErrorKind::NotFound);
    for dir in UNDO_DIRS.map(Path::new) {
        match DirBuilder::new().mode(0o700).create(dir) {
            Ok(()) => return Ok(dir.to_owned()),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && is_ours(dir) => {
                return Ok(dir.to_owned());
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn is_ours(dir: &Path) -> bool {
    fs::symlink_metadata(dir)
        .is_ok_and(|m| m.is_dir() && m.uid() == rustix::process::geteuid().as_raw() && m.mode() & 0o077 == 0)
}

/// Puts back what recorders that were killed have left changed: those that are gone, or only `whose`, which the caller
/// knows to be gone. Returns the number of settings of each. `top` is tracefs, if it is known.
pub fn put_back(whose: Option<Owner>, top: Option<&TraceDir>) -> Vec<usize> {
    let mut counts = Vec::new();
    for dir in UNDO_DIRS.map(Path::new).into_iter().filter(|dir| is_ours(dir)) {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            let owner = path.file_stem().and_then(|n| n.to_str()).and_then(Owner::parse);
            let is_meant = |owner: Owner| whose.map_or_else(|| !owner.is_alive(), |whose| owner == whose);
            if owner.is_some_and(is_meant) {
                counts.extend(put_back_saved(&path, top));
            }
        }
    }
    counts
}

/// Does what the notes at `path` say, unless somebody else does or has done so.
fn put_back_saved(path: &Path, top: Option<&TraceDir>) -> Option<usize> {
    let file = File::open(path).ok()?;
    lock(&file)?;
    // The process that held the lock before has done it.
    let is_there = file.metadata().ok()?.nlink() > 0;
    let text = fs::read_to_string(path).ok().filter(|_| is_there)?;
    let boot = text.lines().next().and_then(|line| line.strip_prefix("boot "));
    if path.extension().is_none_or(|e| e != "undo") || boot != Some(&boot_id()) {
        // Settings do not outlive a boot, and a file that was not finished changed nothing.
        let _ = fs::remove_file(path);
        return None;
    }
    let steps: Vec<Step> = text.lines().skip(1).filter_map(Step::parse).collect();
    let count = steps.len();
    drop(Undo { steps, saved: Some(path.to_owned()), dirs: top.into_iter().cloned().collect() });
    Some(count)
}

/// Waits for the lock that allows putting back the settings of a file of notes. A process holds it for milliseconds; a
/// stopped one is not waited for.
fn lock(file: &File) -> Option<()> {
    const ATTEMPTS: u32 = 200;
    (0..ATTEMPTS).find_map(|_| match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Some(()),
        Err(_) => {
            std::thread::sleep(Duration::from_millis(10));
            None
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_survive_being_noted() {
        let steps = [
            Step::Write("/a b/tracing_thresh".into(), "0\n".into()),
            Step::Write("/x".into(), "a\tb\\n\nc".into()),
            Step::Unmount("/sys/kernel/tracing".into()),
        ];
        for step in steps {
            let line = step.line();
            assert_eq!(line.matches('\n').count(), 1, "{line:?}");
            assert_eq!(Step::parse(line.trim_end_matches('\n')), Some(step));
        }
        assert_eq!(Step::parse("rm\t/etc\t"), None);
    }

    #[test]
    fn changes_are_taken_back_in_reverse() {
        let dir = std::env::temp_dir().join(format!("kmt-undo-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("setting"), "old").unwrap();
        let trace_dir = TraceDir::at(&dir);
        let mut undo = Undo::default();
        undo.change(&trace_dir, "setting", "old", "first").unwrap();
        undo.change(&trace_dir, "setting", "first", "second").unwrap();
        assert_eq!(fs::read_to_string(dir.join("setting")).unwrap(), "second");
        let notes = undo.saved.clone();
        drop(undo);
        assert_eq!(fs::read_to_string(dir.join("setting")).unwrap(), "old");
        assert!(notes.is_none_or(|path| !path.exists()));
        fs::remove_dir_all(&dir).unwrap();
    }
}
