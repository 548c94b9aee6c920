//! Destination of an output, and the file that exists there.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use super::dir_entry::{DirEntry, is_a_directory, is_special};
use super::special::{inherited, is_stdout, open_special};
use super::{Output, PartFile};
use crate::early_end::Unfinished;
use crate::failure::{Failure, Result};
use crate::shell;

/// Destination of an output, and permission to replace a file.
#[derive(Debug, Clone)]
pub struct Target {
    /// File; `-` is standard output.
    pub path: PathBuf,
    /// Replace what is there.
    pub force: bool,
}

impl Target {
    /// Fails where [`Target::open`] would, and writes nothing: before any work is done.
    pub fn check(&self) -> Result<()> {
        match self.find()? {
            // A file without a name.
            Found::File(entry) => entry.nameless().map(drop),
            Found::Special(_) | Found::Open(_) => Ok(()),
        }
    }

    /// Opens the output, before any work is done. `-` is standard output.
    ///
    /// New files are created with mode 0600, since they hold kernel addresses and names of what ran, and never through a
    /// symbolic link. Devices and pipes are written to as they are.
    pub fn open(&self) -> Result<Output> {
        match self.find()? {
            Found::File(entry) => self.unfinished(entry),
            Found::Special(entry) => Ok(self.output(open_special(&entry)?, None)),
            Found::Open(file) => Ok(self.output(file, None)),
        }
    }

    /// Opens the output for data that is not text: a terminal is refused.
    pub fn open_binary(&self) -> Result<Output> {
        self.refuse_terminal()?;
        self.open()
    }

    /// Opens the output for a recording, which cannot be made again: as long as it lasts the file is NAME.part, and stays
    /// so if it is cut off.
    pub fn record(&self) -> Result<Output> {
        self.refuse_terminal()?;
        match self.find()? {
            Found::File(entry) => self.recording(entry),
            Found::Special(entry) => Ok(self.output(open_special(&entry)?, None)),
            Found::Open(file) => Ok(self.output(file, None)),
        }
    }

    /// Opens the output of a recording under a name that the user did not give, and others can guess: a new file only.
    pub fn record_new(&self) -> Result<Output> {
        let entry = DirEntry::of(&self.path)?;
        match entry.stat()? {
            Some(_) => {
                Err(Failure::new(format!("{} already exists", self.path.display()))
                    .hint("give a name with -o"))
            }
            None => self.recording(entry),
        }
    }

    fn recording(&self, entry: DirEntry) -> Result<Output> {
        let mut name = entry.name.clone();
        name.push(".part");
        let temporary = entry.with_name(name);
        let (file, id) = temporary.claim(|part| match self.force {
            true => Ok(()),
            false => Err(cut_off(part)),
        })?;
        Ok(self.output(file, Some(PartFile { entry, temporary, id, removal: None })))
    }

    /// A file without a name for what does not fit into memory, beside the output.
    pub fn scratch(&self) -> Result<File> {
        match self.find()? {
            Found::File(entry) => entry.nameless(),
            Found::Special(_) | Found::Open(_) => DirEntry::of(&std::env::temp_dir().join("kmt"))?.nameless(),
        }
    }

    fn output(&self, file: File, part: Option<PartFile>) -> Output {
        Output { target: self.clone(), file, part, len: 0 }
    }

    /// Fails if the output is a terminal.
    pub fn refuse_terminal(&self) -> Result<()> {
        if is_stdout(&self.path) && io::stdout().is_terminal() {
            return Err(Failure::new("standard output is a terminal, and the output is not text")
                .hint("redirect standard output, or give a file name with -o"));
        }
        Ok(())
    }

    /// Finds the file of the path, and checks that it may be written.
    fn find(&self) -> Result<Found> {
        let path = &self.path;
        if is_stdout(path) {
            let stdout = io::stdout().as_fd().try_clone_to_owned();
            return Ok(Found::Open(stdout.map_err(|e| Failure::io("opening", path, &e))?.into()));
        }
        if let Some(file) = inherited(path) {
            return file.map(Found::Open);
        }
        let entry = DirEntry::of(path)?;
        match entry.stat()? {
            Some(stat) if is_special(&stat) => Ok(Found::Special(entry)),
            Some(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {
                Err(is_a_directory(path))
            }
            Some(_) if !self.force => Err(already_there(path)),
            Some(stat) => entry.check_replaced(&stat).map(|()| Found::File(entry)),
            None => Ok(Found::File(entry)),
        }
    }

    fn unfinished(&self, entry: DirEntry) -> Result<Output> {
        let name = entry.name.to_string_lossy();
        let temporary = entry.with_name(format!(".{name}.{}.part", std::process::id()).into());
        let ((file, id), removal) = Unfinished::make(&temporary.dir, &temporary.name, || {
            // One that is there was left by a killed process that had our number.
            let (file, id) = temporary.claim(|_| Ok(()))?;
            Ok(((file, id), Some(id)))
        })?;
        Ok(self.output(file, Some(PartFile { entry, temporary, id, removal: Some(removal) })))
    }
}

/// File of a path.
enum Found {
    /// A file that may be made or replaced.
    File(DirEntry),
    /// A pipe or a device.
    Special(DirEntry),
    /// A file descriptor that is open already.
    Open(File),
}

pub(super) fn already_there(path: &Path) -> Failure {
    Failure::new(format!("{} already exists", path.display())).hint("--force overwrites it")
}

fn cut_off(part: &Path) -> Failure {
    // Without .part and .kmt.
    let whole = part.with_extension("").with_extension("whole.kmt");
    Failure::new(format!("{} is the file of an interrupted recording", part.display())).hint(format!(
        "`kmt-capture convert {} -o {}` saves its events; --force overwrites it",
        shell::path(part),
        shell::path(&whole)
    ))
}
