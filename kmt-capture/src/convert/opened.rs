//! The input of a conversion in memory: a mapped file, standard input, or the content of a compressed or UTF-16 file.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use kmt_common::input::InputBytes;
use kmt_common::out_of_memory::spawn;
use kmt_common::shell;

use super::colours;
use crate::failure::{Failure, Result};
use crate::import::Kind;
use crate::import::text::TextSurvey;
use crate::input::{Folder, Kind as Limit, Limits, too_large};

/// The inputs that can be converted, for messages.
pub const INPUTS: &str = "convert accepts a directory laid out like tracefs, a trace.dat, a perf.data (or a directory with \
    the parts of --switch-output), a Perfetto trace, text of ftrace, trace-cmd or perf script, or a .kmt file to rewrite; each also compressed (.gz, .xz, .zst, zlib)";

/// An input in memory.
pub struct Opened {
    /// Bytes of the input, decompressed.
    pub bytes: InputBytes,
    /// True if a compressed file ends before its content does: `bytes` has the content until there.
    pub is_cut: bool,
}

/// Opens standard input for `-`, else a file, and decompresses it.
pub fn open(path: &Path, limits: &Limits) -> Result<Opened> {
    if path == Path::new("-") {
        return decoded(path, InputBytes::InMemory(read(path, io::stdin().lock(), limits)?), limits);
    }
    open_file(path, File::open(path).map_err(|e| Failure::io("opening", path, &e))?, limits)
}

/// Reads and decompresses a file that is open.
pub fn open_file(path: &Path, file: File, limits: &Limits) -> Result<Opened> {
    let bytes = InputBytes::of_file(path, file, |file| read(path, file, limits))?;
    decoded(path, bytes, limits)
}

/// The decompressed bytes, in UTF-8 where they are text in UTF-16.
fn decoded(path: &Path, stored: InputBytes, limits: &Limits) -> Result<Opened> {
    let stored_len = stored.len() as u64;
    let (bytes, is_cut) = match unpacked(path, &stored, limits)? {
        Some(content) => (InputBytes::InMemory(content.bytes), content.is_cut),
        None => (stored, false),
    };
    // Text in UTF-16 stays in memory until the copy in UTF-8 is complete.
    let most = limits.of(Limit::Inflated, stored_len);
    let in_memory = if let InputBytes::InMemory(bytes) = &bytes { bytes.len() as u64 } else { 0 };
    let bytes = match utf16(&bytes, most.saturating_sub(in_memory)) {
        None => bytes,
        Some(Some(text)) => InputBytes::InMemory(text),
        Some(None) => return Err(too_much(path, most)),
    };
    let is_coloured = Kind::of(&bytes) == Kind::Text && colours::are_in(&bytes);
    let bytes = if is_coloured { InputBytes::InMemory(colours::dropped(&bytes)) } else { bytes };
    Ok(Opened { bytes, is_cut })
}

fn read(path: &Path, from: impl Read, limits: &Limits) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = from.take(limits.stream.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|e| Failure::io("reading", path, &e))?;
    if bytes.len() as u64 > limits.stream {
        return Err(too_large(path, bytes.len() as u64, limits, Limit::Stream));
    }
    Ok(bytes)
}

/// Content of a compressed file.
struct Content {
    bytes: Vec<u8>,
    /// True if the file ends before its content does.
    is_cut: bool,
}

/// Content of a compressed file; `None` if it is not compressed.
fn unpacked(path: &Path, bytes: &[u8], limits: &Limits) -> Result<Option<Content>> {
    let most = limits.of(Limit::Inflated, bytes.len() as u64);
    if bytes.starts_with(&[0x1f, 0x8b]) {
        return inflate(path, flate2::read::MultiGzDecoder::new(bytes), most, "gzip").map(Some);
    }
    if let Some(zlib) = zlib_of(bytes) {
        return inflate(path, flate2::read::ZlibDecoder::new(zlib), most, "").map(Some);
    }
    if bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        #[cfg(feature = "zstd")]
        return inflate(
            path,
            zstd::stream::read::Decoder::new(bytes).map_err(|e| Failure::io("reading", path, &e))?,
            most,
            "zstd",
        )
        .map(Some);
        #[cfg(not(feature = "zstd"))]
        return with_program(path, bytes, "zstd", most).map(Some);
    }
    if bytes.starts_with(&[0xfd, b'7', b'z', b'X', b'Z', 0]) {
        return with_program(path, bytes, "xz", most).map(Some);
    }
    Ok(None)
}

/// Decompressed bytes of `reader`, up to the end of a file that is cut off. `program`: the program that decompresses the
/// part before the damage; empty: there is none.
fn inflate(path: &Path, reader: impl Read, most: u64, program: &str) -> Result<Content> {
    let mut bytes = Vec::new();
    let is_cut = match reader.take(most.saturating_add(1)).read_to_end(&mut bytes) {
        Ok(_) => false,
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof && !bytes.is_empty() => true,
        Err(e) => {
            let rest = match program {
                "" => String::new(),
                _ => format!(
                    ": `{program} -dc {} > PART` writes what is before the damage, and PART can be converted",
                    if path == Path::new("-") { "FILE".to_owned() } else { shell::path(path) }
                ),
            };
            return Err(Failure::io("decompressing", path, &e)
                .hint(format!("the file is damaged or incomplete{rest}")));
        }
    };
    if bytes.len() as u64 > most {
        return Err(too_much(path, most));
    }
    Ok(Content { bytes, is_cut })
}

