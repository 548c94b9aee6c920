//! The input of a conversion in memory: a mapped file, standard input, or what a compressed or UTF-16 file holds.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use memmap2::{Mmap, MmapOptions};

use crate::failure::{Failure, Result};
use crate::import::Kind;
use crate::import::text::Look;

/// Bytes of an input.
#[derive(Debug)]
pub enum Opened {
    /// A file as it lies on disk.
    Mapped(Mmap),
    /// Read, or made of what was read.
    Made(Vec<u8>),
}

impl Deref for Opened {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Made(bytes) => bytes,
        }
    }
}

/// More than this does not come out of a compressed file, so that a small one cannot take all memory.
const INFLATED_MAX: u64 = 8 << 30;

impl Opened {
    /// Standard input for `-`, else a file.
    pub fn open(path: &Path) -> Result<Self> {
        let bytes = if path == Path::new("-") {
            Self::Made(read(path, io::stdin().lock())?)
        } else {
            let file = File::open(path).map_err(|e| Failure::io("opening", path, &e))?;
            // A pipe cannot be mapped.
            let is_regular = file.metadata().is_ok_and(|m| m.is_file());
            if is_regular { Self::Mapped(map(path, &file)?) } else { Self::Made(read(path, file)?) }
        };
        let bytes = match unpacked(path, &bytes)? {
            Some(unpacked) => Self::Made(unpacked),
            None => bytes,
        };
        Ok(utf16(&bytes).map_or(bytes, Self::Made))
    }
}

fn read(path: &Path, mut from: impl Read) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes).map_err(|e| Failure::io("reading", path, &e))?;
    Ok(bytes)
}

fn map(path: &Path, file: &File) -> Result<Mmap> {
    // SAFETY: the map is private and only read. Should another process change the file meanwhile, the bytes may
    // change under us; every access is a checked slice operation on plain integers, so that can make a check or an
    // index fail, not break memory safety. Should it shrink the file, the kernel ends us with SIGBUS.
    unsafe { MmapOptions::new().map_copy_read_only(file) }.map_err(|e| Failure::io("mapping", path, &e))
}

/// What a compressed file holds; `None` if it is not compressed.
fn unpacked(path: &Path, bytes: &[u8]) -> Result<Option<Vec<u8>>> {
    if bytes.starts_with(&[0x1f, 0x8b]) {
        return inflate(path, flate2::read::MultiGzDecoder::new(bytes)).map(Some);
    }
    if bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        #[cfg(feature = "zstd")]
        return inflate(
            path,
            zstd::stream::read::Decoder::new(bytes).map_err(|e| Failure::io("reading", path, &e))?,
        )
        .map(Some);
        #[cfg(not(feature = "zstd"))]
        return with_program(path, bytes, "zstd").map(Some);
    }
    if bytes.starts_with(&[0xfd, b'7', b'z', b'X', b'Z', 0]) {
        return with_program(path, bytes, "xz").map(Some);
    }
    Ok(None)
}

fn inflate(path: &Path, reader: impl Read) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    reader
        .take(INFLATED_MAX + 1)
        .read_to_end(&mut out)
        .map_err(|e| Failure::io("decompressing", path, &e).hint("the file is damaged, or not all of it"))?;
    if out.len() as u64 > INFLATED_MAX {
        return Err(Failure::new(format!("{} holds more than 8 GiB", path.display()))
            .hint("decompress it to a file and convert that"));
    }
    Ok(out)
}

/// Lets the machine's own program decompress.
fn with_program(path: &Path, bytes: &[u8], program: &str) -> Result<Vec<u8>> {
    let mut child =
        Command::new(program).arg("-dc").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(
            |e| {
                Failure::new(format!("{} is compressed, and {program} cannot be run: {e}", path.display()))
                    .hint(format!("install {program}, or decompress the file elsewhere"))
            },
        )?;
    let (input, output) = (child.stdin.take(), child.stdout.take());
    let out = std::thread::scope(|scope| {
        // A program that stops reading says why itself.
        scope.spawn(move || input.map(|mut input| io::Write::write_all(&mut input, bytes)));
        output.map_or(Ok(Vec::new()), |output| inflate(path, output))
    });
    let status = child.wait().map_err(|e| Failure::io("decompressing", path, &e))?;
    let out = out?;
    if !status.success() {
        return Err(Failure::new(format!("{}: {program} cannot decompress it", path.display())));
    }
    Ok(out)
}

/// A text in UTF-16, as some terminals of Windows save a log; `None` if it is none.
fn utf16(bytes: &[u8]) -> Option<Vec<u8>> {
    let unit: fn([u8; 2]) -> u16 = match bytes {
        [0xff, 0xfe, ..] => u16::from_le_bytes,
        [0xfe, 0xff, ..] => u16::from_be_bytes,
        _ => return None,
    };
    let units = bytes.get(2..)?.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    let text: String = char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    Some(text.into_bytes())
}

/// The recording of another tool that a directory holds, where it holds no ring buffers: one file, or the parts that
/// `perf record --switch-output` makes, in their order; nothing if there is none.
pub fn only_recording(directory: &Path) -> Result<Vec<PathBuf>> {
    let failed = |e| Failure::io("reading", directory, &e);
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_file() && is_recording(&path) {
            found.push(path);
        }
    }
    found.sort();
    match found.as_slice() {
        [first, .., last] if !are_parts(&found) => Err(Failure::new(format!(
            "{} holds {} recordings, from {} to {}",
            directory.display(),
            found.len(),
            first.display(),
            last.display()
        ))
        .hint("convert each of them by its own name")),
        _ => Ok(found),
    }
}

/// Whether files are called NAME.TIME, as perf calls the parts of a recording: their order is that of time.
fn are_parts(paths: &[PathBuf]) -> bool {
    let is_time = |end: &OsStr| end.len() >= 14 && end.as_encoded_bytes().iter().all(u8::is_ascii_digit);
    let stems =
        paths.iter().map(|path| path.extension().filter(|e| is_time(e)).and_then(|_| path.file_stem()));
    let mut stems: Vec<Option<&OsStr>> = stems.collect();
    stems.dedup();
    matches!(stems.as_slice(), [Some(_)])
}

/// Whether a file is one, by its beginning.
fn is_recording(path: &Path) -> bool {
    const LOOKED_AT: u64 = 1 << 20;
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LOOKED_AT).read_to_end(&mut start));
    read.is_ok()
        && match Kind::of(&start) {
            Kind::TraceDat | Kind::PerfData => true,
            Kind::Text => Look::at(&start).events > 0,
            Kind::Kmt | Kind::Unknown => false,
        }
}
