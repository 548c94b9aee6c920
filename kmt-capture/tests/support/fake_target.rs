//! A folder in place of tracefs, on which the script of `remote` runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::desk::Desk;

/// The target. `dd` reads a buffer for ever, as on kernels before 6.12, and an instance cannot be removed while it does.
pub struct FakeTarget {
    folder: PathBuf,
    /// Command of its shell.
    pub via: String,
}

const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
    \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";

/// Programs of the target; AT is its folder.
const PROGRAMS: [(&str, &str); 4] = [
    ("uname", "[ \"$1\" = -m ] && { echo mips; exit; }\nexec /bin/uname \"$@\"\n"),
    (
        "mkdir",
        "/bin/mkdir \"$@\" || exit\necho \"$@\" >> AT/made\ncase $* in */instances/kmt-snippet-*)\n\
         /bin/mkdir -p $1/events/kmem/kmalloc $1/per_cpu/cpu0 $1/options\necho 0 > $1/events/kmem/kmalloc/enable\n\
         echo 'entries: 5' > $1/per_cpu/cpu0/stats; : > $1/per_cpu/cpu0/trace_pipe_raw; cp AT/page $1/events/header_page\nesac\n",
    ),
    (
        "rmdir",
        "[ -e AT/reads ] && kill -0 $(cat AT/reads) 2> /dev/null && exit 1\n\
         case $* in */instances/*) exec rm -rf \"$@\" ;; esac\nexec /bin/rmdir \"$@\"\n",
    ),
    ("dd", "case $* in *trace_pipe_raw*) echo $$ > AT/reads; exec sleep 988 ;; esac\nexec /bin/dd \"$@\"\n"),
];

impl FakeTarget {
    /// In a desk's folder, with this shell.
    pub fn new(desk: &Desk, shell: &str) -> Self {
        let folder = desk.path("target");
        for name in ["bin", "tracing/instances", "tracing/events/kmem/kmalloc"] {
            fs::create_dir_all(folder.join(name)).unwrap();
        }
        fs::write(folder.join("page"), HEADER_PAGE).unwrap();
        fs::write(folder.join("tracing/trace_clock"), "[mono]\n").unwrap();
        let at = folder.display().to_string();
        for (name, text) in PROGRAMS {
            desk.script(&format!("target/bin/{name}"), &format!("#!/bin/sh\n{}", text.replace("AT", &at)));
        }
        let path = format!("{at}/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        let login = format!("#!/bin/sh\necho $$ > {at}/shell\nexec env PATH={path} T={at}/tracing {shell}\n");
        Self { via: desk.script("target/login", &login), folder }
    }

    /// A file of the target.
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.folder.join(name)).unwrap_or_default()
    }

    /// Waits until the script records, or copies buffers.
    pub fn wait_for(&self, copies: bool) {
        let begin = Instant::now();
        let is_on = |path: &PathBuf| fs::read(path.join("tracing_on")).is_ok_and(|on| on == b"1\n");
        while if copies { self.read("reads").is_empty() } else { !self.instances().iter().any(is_on) } {
            assert!(begin.elapsed() < Duration::from_secs(60), "the script does not get there");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn instances(&self) -> Vec<PathBuf> {
        let found = fs::read_dir(self.folder.join("tracing/instances")).unwrap();
        found.map(|entry| entry.unwrap().path()).collect()
    }

    /// Folders and instances of the script, and the process that reads its buffer.
    pub fn left(&self) -> Vec<PathBuf> {
        let mut left = self.instances();
        let made = self.read("made");
        let folders = made.lines().filter_map(|line| line.strip_suffix("/out")).map(PathBuf::from);
        left.extend(folders.filter(|folder| folder.exists()));
        let reads = Path::new("/proc").join(self.read("reads").trim()).join("cmdline");
        if fs::read(&reads).is_ok_and(|words| words.starts_with(b"sleep\x00988")) {
            left.push(reads);
        }
        left
    }
}

impl Drop for FakeTarget {
    fn drop(&mut self) {
        // A test that fails leaves no reader.
        for path in self.left().iter().filter(|path| path.starts_with("/proc")) {
            let pid = path.components().nth(2).and_then(|pid| pid.as_os_str().to_str()?.parse().ok());
            pid.into_iter().for_each(|pid| crate::desk::signal(pid, libc::SIGKILL));
        }
    }
}
