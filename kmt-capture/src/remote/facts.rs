//! Facts about the target that decide which program it gets, and into which folder.

use std::collections::BTreeSet;

use kmt_common::text::escaped;

/// Prints the facts. Runs in any POSIX shell.
pub const SCRIPT: &str = include_str!("facts.sh");
/// Oldest kernel that glibc's static programs start on.
const KERNEL_MIN: (u32, u32) = (3, 2);
/// Most lines that are read.
pub const LINES_MAX: usize = 4096;
/// File systems in memory.
const IN_MEMORY: [&str; 3] = ["tmpfs", "ramfs", "rootfs"];

/// Facts about a target. What it did not report is empty or `None`.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct RemoteFacts {
    /// `uname -m`.
    pub machine: String,
    /// `uname -r`.
    pub release: String,
    /// `uname -n`.
    pub host: String,
    /// Number of the user.
    pub uid: Option<u32>,
    /// Memory in KiB that is available to the kernel: it does not use free memory of CMA for ring buffers and tracefs.
    pub available_kib: Option<u64>,
    /// Number of CPUs.
    pub cpus: Option<u64>,
    /// Features of the processor.
    cpu: BTreeSet<String>,
    /// Bits and byte order of its programs.
    word: Option<(u32, &'static str)>,
    mounts: Vec<Mount>,
    /// Folders that can be written, and their space in KiB.
    folders: Vec<(String, Option<u64>)>,
    /// True if `head -c` works.
    pub has_head: bool,
    /// True if there is `cksum`.
    pub has_cksum: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Mount {
    path: String,
    kind: String,
    options: String,
}

/// A folder that can be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteFolder {
    /// Path.
    pub path: String,
    /// True if its files are in memory.
    pub is_memory: bool,
    /// True if it is not mounted noexec.
    pub may_execute: bool,
    /// Space in KiB.
    pub free_kib: Option<u64>,
}

