//! The kernel log of a crash, where firmware or reserved memory has kept it: pstore.
//!
//! Files `dmesg-BACKEND-N` of /sys/fs/pstore begin with `Panic#1 Part2` or `Oops#1 Part1` (`pstore_dump`, fs/pstore/platform.c);
//! part 1 is the newest. systemd-pstore moves them to /var/lib/systemd/pstore. A panic there shows that a boot ended by a crash;
//! without it the end is a crash, a reset or a reboot.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::system::System;

/// Folders of the log, from the root on.
const FOLDERS: [&str; 2] = ["sys/fs/pstore", "var/lib/systemd/pstore"];
/// Levels of folders in them.
const DEPTH: usize = 2;
/// Files that are read at most.
const FILES_MAX: usize = 64;
/// Bytes of the log that are kept.
const LEN_MAX: usize = 256 << 10;

/// The end of a boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrashLog {
    /// Cause, in words.
    pub cause: &'static str,
    /// Lines of `[SECONDS.MICROSECONDS] TEXT`; empty if there is none.
    pub text: Vec<u8>,
}

/// The log of a panic since that time of day, in nanoseconds since 1970; 0: unknown, so that none is of this crash.
pub fn find(system: &System, since_ns: u64) -> CrashLog {
    let mut files = Vec::new();
    for folder in FOLDERS {
        list(&system.path(folder), DEPTH, &mut files);
    }
    files.truncate(FILES_MAX);
    let is_new = |path: &PathBuf| since_ns > 0 && modified_ns(path).is_some_and(|time| time >= since_ns);
    let mut parts: Vec<(u64, Vec<u8>)> =
        files.into_iter().filter(is_new).filter_map(|path| panic_part(&fs::read(path).ok()?)).collect();
    if parts.is_empty() {
        return CrashLog { cause: "a crash, a reset or a reboot", text: Vec::new() };
    }
    parts.sort_by_key(|(part, _)| std::cmp::Reverse(*part));
    let mut text: Vec<u8> = parts.into_iter().flat_map(|(_, lines)| lines).collect();
    text.drain(..text.len().saturating_sub(LEN_MAX));
    CrashLog { cause: "a crash", text }
}

fn list(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let is_log = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("dmesg-"));
        if path.is_dir() && depth > 1 {
            list(&path, depth - 1, files);
        } else if is_log && path.is_file() {
            files.push(path);
        }
    }
}

fn modified_ns(path: &Path) -> Option<u64> {
    let modified = path.metadata().ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(modified.as_nanos()).ok()
}

/// Number of a part of a panic's log, and its lines without their levels.
fn panic_part(bytes: &[u8]) -> Option<(u64, Vec<u8>)> {
    let end = bytes.iter().position(|&byte| byte == b'\n')?;
    let head = std::str::from_utf8(bytes.get(..end)?).ok()?;
    let part = head.strip_prefix("Panic#")?.split_once(" Part")?.1.trim().parse().ok()?;
    let lines = bytes.get(end + 1..)?.split_inclusive(|&byte| byte == b'\n');
    Some((part, lines.flat_map(without_level).copied().collect()))
}

/// `<4>[   12.345678] text` without the level.
fn without_level(line: &[u8]) -> &[u8] {
    let rest = line.strip_prefix(b"<").and_then(|rest| {
        let end = rest.iter().take(4).position(|&byte| byte == b'>')?;
        rest.get(..end)?.iter().all(u8::is_ascii_digit).then(|| rest.get(end + 1..))?
    });
    rest.unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_panic_since_the_time_of_arming_is_a_crash() {
        let root = std::env::temp_dir().join(format!("kmt-pstore-{}", std::process::id()));
        let folder = root.join("sys/fs/pstore");
        let moved = root.join("var/lib/systemd/pstore/1795277288");
        [&folder, &moved].iter().for_each(|folder| fs::create_dir_all(folder).unwrap());
        let system = System::at(&root);
        let unknown = CrashLog { cause: "a crash, a reset or a reboot", text: Vec::new() };
        fs::write(folder.join("dmesg-efi-1"), "Oops#1 Part1\n<4>[    1.0] oops\n").unwrap();
        fs::write(folder.join("console-ramoops-0"), "Panic#1 Part1\n<4>[    1.0] x\n").unwrap();
        assert_eq!(find(&system, 1), unknown, "an oops is survived");
        fs::write(folder.join("dmesg-efi-2"), "Panic#1 Part1\n<0>[   51.900000] end\n").unwrap();
        fs::write(moved.join("dmesg-efi-3"), "Panic#1 Part2\n<4>[   51.000000] first\nplain\n").unwrap();
        assert_eq!(find(&system, 0), unknown, "the time of arming is unknown");
        assert_eq!(find(&system, u64::MAX), unknown, "an older crash");
        let text = b"[   51.000000] first\nplain\n[   51.900000] end\n".to_vec();
        assert_eq!(find(&system, 1), CrashLog { cause: "a crash", text });
        fs::remove_dir_all(root).unwrap();
    }
}
