//! Directories and files that would hang a conversion, take all memory, or bring files of this machine into a trace.
#![cfg(feature = "convert")]

#[path = "support/bounded.rs"]
mod bounded;
#[path = "support/folder.rs"]
mod folder;

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use bounded::{bounded, bounded_by};
use folder::copy;

/// A capture in a directory that goes away with the test, and a secret beside it.
struct Saved(PathBuf);

impl Saved {
    fn new(name: &str) -> Self {
        let top = std::env::temp_dir().join(format!("kmt-hostile-{}-{name}", std::process::id()));
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kmt-format/tests/data/armhf-6.1");
        copy(&data, &top.join("saved"));
        fs::write(top.join("secret"), "root:$6$of this machine").unwrap();
        Self(top)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join("saved").join(name)
    }

    /// Converts it, with a bound on time and memory.
    fn convert(&self, options: &[&str]) -> Output {
        bounded(&self.0.join("saved"), &self.0.join("out.kmt"), options)
    }

    fn is_refused(&self, words: &[&str]) {
        let output = self.convert(&[]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        words.iter().for_each(|word| assert!(said.contains(word), "{word}: {said}"));
        let left: Vec<_> = fs::read_dir(&self.0).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert!(!left.iter().any(|name| name.to_string_lossy().contains("out.kmt")), "{left:?}");
    }
}

impl Drop for Saved {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A file of a length and no content.
fn sparse(path: &Path, len: u64) {
    File::create(path).unwrap().set_len(len).unwrap();
}

fn replace(path: &Path, by: impl FnOnce(&Path)) {
    let _ = fs::remove_file(path);
    by(path);
}

fn fifo(path: &Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o644), 0).unwrap();
}

#[test]
fn a_fifo_is_refused_and_not_waited_for() {
    for name in ["kallsyms", "slabinfo.before", "tracefs/trace_clock", "tracefs/per_cpu/cpu0/trace_pipe_raw"]
    {
        let saved = Saved::new("fifo");
        replace(&saved.path(name), fifo);
        saved.is_refused(&[name, "is a FIFO, not a regular file", "hint: "]);
    }
}

#[test]
fn a_link_to_a_device_is_refused() {
    for name in ["modules", "tracefs/events/header_page", "tracefs/per_cpu/cpu0/stats"] {
        let saved = Saved::new("zero");
        replace(&saved.path(name), |path| symlink("/dev/zero", path).unwrap());
        saved.is_refused(&[name, "is a link that leads out of", "hint: "]);
    }
}

#[test]
fn no_file_of_this_machine_gets_into_a_trace() {
    for (name, to) in [
        ("slabinfo.before", "../secret"),
        ("cpuinfo", "/etc/passwd"),
        ("tracefs/printk_formats", "../../secret"),
        ("tracefs/events/kmem", "/etc"),
        ("tracefs", "/etc"),
    ] {
        let saved = Saved::new("secret");
        let path = saved.path(name);
        if path.is_dir() {
            fs::rename(&path, saved.0.join("away")).unwrap();
        }
        replace(&path, |path| symlink(to, path).unwrap());
        saved.is_refused(&["is a link that leads out of"]);
    }
}

