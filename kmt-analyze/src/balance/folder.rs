//! Saved /proc texts: in a folder, or one of them in a file.
//!
//! `balance` accepts copies of /proc/meminfo, zoneinfo, slabinfo and others that a user made with `cat`. Names of files
//! tell the texts; `trace::accounts` parses them. Size and kind of a file are checked before it is read.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use kmt_format::raw::MAGIC;

use crate::env::Env;
use crate::failure::{Failure, Result};
use crate::trace::accounts::{SavedText, SavedTexts, TEXT_NAMES, name_at};

/// Largest text in bytes: zoneinfo of 1,024 CPUs and 16 nodes has some MiB.
const TEXT_LEN_MAX: u64 = 64 << 20;

/// Kind of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A .kmt file, or a file that is not a copy of /proc/meminfo.
    Recording,
    /// A folder with meminfo.before and meminfo.after.
    TwoTimes,
    /// A folder or a copy of /proc/meminfo.
    OneTime,
}

impl Source {
    /// Kind of the input at a path; one that cannot be opened is for the reader of recordings to refuse.
    pub fn of(path: &Path, env: &Env) -> Self {
        if path.is_dir() {
            let has = |when: &str| path.join(format!("meminfo.{when}")).is_file();
            return if has("before") && has("after") { Self::TwoTimes } else { Self::OneTime };
        }
        if path == Path::new("-") {
            return Self::Recording;
        }
        let start = match env.files.get(path) {
            Some(bytes) => Ok(bytes.into_iter().take(MAGIC.len().max(9)).collect()),
            None => begin_of(path),
        };
        match start {
            Ok(start) if start.starts_with(b"MemTotal:") => Self::OneTime,
            _ => Self::Recording,
        }
    }
}

/// The first bytes of a regular file.
fn begin_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    if fs::metadata(path)?.is_file() {
        File::open(path)?.take(16).read_to_end(&mut start)?;
    }
    Ok(start)
}

/// Texts of a folder, with `.before` or `.after` at the end of their names; or a meminfo alone.
pub fn read(path: &Path, when: Option<&str>, env: &Env) -> Result<SavedTexts<'static>> {
    let text = |path: &Path, bytes: Vec<u8>| SavedText {
        path: path.display().to_string(),
        bytes: Cow::Owned(bytes),
    };
    if let Some(bytes) = env.files.get(path) {
        return Ok(SavedTexts::from([("meminfo", text(path, bytes))]));
    }
    if !path.is_dir() {
        let bytes = bytes_of(path).map_err(|e| Failure::io("reading", path, &e))?;
        if bytes.starts_with(&MAGIC) {
            return Err(Failure::new(format!("{} is a recording, not saved texts", path.display()))
                .hint("`kmt-analyze balance FILE.kmt` compares its begin and its end"));
        }
        return Ok(SavedTexts::from([("meminfo", text(path, bytes))]));
    }
    let mut saved = SavedTexts::new();
    for name in TEXT_NAMES {
        let file = path.join(when.map_or(name.to_owned(), |when| name_at(name, when)));
        match bytes_of(&file) {
            Ok(bytes) => _ = saved.insert(name, text(&file, bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(Failure::io("reading", &file, &error)),
        }
    }
    Ok(saved)
}

/// Contents of a regular file of at most [`TEXT_LEN_MAX`].
fn bytes_of(path: &Path) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(TEXT_LEN_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > TEXT_LEN_MAX {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "larger than 64 MiB, and so not a text of /proc",
        ));
    }
    Ok(bytes)
}
