//! A recording by the shell script, where no program runs: its files come over the line, and are converted here.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kmt_common::mapping::Mapping;
use kmt_common::shell::quoted;
use kmt_common::{tell, text};
use kmt_format::read::Trace;

use super::checksum::cksum;
use super::connection::Came;
use super::facts::RemoteFacts;
use super::shell::Shell;
use super::space::Space;
use super::{RemoteOptions, convert_received, cut_reason};
use crate::failure::{Failure, Outcome, Result};
use crate::record::RecordOptions;
use crate::record::line::STOP;
use crate::snippet::SCRIPT;
use crate::tracefs::EventSpec;

/// Files that the script may save.
const FILES_MAX: usize = 50_000;
/// Bytes that they may have.
const BYTES_MAX: u64 = 8 << 30;
/// Ring buffer of a CPU in bytes, where the memory of the target is unknown.
const SIZE_DEFAULT: u64 = 4 << 20;
/// Largest ring buffer of a CPU in bytes by default.
const SIZE_MAX: u64 = 64 << 20;
/// A recording of this many times the length of its events lacks some.
const SHORT: f64 = 1.2;
/// Time for the next bytes of a file.
const NEXT: Duration = Duration::from_secs(30);
/// Time that the script may take after its end was asked for.
const ENDING: Duration = Duration::from_secs(300);

/// Records by the script, and converts.
pub fn record(
    shell: &mut Shell,
    facts: &RemoteFacts,
    folder: &str,
    options: &RemoteOptions,
    path: &Path,
) -> Result<Outcome> {
    let files = Scratch::new()?;
    let script = format!("{folder}/script");
    shell.send(&script, SCRIPT.as_bytes(), cksum(SCRIPT.as_bytes()), facts)?;
    let size = options.record.buffer_size.unwrap_or_else(|| buffer_size(facts));
    if !options.quiet {
        tell!(
            "recording with the shell script: the last events that fit {} a CPU are kept; --buffer-size keeps more",
            text::size(size)
        );
    }
    shell.run(&command(&options.record, size))?;
    shell.answer("running", Some(Instant::now() + NEXT))?;
    let begin = Instant::now();
    wait(shell, &options.record)?;
    let length = begin.elapsed();
    shell.run(b"deliver; say end; exit")?;
    shell.line.begin_beats();
    let received = receive(shell, &files.0)?;
    if received == Received::All(0) {
        return Err(Failure::new("the script saved no files on the target"));
    }
    let converted = convert_received(&files.0, path, options)?;
    if !options.quiet {
        kept(path, length, size).into_iter().for_each(|note| tell!("{note}"));
    }
    Ok(if received == Received::Full { Outcome::Incomplete } else { converted })
}

/// Ring buffer of a CPU in bytes: a sixteenth of the memory that is available, for all CPUs; at least 1 MiB.
fn buffer_size(facts: &RemoteFacts) -> u64 {
    let Some(available) = facts.available_kib else { return SIZE_DEFAULT };
    let part = (available << 10) / 16 / facts.cpus.unwrap_or(1).max(1);
    part.clamp(1 << 20, SIZE_MAX) >> 12 << 12
}

/// The part of the recording that all CPUs have in the file, where the oldest events were overwritten.
fn kept(path: &Path, length: Duration, size: u64) -> Option<String> {
    let bytes = Mapping::of(path, &File::open(path).ok()?).ok()?;
    let trace = Trace::open(&bytes).ok()?;
    let mut chunks = trace.streams().values().flat_map(|stream| &stream.chunks);
    if chunks.all(|(_, info)| info.loss.is_none()) {
        return None;
    }
    let (mut first_of, mut last) = (BTreeMap::new(), 0);
    for event in trace.events().ok()? {
        first_of.entry(event.cpu()).or_insert(event.time());
        last = last.max(event.time());
    }
    let first = first_of.into_values().max()?;
    let kept = Duration::from_nanos(last.saturating_sub(first));
    // A recording ends some time after its last event.
    if kept.mul_f64(SHORT) >= length || kept.is_zero() {
        return None;
    }
    let needed = size as f64 * length.as_secs_f64() / kept.as_secs_f64();
    Some(format!(
        "the last {:.2} s of {:.2} s are in the file: --buffer-size {}M keeps all at this rate",
        kept.as_secs_f64(),
        length.as_secs_f64(),
        (needed / f64::from(1 << 20)).ceil()
    ))
}