impl RemoteFacts {
    /// Adds a line of [`SCRIPT`]. Unknown lines are ignored.
    pub fn add(&mut self, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        let (key, value) = line.split_once(' ').unwrap_or((&line, ""));
        let value = value.trim();
        let number = || value.split_whitespace().next()?.parse::<u64>().ok();
        match key {
            "machine" => self.machine = short(value),
            "release" => self.release = short(value),
            "host" => self.host = short(value),
            "uid" => self.uid = value.parse().ok(),
            "available" => self.available_kib = number().or(self.available_kib),
            "free" => self.available_kib = self.available_kib.or(number()),
            "cma" => {
                let cma = number().unwrap_or(0);
                self.available_kib = self.available_kib.map(|kib| kib.saturating_sub(cma));
            }
            "cpus" => self.cpus = number().filter(|cpus| *cpus > 0),
            "cpu" => self.cpu = value.split_whitespace().map(str::to_owned).collect(),
            "program" => self.word = word(value),
            "mount" => {
                let mut words = value.split(' ').map(str::to_owned);
                if let (Some(path), Some(kind), Some(options)) = (words.next(), words.next(), words.next()) {
                    self.mounts.push(Mount { path, kind, options });
                }
            }
            "folder" => {
                let (path, free) = value.split_once(' ').unwrap_or((value, ""));
                // The script asks for these alone; another one is not a path of ours.
                if path.starts_with('/') && path.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'/') {
                    self.folders.push((path.to_owned(), free.parse().ok()));
                }
            }
            "has" => {
                self.has_head |= value == "head";
                self.has_cksum |= value == "cksum";
            }
            _ => {}
        }
    }

    /// Name of the machine in file names of a release; `None`: no program is built for it.
    pub fn program_machine(&self) -> Option<&'static str> {
        Some(match self.machine.as_str() {
            "x86_64" => "x86_64",
            "i686" => "i686",
            "aarch64" => "aarch64",
            "armv7l" | "armv8l" => "armv7",
            "s390x" => "s390x",
            "ppc64le" => "ppc64le",
            _ => return None,
        })
    }

    /// Reason why no program of a release runs there.
    pub fn unfit(&self) -> Option<String> {
        if self.kernel().is_some_and(|kernel| kernel < KERNEL_MIN) {
            let (major, minor) = KERNEL_MIN;
            return Some(format!("Linux {} is older than {major}.{minor}", escaped(self.release.as_bytes())));
        }
        let lacks =
            |names: &[&str]| !self.cpu.is_empty() && !names.iter().any(|name| self.cpu.contains(*name));
        match self.program_machine() {
            Some("armv7") if lacks(&["vfpv3", "vfpv3d16", "vfpv4"]) => {
                Some("the processor has no VFPv3 (FPU)".to_owned())
            }
            Some("i686") if lacks(&["sse2"]) => Some("the processor has no SSE2".to_owned()),
            _ => None,
        }
    }

    /// Memory in KiB that a recording needs besides its program: 4 MiB for the recorder and 2 MiB for ring buffers, and for
    /// the files of a new instance of tracefs, which kernels before 6.6 all make at once (7.4 MiB on s390x, 5.5 MiB on
    /// armv7, with Debian's 6.1). With less the OOM killer ended all processes.
    pub fn memory_min_kib(&self) -> u64 {
        if self.kernel().is_some_and(|kernel| kernel >= (6, 6)) { 6 << 10 } else { 16 << 10 }
    }

    fn kernel(&self) -> Option<(u32, u32)> {
        let mut numbers = self.release.split(|c: char| !c.is_ascii_digit());
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    }

    /// Folders that can be written: those in memory first, and of these those that may execute.
    pub fn folders(&self) -> Vec<RemoteFolder> {
        let mut folders: Vec<RemoteFolder> =
            self.folders.iter().map(|(path, free_kib)| self.folder(path, *free_kib)).collect();
        folders.sort_by_key(|folder| (!folder.may_execute, !folder.is_memory));
        folders
    }

    fn folder(&self, path: &str, free_kib: Option<u64>) -> RemoteFolder {
        let is_above = |mount: &&Mount| {
            let rest = path.strip_prefix(mount.path.as_str());
            mount.path == "/" || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        // Of two mounts at one path the later one is on top.
        let mount = self.mounts.iter().filter(is_above).max_by_key(|mount| mount.path.len());
        let has = |option: &str| mount.is_some_and(|mount| mount.options.split(',').any(|o| o == option));
        RemoteFolder {
            path: path.to_owned(),
            is_memory: mount.is_some_and(|mount| IN_MEMORY.contains(&mount.kind.as_str())),
            may_execute: !has("noexec"),
            free_kib,
        }
    }

    /// One line for users.
    pub fn describe(&self) -> String {
        let mut out = format!(
            "{}: {}",
            self.host,
            if self.machine.is_empty() { "unknown machine" } else { &self.machine }
        );
        if let Some((bits, order)) = self.word {
            out.push_str(&format!(", {bits} bits, {order} endian"));
        }
        out.push_str(&format!(", Linux {}", self.release));
        if let Some(kib) = self.available_kib {
            out.push_str(&format!(", {} MiB of memory available", kib >> 10));
        }
        out
    }
}

/// Bits and byte order from the first bytes of an ELF file, in hexadecimal.
fn word(text: &str) -> Option<(u32, &'static str)> {
    let bytes: Vec<u8> = text.split_whitespace().filter_map(|b| u8::from_str_radix(b, 16).ok()).collect();
    let [0x7f, b'E', b'L', b'F', class, data, ..] = *bytes.as_slice() else { return None };
    let bits = match class {
        1 => 32,
        2 => 64,
        _ => return None,
    };
    Some((bits, if data == 2 { "big" } else { "little" }))
}