fn too_much(path: &Path, most: u64) -> Failure {
    let input = path.display();
    Failure::new(format!(
        "{input} is compressed and has more than the limit of {most} bytes when decompressed"
    ))
    .hint("--limit inflated=SIZE raises the limit; or decompress it to a file, and convert that file")
}

/// The zlib stream of a file: the whole file, or what follows the title of `atrace -z`.
fn zlib_of(bytes: &[u8]) -> Option<&[u8]> {
    const TITLE: &[u8] = b"TRACE:\n";
    /// Bytes that can be before the title: `capturing trace... done`.
    const TITLE_END: usize = 256;
    let is_zlib = |bytes: &[u8]| matches!(bytes, [0x78, 0x01 | 0x9c | 0xda, _, ..]);
    if is_zlib(bytes) {
        return Some(bytes);
    }
    let start = bytes.get(..bytes.len().min(TITLE_END))?;
    let at = start.windows(TITLE.len()).position(|window| window == TITLE)?;
    bytes.get(at + TITLE.len()..).filter(|rest| is_zlib(rest))
}

/// Lets the machine's own program decompress.
fn with_program(path: &Path, bytes: &[u8], program: &str, most: u64) -> Result<Content> {
    let mut child =
        Command::new(program).arg("-dc").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(
            |e| {
                Failure::os(format!("{} is compressed, and {program} cannot be run", path.display()), &e)
                    .hint(format!("install {program}, or decompress the file elsewhere"))
            },
        )?;
    let (input, output) = (child.stdin.take(), child.stdout.take());
    let out = std::thread::scope(|scope| {
        // A program that stops reading says why itself.
        spawn(scope, move || input.map(|mut input| io::Write::write_all(&mut input, bytes)));
        let nothing = Ok(Content { bytes: Vec::new(), is_cut: false });
        output.map_or(nothing, |output| inflate(path, output, most, program))
    });
    let status = child.wait().map_err(|e| Failure::io("decompressing", path, &e))?;
    let out = out?;
    if !status.success() {
        return Err(Failure::new(format!("{}: {program} cannot decompress it", path.display()))
            .hint("the file is damaged or incomplete"));
    }
    Ok(out)
}

/// A text in UTF-16, as some terminals of Windows save a log: its text, unless that has more than `most` bytes; `None`
/// if it is not UTF-16.
fn utf16(bytes: &[u8], most: u64) -> Option<Option<Vec<u8>>> {
    let unit: fn([u8; 2]) -> u16 = match bytes {
        [0xff, 0xfe, ..] => u16::from_le_bytes,
        [0xfe, 0xff, ..] => u16::from_be_bytes,
        _ => return None,
    };
    let units = bytes.get(2..)?.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    let mut text = Vec::new();
    for c in char::decode_utf16(units) {
        let c = c.unwrap_or(char::REPLACEMENT_CHARACTER);
        text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        if text.len() as u64 > most {
            return Some(None);
        }
    }
    Some(Some(text))
}

/// The recording of another tool that a directory holds, where it holds no ring buffers: one file, or the parts that
/// `perf record --switch-output` makes, in their order; nothing if there is none.
pub fn only_recording(directory: &Folder) -> Result<Vec<(PathBuf, File)>> {
    const START_LEN: u64 = 1 << 20;
    let mut found = Vec::new();
    for name in directory.names(".")?.iter().filter_map(|name| name.to_str()) {
        // Other entries, links and pipes too, are not ours.
        if !directory.is_regular(name) {
            continue;
        }
        let Some((file, start)) = directory.start(name, START_LEN)? else { continue };
        if is_recording(&start) {
            found.push((directory.path.join(name), file));
        }
    }
    let paths: Vec<&Path> = found.iter().map(|(path, _)| path.as_path()).collect();
    match paths.as_slice() {
        [first, .., last] if !are_parts(&paths) => Err(Failure::new(format!(
            "{} holds {} recordings, from {} to {}",
            directory.path.display(),
            paths.len(),
            first.display(),
            last.display()
        ))
        .hint("convert each file separately")),
        _ => Ok(found),
    }
}

/// True if files are called NAME.TIME, as perf calls the parts of a recording: their order is that of time.
fn are_parts(paths: &[&Path]) -> bool {
    let is_time = |end: &OsStr| end.len() >= 14 && end.as_encoded_bytes().iter().all(u8::is_ascii_digit);
    let stems =
        paths.iter().map(|path| path.extension().filter(|e| is_time(e)).and_then(|_| path.file_stem()));
    let mut stems: Vec<Option<&OsStr>> = stems.collect();
    stems.dedup();
    matches!(stems.as_slice(), [Some(_)])
}

/// True if a file is one, by its beginning.
fn is_recording(start: &[u8]) -> bool {
    match Kind::of(start) {
        Kind::TraceDat | Kind::PerfData | Kind::Perfetto => true,
        Kind::Text => TextSurvey::of(start).events > 0,
        Kind::Kmt | Kind::Unknown => false,
    }
}