/// Settings of a recording that the script does not have.
pub fn left_out(record: &RecordOptions) -> bool {
    let RecordOptions {
        preset,
        stacks,
        pids,
        kfree_rcu,
        functions,
        survivors,
        snapshot_every,
        max_size,
        command,
        adopt,
        ..
    } = record;
    let is_partial = |name: &str| name != "*" && name.contains(['*', '?']);
    let has_filter = record
        .events
        .iter()
        .any(|event| event.filter.is_some() || is_partial(&event.name) || is_partial(&event.system));
    preset.is_some()
        || adopt.is_some()
        || !(stacks.is_empty() && pids.is_empty() && functions.is_empty() && command.is_empty())
        || *kfree_rcu
        || survivors.is_some()
        || snapshot_every.is_some()
        || max_size.is_some()
        || has_filter
}

/// The command of the target's shell.
fn command(record: &RecordOptions, size: u64) -> Vec<u8> {
    let mut out = Vec::new();
    let events: Vec<String> = record.events.iter().map(name_of).collect();
    if !events.is_empty() {
        out.extend(b"EVENTS=");
        out.extend(quoted(events.join(" ").as_bytes()));
        out.extend(b" ");
    }
    out.extend(format!("BUFKB={} ", (size >> 10).max(1)).into_bytes());
    if let Some(clock) = &record.clock {
        out.extend(b"CLOCK=");
        out.extend(quoted(clock.as_bytes()));
        out.extend(b" ");
    }
    out.extend(b"script");
    if let Some(duration) = record.duration {
        out.extend(format!(" {}", duration.as_secs_f64().ceil().max(1.0)).into_bytes());
    }
    out
}

/// `kmem/kmalloc`, or `kmem` for all events of a system.
fn name_of(event: &EventSpec) -> String {
    match event.name.as_str() {
        "*" => event.system.clone(),
        name => format!("{}/{name}", event.system),
    }
}

/// Waits for the end of the script. Ctrl-C asks for it.
fn wait(shell: &mut Shell, record: &RecordOptions) -> Result<()> {
    shell.line.begin_beats();
    let mut end_by = record.duration.map(|duration| Instant::now() + duration + ENDING);
    let mut is_asked = false;
    while shell.line.unread.is_empty() {
        match shell.line.wait(Some(Instant::now() + Duration::from_secs(1))) {
            Came::End => return Err(shell.line.ended()),
            Came::Asked if is_asked => return Err(Failure::new("interrupted a second time")),
            Came::Asked => {
                is_asked = true;
                end_by = Some(Instant::now() + ENDING);
                shell.line.send(&[STOP, b'\n'])?;
            }
            Came::Bytes => {}
            Came::Nothing if end_by.is_some_and(|by| Instant::now() > by) => {
                return Err(Failure::new("the target does not end the recording"));
            }
            Came::Nothing => {}
        }
    }
    shell.line.end_beats();
    match shell.answer("status", Some(Instant::now() + NEXT))?.as_str() {
        "0" => Ok(()),
        status => {
            Err(Failure::new(format!("the script failed on the target with status {}", cut_reason(status))))
        }
    }
}

/// Files that came.
#[derive(Debug, PartialEq, Eq)]
enum Received {
    /// All, with their number.
    All(usize),
    /// Those for which there is space; the last one may be cut.
    Full,
}

/// Files of the target, into a folder. At least as much space as they take is left for the conversion.
fn receive(shell: &mut Shell, folder: &Path) -> Result<Received> {
    let mut bytes_left = BYTES_MAX;
    let space = File::open(folder).map(Space::of_file).unwrap_or_default();
    for count in 0..=FILES_MAX {
        let line = shell.line.line(Some(Instant::now() + NEXT))?;
        let line = String::from_utf8_lossy(&line).into_owned();
        if line == shell.marked("end") {
            return Ok(Received::All(count));
        }
        let rest = line.strip_prefix(&shell.marked("file ")).ok_or_else(|| shell.unexpected("a file"))?;
        let (len, name) = rest.trim_start().split_once(' ').ok_or_else(|| shell.unexpected("a file"))?;
        let len: u64 = len.parse().map_err(|_| shell.unexpected("the length of a file"))?;
        bytes_left = bytes_left.checked_sub(len).ok_or_else(|| shell.unexpected("at most 8 GiB"))?;
        let path = inside(folder, name).ok_or_else(|| shell.unexpected("the name of a file"))?;
        let had = BYTES_MAX - bytes_left - len;
        if !take_file(shell, &path, len, |part| space.is_for_copy(had + part))? {
            shell.line.close();
            tell!("warning: the files of the target are cut: {}", space.reason());
            return Ok(Received::Full);
        }
    }
    Err(shell.unexpected("at most 50,000 files"))
}

