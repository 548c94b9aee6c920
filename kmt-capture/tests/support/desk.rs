//! A desk for `remote`, with shells of this machine in place of a target.
#![allow(dead_code)] // Each test program has its own copy.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use kmt_format::read::Trace;

use crate::support::alone::{TRACING, is_foreign};

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_kmt-capture");

/// A folder, and the programs and folders of others that were there before.
pub struct Desk {
    pub folder: PathBuf,
    pub before: BTreeSet<PathBuf>,
    started: RefCell<Vec<u32>>,
}

impl Desk {
    pub fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("kmt-desk-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self { folder, before: brought(), started: RefCell::default() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// `remote` through this command, with this program for the target.
    pub fn start(&self, via: &str, args: &[&str]) -> Child {
        self.start_without_program(via, &[&["--binary", PROGRAM], args].concat())
    }

    pub fn start_without_program(&self, via: &str, args: &[&str]) -> Child {
        let mut command = Command::new(PROGRAM);
        command.args(["remote", "--via", via, "--force", "-o"]).arg(self.path("out.kmt"));
        // A busy machine may be silent for long; the default is for the tests of silence.
        if !args.contains(&"--line-timeout") {
            command.args(["--line-timeout", "10s"]);
        }
        command.args(args);
        command
            .env("TMPDIR", &self.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        self.started.borrow_mut().push(child.id());
        child
    }

    pub fn run(&self, via: &str, args: &[&str]) -> (Option<i32>, String) {
        let output = self.start(via, args).wait_with_output().unwrap();
        (output.status.code(), told(&output))
    }

    pub fn script(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.display().to_string()
    }

    /// Nothing is left on the target within this time.
    pub fn assert_clean_within(&self, time: Duration) {
        let begin = Instant::now();
        loop {
            let left: Vec<PathBuf> = brought().difference(&self.before).cloned().collect();
            if left.is_empty() {
                return;
            }
            assert!(begin.elapsed() < time, "left on the target after {time:?}: {left:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Events of the file; it must be complete.
    pub fn events(&self) -> u64 {
        let bytes = fs::read(self.path("out.kmt")).unwrap();
        let trace = Trace::open(&bytes).unwrap();
        assert_eq!(trace.damage_count(), 0, "a sound file");
        let count = trace.events().unwrap().count() as u64;
        assert!(!self.path("out.kmt.part").exists());
        count
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        // A test that fails leaves no recorder, which would be in the recordings of others.
        for pid in self.started.borrow().iter() {
            let words = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            if words.contains("\0remote\0") {
                signal(*pid, libc::SIGKILL);
            }
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

pub fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Folders, processes and instances of recorders that `remote` has started.
pub fn brought() -> BTreeSet<PathBuf> {
    let is_ours = |name: &str| {
        name.len() == 20 && name.starts_with("kmt-") && name[4..].bytes().all(|b| b.is_ascii_hexdigit())
    };
    let mut found = BTreeSet::new();
    for folder in ["/dev/shm", "/run", "/tmp", "/var/tmp", "/mnt", "/root", "/home", "/"] {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        found.extend(entries.filter(|e| is_ours(&e.file_name().to_string_lossy())).map(|e| e.path()));
    }
    let instances = fs::read_dir(Path::new(TRACING).join("instances")).into_iter().flatten().flatten();
    found.extend(
        instances
            .map(|e| e.path())
            .filter(|p| !is_foreign(&p.file_name().unwrap_or_default().to_string_lossy())),
    );
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let words = fs::read_to_string(process.path().join("cmdline")).unwrap_or_default();
        if words.contains("--line\0")
            || words == "sleep\x004321\0"
            || words.contains("/script\0") && words.contains("/kmt-")
        {
            found.insert(process.path());
        }
    }
    found
}

/// A `uname` of a machine that no program is built for.
pub fn other_machine(desk: &Desk) -> String {
    fs::create_dir_all(desk.path("bin")).unwrap();
    desk.script("bin/uname", "#!/bin/sh\n[ \"$1\" = -m ] && { echo mips; exit; }\nexec /bin/uname \"$@\"\n");
    format!("env PATH={}:/usr/sbin:/usr/bin:/sbin:/bin bash", desk.path("bin").display())
}

/// A shell in place of a target: answers the greeting and the questions for facts, then does `case`.
pub fn liar(desk: &Desk, name: &str, case: &str) -> String {
    let text = format!(
        "#!/bin/bash\nread -r hello; N=${{hello##* }}; printf '\\nKMT-%s hello\\n' $N\n\
         facts() {{ while read -r l; do [[ $l == 'echo \"KMT-'*' end\"' ]] && break; done; printf '%s\\n' \"$@\" \"KMT-$N end\"; }}\n\
         until_line() {{ while read -r l; do [[ $l == $1* ]] && break; done; }}\n\
         good() {{ facts \"machine {machine}\" 'release 6.1.0' 'host board' 'uid 0' 'available 900000' 'mount /run tmpfs rw' 'folder /run 900000' 'has head'; }}\n\
         install() {{ good; until_line 'folder exec'; echo \"KMT-$N folder /run/kmt-$N\"; until_line take; set -- $l; echo \"KMT-$N ready\"; head -c $2 > /dev/null\n\
         echo \"KMT-$N got $2\"; until_line chmod; echo \"KMT-$N version kmt-capture 0\"; until_line /run; }}\n\
         frame() {{ printf \"$1\\\\x$(printf %02x $2)\\\\x00\\\\x00\\\\x00\"; }}\n{case}\n",
        machine = std::env::consts::ARCH
    );
    format!("bash {}", desk.script(name, &text))
}

pub fn signal(pid: u32, signal: i32) {
    // SAFETY: `kill` takes two numbers.
    unsafe { libc::kill(pid as i32, signal) };
}
