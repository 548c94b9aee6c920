//! The files of one recording (`kmt-capture record --rotate`) as one trace.
//!
//! They are joined to a file without a name in the folder for temporary files, so that all reports read them as they read any
//! other file. The files may be given in any order; none in between may be missing.

use std::borrow::Cow;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use kmt_common::input::InputBytes;
use kmt_common::output::Target;
use kmt_common::shell;
use kmt_format::Error;
use kmt_format::edit::Join;
use kmt_format::read::Trace;

use crate::env::Env;
use crate::failure::{Failure, Result};
use crate::trace::open::{bytes_in, repair, trace_in};

/// An opened file, or files of one recording.
pub struct Opened<'p> {
    /// The file, or words for the files.
    pub path: Cow<'p, Path>,
    /// Contents.
    pub bytes: InputBytes,
}

/// A file of a recording.
struct Part<'p> {
    path: &'p Path,
    bytes: InputBytes,
    uuid: [u8; 16],
    number: u64,
}

/// Opens files for reading; several must be of one recording.
pub fn open<'p>(paths: &'p [PathBuf], env: &Env) -> Result<Opened<'p>> {
    match paths {
        [] => Err(Failure::new("no file is given")),
        [path] => Ok(Opened { path: Cow::Borrowed(path.as_path()), bytes: bytes_in(path, env)? }),
        paths => {
            let mut parts = paths.iter().map(|path| part(path, env)).collect::<Result<Vec<_>>>()?;
            parts.sort_by_key(|part| part.number);
            check(&parts)?;
            Ok(Opened { path: Cow::Owned(words_for(&parts)), bytes: joined(&parts, env)? })
        }
    }
}

/// The file of a command that reads one; `command` is its name. `remedy` makes the hint for several.
pub fn only<'p>(
    paths: &'p [PathBuf],
    command: &str,
    remedy: impl FnOnce(&[PathBuf]) -> String,
) -> Result<&'p Path> {
    match paths {
        [path] => Ok(path),
        _ => {
            let failure = Failure::new(format!("{command} reads one file, and {} are given", paths.len()));
            Err(failure.hint(remedy(paths)).usage())
        }
    }
}

/// The remedy where a command reads each file of a recording alone.
pub fn one_by_one(paths: &[PathBuf]) -> String {
    let words: Vec<String> = paths.iter().map(|path| shell::path(path)).collect();
    format!(
        "run it for each file; `kmt-analyze slice -o whole.kmt {}` makes one file of the files of a recording",
        words.join(" ")
    )
}

/// The remedy where a command follows a file that grows: the newest file of the recording.
pub fn the_newest(paths: &[PathBuf], command: &str, env: &Env) -> String {
    let number = |path: &&PathBuf| {
        let bytes = bytes_in(path, env).ok()?;
        number_of(&trace_in(path, &bytes, env).ok()?)
    };
    let newest = paths.iter().max_by_key(number).map_or_else(String::new, |path| shell::path(path));
    format!(
        "`kmt-analyze {command} --follow {newest}` follows the newest file; without --follow all files are one trace"
    )
}

/// The environment of a command that reads these files: commands that it prints name them.
pub fn env_of<'e>(paths: &[PathBuf], env: &'e Env) -> Cow<'e, Env> {
    match paths {
        [] | [_] => Cow::Borrowed(env),
        paths => Cow::Owned(Env { parts: paths.to_vec(), ..env.clone() }),
    }
}

/// True if a file is one of several of a recording.
pub fn is_part(path: &Path) -> bool {
    let env = Env::default();
    let number = |bytes: InputBytes| number_of(&trace_in(path, &bytes, &env).ok()?);
    bytes_in(path, &env).ok().and_then(number).is_some()
}

fn number_of(trace: &Trace<'_>) -> Option<u64> {
    trace.metadata().text(Join::PART_KEY)?.parse().ok()
}

fn part<'p>(path: &'p Path, env: &Env) -> Result<Part<'p>> {
    let bytes = bytes_in(path, env)?;
    let trace = trace_in(path, &bytes, env)?;
    let Some(number) = number_of(&trace) else {
        return Err(Failure::new(format!("{} is not one of several files of a recording", path.display()))
            .hint("several files are one trace if `kmt-capture record --rotate` made them; `kmt-analyze diff` compares two"));
    };
    let uuid = trace.header().trace_uuid;
    drop(trace);
    Ok(Part { path, bytes, uuid, number })
}

/// Fails if sorted files are not consecutive files of one recording.
fn check(parts: &[Part<'_>]) -> Result<()> {
    for pair in parts.windows(2) {
        let [first, second] = pair else { continue };
        let (one, other) = (first.path.display(), second.path.display());
        if first.uuid != second.uuid {
            return Err(Failure::new(format!("{one} and {other} are of different recordings"))
                .hint("give the files of one recording; `kmt-analyze diff` compares two"));
        }
        match second.number.saturating_sub(first.number) {
            0 => {
                let both = format!("{one} and {other} are both file {} of the recording", first.number);
                return Err(Failure::new(both).hint("give each file once"));
            }
            1 => {}
            2 => {
                let number = first.number.saturating_add(1);
                return Err(Failure::new(format!(
                    "file {number} of the recording is missing, between {one} and {other}"
                ))
                .hint("only the first and the last files may be left out"));
            }
            _ => {
                let (from, to) = (first.number.saturating_add(1), second.number.saturating_sub(1));
                return Err(Failure::new(format!(
                    "files {from} to {to} of the recording are missing, between {one} and {other}"
                ))
                .hint("only the first and the last files may be left out"));
            }
        }
    }
    Ok(())
}

/// `3 parts of trace.kmt`, for `trace-1.kmt` and others.
fn words_for(parts: &[Part<'_>]) -> PathBuf {
    let path = parts.first().map_or(Path::new(""), |part| part.path);
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let (stem, extension) = match name.split_once(".kmt") {
        Some((stem, rest)) => (stem, format!(".kmt{}", rest.strip_suffix(".part").unwrap_or(rest))),
        None => (name.as_str(), String::new()),
    };
    let series = match stem.rsplit_once('-') {
        Some((series, number)) if number.bytes().all(|b| b.is_ascii_digit()) => series,
        _ => stem,
    };
    let series = path.with_file_name(format!("{series}{extension}"));
    PathBuf::from(format!("{} parts of {}", parts.len(), series.display()))
}

/// One file of all files, in memory for a command whose files are.
fn joined(parts: &[Part<'_>], env: &Env) -> Result<InputBytes> {
    let mut join = Join::new(env.limits.file);
    for Part { path, bytes, .. } in parts {
        let failed = |error: Error| Failure::new(format!("{}: {error}", path.display())).hint(repair(path));
        join.add(bytes).map_err(failed)?;
    }
    let failed = |error: Error| Failure::new(format!("joining the files of the recording: {error}"));
    if env.is_in_memory() {
        let mut out = Vec::new();
        while let Some(bytes) = join.next_bytes().map_err(failed)? {
            out.extend(bytes);
        }
        return Ok(InputBytes::InMemory(out));
    }
    let path = std::env::temp_dir().join(format!("kmt-joined-{}", std::process::id()));
    let mut file: File = Target { path: path.clone(), force: false }.scratch()?;
    while let Some(bytes) = join.next_bytes().map_err(failed)? {
        file.write_all(&bytes).map_err(|error| {
            Failure::io("writing", &path, &error).hint(format!(
                "the files need room in {} together; set TMPDIR to another folder",
                std::env::temp_dir().display()
            ))
        })?;
    }
    InputBytes::of_file(&path, file, |_| Ok(Vec::new()))
}