/// Takes a file of this length; false if `has_space`, called with the bytes of it so far, says that it must end.
fn take_file(shell: &mut Shell, path: &Path, len: u64, has_space: impl Fn(u64) -> bool) -> Result<bool> {
    let mut left = len;
    let failed = |e: std::io::Error| Failure::io("writing", path, &e);
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(failed)?;
    }
    // A name comes once.
    let mut file = File::create_new(path).map_err(failed)?;
    while left > 0 {
        if !has_space(len - left) {
            return Ok(false);
        }
        if shell.line.unread.is_empty() {
            match shell.line.wait(Some(Instant::now() + NEXT)) {
                Came::Bytes => {}
                Came::Asked => return Err(Failure::new("interrupted")),
                Came::End | Came::Nothing => return Err(shell.line.ended()),
            }
        }
        let part = shell.line.unread.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        file.write_all(shell.line.unread.get(..part).unwrap_or_default()).map_err(failed)?;
        shell.line.unread.drain(..part);
        left -= part as u64;
    }
    Ok(true)
}

/// The path of a file below a folder; `None` for names that lead elsewhere.
fn inside(folder: &Path, name: &str) -> Option<PathBuf> {
    let is_plain = |part: &str| {
        let known = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
        !part.is_empty() && !part.starts_with('.') && part.len() < 128 && part.bytes().all(known)
    };
    let parts: Vec<&str> = name.split('/').collect();
    (parts.len() < 8 && parts.iter().all(|part| is_plain(part)))
        .then(|| parts.iter().fold(folder.to_owned(), |path, part| path.join(part)))
}

/// A folder that is removed when this is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self> {
        use std::os::unix::fs::DirBuilderExt;
        let time =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_nanos());
        let path = std::env::temp_dir().join(format!("kmt-remote-{}-{time:x}", std::process::id()));
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|e| Failure::io("creating", &path, &e))?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_target_stay_in_the_folder() {
        let folder = Path::new("/tmp/x");
        assert_eq!(
            inside(folder, "tracefs/per_cpu/cpu0/trace_pipe_raw"),
            Some(folder.join("tracefs/per_cpu/cpu0/trace_pipe_raw"))
        );
        for bad in [
            "",
            "/etc/passwd",
            "../x",
            "a/../../b",
            "a//b",
            ".ssh",
            "a\0b",
            "a\u{1b}[2J",
            "a b",
            "a/b/c/d/e/f/g/h",
        ] {
            assert_eq!(inside(folder, bad), None, "{bad:?}");
        }
    }

    #[test]
    fn events_buffer_and_time_go_to_the_script() {
        let events = vec![crate::tracefs::EventSpec::parse("kmem:kmalloc").unwrap()];
        let record =
            RecordOptions { events, duration: Some(Duration::from_millis(1500)), ..RecordOptions::default() };
        assert_eq!(command(&record, 64 << 10), b"EVENTS=kmem/kmalloc BUFKB=64 script 2");
        assert_eq!(command(&RecordOptions::default(), 4 << 20), b"BUFKB=4096 script");
    }

    #[test]
    fn the_buffer_goes_by_the_memory_of_the_target() {
        let of = |kib: Option<u64>, cpus| {
            let mut facts = RemoteFacts::default();
            (facts.available_kib, facts.cpus) = (kib, cpus);
            buffer_size(&facts)
        };
        assert_eq!(of(None, Some(4)), 4 << 20);
        assert_eq!(of(Some(256 << 10), Some(4)), 4 << 20);
        assert_eq!(of(Some(20 << 10), Some(4)), 1 << 20);
        assert_eq!(of(Some(64 << 20), Some(2)), 64 << 20);
    }
}