#[test]
fn links_inside_a_directory_are_as_good_as_files() {
    let saved = Saved::new("inside");
    fs::rename(saved.path("kallsyms"), saved.path("kallsyms.of.the.boot")).unwrap();
    symlink("kallsyms.of.the.boot", saved.path("kallsyms")).unwrap();
    let output = saved.convert(&[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!String::from_utf8_lossy(&output.stderr).contains("no kallsyms"));
}

#[test]
fn files_beyond_their_limits_are_refused_by_name() {
    for (name, len, limit) in [
        ("kallsyms", 300 << 20, "kallsyms"),
        ("vmstat.before", 65 << 20, "file"),
        ("tracefs/events/kmem/kmalloc/format", 2 << 20, "format"),
    ] {
        let saved = Saved::new("large");
        sparse(&saved.path(name), len);
        let option = format!("--limit {limit}=SIZE");
        saved.is_refused(&[name, &len.to_string(), "more than the limit of", &option]);
    }
}

#[test]
fn all_files_together_have_a_limit() {
    let saved = Saved::new("budget");
    for name in
        ["slabinfo", "buddyinfo", "zoneinfo", "meminfo", "vmstat", "pagetypeinfo", "iomem", "btf", "config"]
    {
        fs::write(saved.path(name), "a line\n".repeat(100_000)).unwrap();
    }
    let refused = saved.convert(&["--limit", "directory=6M"]);
    let told = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{told}");
    assert!(
        told.contains("with the other files of its directory") && told.contains("--limit directory=SIZE")
    );
}

/// Eight files of 60 MiB that take no disk.
#[test]
fn sparse_files_beside_the_ring_buffers_are_refused() {
    let saved = Saved::new("holes");
    for name in ["slabinfo", "buddyinfo", "zoneinfo", "meminfo", "vmstat", "pagetypeinfo", "iomem", "config"]
    {
        sparse(&saved.path(name), 60 << 20);
    }
    saved.is_refused(&["is not text: it has holes of more than 1 MiB", "hint: "]);
    // A small hole is text that was torn.
    let saved = Saved::new("hole");
    sparse(&saved.path("slabinfo"), 500_000);
    assert!(saved.convert(&[]).status.success());
}

/// The description is written file by file: memory is that of the files, not twice that.
#[test]
fn files_are_in_memory_once() {
    let saved = Saved::new("once");
    for name in ["slabinfo", "buddyinfo", "zoneinfo", "meminfo", "vmstat", "pagetypeinfo"] {
        fs::write(saved.path(name), "a line\n".repeat(5 << 20)).unwrap();
    }
    let out = saved.0.join("out.kmt");
    let output = bounded_by(440 << 10, &saved.0.join("saved"), &out, &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn limits_are_raised_and_lowered_by_name() {
    let saved = Saved::new("option");
    let lowered = saved.convert(&["--limit", "file=10"]);
    assert_eq!(lowered.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&lowered.stderr).contains("more than the limit of 10"));
    let lowered = saved.convert(&["--limit", "raw=4K"]);
    assert!(String::from_utf8_lossy(&lowered.stderr).contains("--limit raw=SIZE"), "{lowered:?}");
    let mut modules = fs::read(saved.path("modules")).unwrap();
    modules.resize(2 << 20, b'\n');
    fs::write(saved.path("modules"), modules).unwrap();
    assert!(saved.convert(&["--limit", "file=1M"]).status.code() == Some(1));
    assert!(saved.convert(&["--limit", "file=3M"]).status.success());
    assert_eq!(saved.convert(&["--limit", "files=3M"]).status.code(), Some(2));
}

#[test]
fn a_sparse_ring_buffer_ends() {
    let saved = Saved::new("sparse");
    let events = |options: &[&str]| {
        let output = saved.convert(options);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        said.lines().find(|line| line.contains(" events of ")).unwrap().split(' ').next().unwrap().to_owned()
    };
    let before = events(&[]);
    let raw = File::options().write(true).open(saved.path("tracefs/per_cpu/cpu0/trace_pipe_raw")).unwrap();
    raw.set_len(20 << 30).unwrap();
    assert_eq!(events(&["--force"]), before);
}

/// Sub-buffers of 8 MiB by `header_page`, and 48 CPUs whose only one ends after its events.
#[test]
fn short_sub_buffers_are_not_padded() {
    const CPUS: usize = 48;
    let saved = Saved::new("short");
    let page = saved.path("tracefs/events/header_page");
    let text = fs::read_to_string(&page).unwrap();
    assert!(text.contains("size:4084;"), "{text}");
    fs::write(&page, text.replace("size:4084;", "size:8388596;")).unwrap();
    let cpu0 = saved.path("tracefs/per_cpu/cpu0");
    let mut raw = fs::read(cpu0.join("trace_pipe_raw")).unwrap();
    let commit = u32::from_le_bytes(raw[8..12].try_into().unwrap()) & 0xfff_ffff;
    raw.truncate(12 + commit as usize);
    fs::write(cpu0.join("trace_pipe_raw"), &raw).unwrap();
    for cpu in 1..CPUS {
        copy(&cpu0, &saved.path(&format!("tracefs/per_cpu/cpu{cpu}")));
    }
    let events = |options: &[&str]| {
        let output = saved.convert(options);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let file = fs::read(saved.0.join("out.kmt")).unwrap();
        let trace = kmt_format::read::Trace::open(&file).unwrap();
        let chunks = trace.streams().values().flat_map(|s| &s.chunks);
        let events: usize = chunks.map(|(chunk, _)| trace.read(chunk).unwrap().records().len()).sum();
        (events, file.len())
    };
    let (taken_apart, len) = events(&[]);
    let (verbatim, verbatim_len) = events(&["--force", "--verbatim"]);
    assert!(taken_apart > CPUS, "{taken_apart}");
    assert_eq!(verbatim, taken_apart);
    assert!(
        verbatim_len < len + 2 * CPUS * raw.len(),
        "{verbatim_len} bytes of {} in all CPUs",
        CPUS * raw.len()
    );
}

#[test]
fn what_lies_beside_a_file_is_read_as_carefully() {
    let saved = Saved::new("beside");
    let text = saved.0.join("trace.txt");
    fs::write(&text, "  sh-77 [000] d..1. 10.000001: kfree: call_site=f+0x1/0x2 ptr=0000000012345678\n")
        .unwrap();
    let out = saved.0.join("out.kmt");
    let plain = bounded(&text, &out, &[]);
    assert!(plain.status.success(), "{plain:?}");
    fifo(&saved.0.join("kallsyms"));
    let refused = bounded(&text, &out, &["--force"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("is a FIFO"), "{refused:?}");
}

/// The part of a text beyond a limit is left out, and the note names the limit.
#[test]
fn what_a_text_holds_beyond_a_limit_is_reported_by_name() {
    let saved = Saved::new("beyond");
    let text = saved.0.join("trace.txt");
    let line = |what: &str| format!("  sh-77 [000] d..1. 10.000001: {what}\n");
    let lines = [
        "one: a=1 b=2 c=3",
        "two: a=1",
        "kfree: call_site=f+0x1/0x2 ptr=0000000012345678",
        "kfree: call_site=g+0x1/0x2 ptr=0000000012345679",
    ];
    fs::write(&text, lines.map(line).concat()).unwrap();
    let told = |options: &[&str]| {
        let output = bounded(&text, &saved.0.join("out.kmt"), &[&["--force"], options].concat());
        assert!(output.status.code() != Some(1), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let plain = told(&[]);
    assert!(!plain.contains("raises the limit"), "{plain}");
    for (name, few, many) in [("layouts", "1", "3"), ("functions", "1", "2"), ("pairs", "2", "3")] {
        let few = told(&["--limit", &format!("{name}={few}")]);
        assert!(few.contains(&format!("--limit {name}=SIZE raises the limit")), "{few}");
        assert_eq!(told(&["--limit", &format!("{name}={many}")]), plain);
    }
}

#[test]
fn a_small_compressed_file_does_not_take_all_memory() {
    let saved = Saved::new("bomb");
    let bomb = saved.0.join("bomb.gz");
    let made =
        Command::new("sh").args(["-c", "head -c 300M /dev/zero | gzip -1 > \"$0\""]).arg(&bomb).status();
    assert!(made.unwrap().success());
    let refused = bounded(&bomb, &saved.0.join("out.kmt"), &[]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("compressed and has more") && said.contains("--limit inflated=SIZE"), "{said}");
}

#[test]
fn memory_that_runs_out_is_an_error_and_no_signal() {
    let saved = Saved::new("memory");
    let large = saved.0.join("large.gz");
    let made =
        Command::new("sh").args(["-c", "head -c 900M /dev/zero | gzip -1 > \"$0\""]).arg(&large).status();
    assert!(made.unwrap().success());
    let limited = "ulimit -c 0; ulimit -v 614400; exec \"$@\"";
    let mut command = Command::new("sh");
    command.args([
        "-c",
        limited,
        "sh",
        env!("CARGO_BIN_EXE_kmt-capture"),
        "convert",
        "--limit",
        "inflated=2G",
    ]);
    let output = command.arg(&large).arg("-o").arg(saved.0.join("out.kmt")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.starts_with("kmt-capture: out of memory: ") && said.contains("hint: "), "{said}");
    let left: Vec<_> = fs::read_dir(&saved.0).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().contains("out.kmt")), "{left:?}");
}

#[test]
fn an_input_that_shrinks_is_an_error_with_a_name() {
    const LINES: u64 = 300_000;
    let saved = Saved::new("shrinks");
    let (text, pipe) = (saved.0.join("trace.txt"), saved.0.join("pipe"));
    let line = |n: u64| {
        let (seconds, micros) = (10 + n / 1_000_000, n % 1_000_000);
        format!("  sh-77 [000] d..1. {seconds}.{micros:06}: kfree: call_site=f+0x1/0x2 ptr=00000000{n:08x}\n")
    };
    fs::write(&text, (0..LINES).map(line).collect::<String>()).unwrap();
    fifo(&pipe);
    let mut command = Command::new(env!("CARGO_BIN_EXE_kmt-capture"));
    command.arg("convert").arg(&text).arg("-q").arg("-o").arg(&pipe);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut reader = File::open(&pipe).unwrap();
    // Once the first bytes are there it waits for a reader, with most of its input unread.
    reader.read_exact(&mut [0; 100]).unwrap();
    File::options().write(true).open(&text).unwrap().set_len(4096).unwrap();
    std::io::copy(&mut reader, &mut std::io::sink()).unwrap();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{said}");
    assert!(said.contains("trace.txt became shorter while it was read") && said.contains("hint: "), "{said}");
}

#[test]
fn names_in_a_directory_do_not_steer_a_terminal() {
    let saved = Saved::new("names");
    let event = saved.path("tracefs/events/\u{1b}[31m\u{202e}\nINJECTED/ev\u{9b}il");
    fs::create_dir_all(&event).unwrap();
    fs::write(event.join("format"), "name: \u{1b}[2J\nID: 7\n").unwrap();
    let output = saved.convert(&[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("note: left out ") && said.contains("INJECTED"), "{said}");
    let is_tame =
        |line: &str| !line.starts_with("INJECTED") && !line.chars().any(kmt_common::text::is_hostile);
    assert!(said.lines().all(is_tame), "{said:?}");
}