/// A name of at most 64 characters.
fn short(text: &str) -> String {
    text.chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(text: &str) -> RemoteFacts {
        let mut facts = RemoteFacts::default();
        text.lines().for_each(|line| facts.add(line.as_bytes()));
        facts
    }

    /// The script runs here, in each shell that is there.
    #[test]
    fn shells_print_facts_of_this_machine() {
        for shell in ["sh", "bash", "busybox sh", "mksh"] {
            let mut words = shell.split(' ');
            let mut command = std::process::Command::new(words.next().unwrap());
            let Ok(out) = command.args(words).arg("-c").arg(SCRIPT).output() else { continue };
            // An emulator starts programs that are not there, too.
            if out.status.code() == Some(127) {
                continue;
            }
            let facts = facts(&String::from_utf8_lossy(&out.stdout));
            let order = if cfg!(target_endian = "big") { "big" } else { "little" };
            // Tests of other machines run in an emulator; the shell does not.
            let is_emulated = facts.machine != std::env::consts::ARCH;
            assert!(is_emulated || facts.word == Some((usize::BITS, order)), "{shell}: {facts:?}");
            assert!(facts.word.is_some(), "{shell}: {facts:?}");
            assert!(
                facts.has_head && facts.has_cksum && facts.available_kib > Some(1024),
                "{shell}: {facts:?}"
            );
            assert!(facts.uid.is_some() && facts.kernel() > Some((3, 0)), "{shell}: {facts:?}");
            assert!(
                facts.folders().iter().any(|f| f.path == "/tmp" && f.free_kib.is_some()),
                "{shell}: {facts:?}"
            );
        }
    }

    #[test]
    fn a_folder_in_memory_that_may_execute_is_first() {
        let facts = facts(
            "mount / ext4 rw,relatime\nmount /dev/shm tmpfs rw,nosuid,noexec\nmount /run tmpfs rw\nmount /tmp ext4 rw,noexec\n\
             folder /dev/shm 1000\nfolder /tmp\nfolder /run 500\nfolder /var/tmp 7\nfolder ../etc 1\nfolder /a;b 1",
        );
        let names: Vec<_> =
            facts.folders().iter().map(|f| (f.path.clone(), f.is_memory, f.may_execute)).collect();
        let expected = [
            ("/run", true, true),
            ("/var/tmp", false, true),
            ("/dev/shm", true, false),
            ("/tmp", false, false),
        ];
        assert_eq!(names, expected.map(|(path, memory, execute)| (path.to_owned(), memory, execute)));
    }

    #[test]
    fn machines_without_a_program_are_named_with_the_reason() {
        let unfit = |text: &str| facts(text).unfit();
        assert_eq!(
            unfit("machine armv7l\nrelease 6.1.0\ncpu half thumb fastmult edsp"),
            Some("the processor has no VFPv3 (FPU)".to_owned())
        );
        assert_eq!(unfit("machine armv7l\nrelease 6.1.0\ncpu vfpv3d16 tls"), None);
        assert_eq!(
            unfit("machine i686\nrelease 6.1.0\ncpu fpu sse"),
            Some("the processor has no SSE2".to_owned())
        );
        assert_eq!(
            unfit("machine x86_64\nrelease 2.6.32-5"),
            Some("Linux 2.6.32-5 is older than 3.2".to_owned())
        );
        assert_eq!(unfit("machine armv7l\nrelease 4.4.0"), None, "an unknown processor is tried");
        assert_eq!(facts("machine mips").program_machine(), None);
    }

    #[test]
    fn memory_of_cma_is_not_available_to_a_recording() {
        let board = facts("release 6.1.0\navailable 25900 kB\nfree 22000 kB\ncma 10848 kB");
        assert_eq!(board.available_kib, Some(15_052));
        assert!(
            board.available_kib < Some(board.memory_min_kib()),
            "OOM on a board of 64 MiB, 16 of them CMA"
        );
        let board = facts("release 6.1.0\navailable 26264 kB\ncma 0 kB");
        assert!(board.available_kib > Some(board.memory_min_kib() + 1500), "a board of 64 MiB");
        assert_eq!(facts("free 900 kB\ncma ").available_kib, Some(900), "a kernel without CMA");
        assert_eq!(facts("release 6.12.1").memory_min_kib(), 6 << 10);
    }
}
