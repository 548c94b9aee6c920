//! The process boundary of kmt-capture: exit codes, messages, and what is left behind.

mod support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use kmt_format::read::Trace;
use support::folder::copy;
use support::skip::{Lack, skip};

/// A directory of its own, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name =
            format!("kmt-capture-test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// A copy of a real capture that a test may damage.
    fn capture(&self, name: &str) -> PathBuf {
        let to = self.0.join(name);
        copy(&data(name), &to);
        to
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Names of what is there besides the captures.
    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap().map(|e| e.unwrap());
        entries.filter(|e| !e.path().is_dir()).map(|e| e.file_name().into_string().unwrap()).collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../kmt-format/tests/data").join(name)
}

fn run(args: &[&dyn AsRef<std::ffi::OsStr>]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kmt-capture")).args(args.iter().map(|a| a.as_ref())).output().unwrap()
}

fn convert(input: &Path, output: &Path) -> Output {
    run(&[&"convert", &input, &"-o", &output])
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The conversion fails with exit code 1 and a message that says all of `parts`, and leaves nothing behind.
fn fails(scratch: &Scratch, input: &Path, parts: &[&str]) {
    let output = convert(input, &scratch.path("out.kmt"));
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{message}");
    for part in parts.iter().chain(&["hint: "]) {
        assert!(message.contains(part), "{part:?} is not in {message:?}");
    }
    assert!(scratch.files().is_empty(), "{:?}", scratch.files());
}

#[test]
fn converts_every_kind_of_target() {
    for name in ["x86_64-6.1", "x86_64-6.12", "s390x-6.1", "armhf-6.1"] {
        let scratch = Scratch::new();
        let out = scratch.path("out.kmt");
        let output = convert(&data(name), &out);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let events = fs::read_to_string(data(name).join("trace.txt")).unwrap().lines().count();
        assert!(
            stderr(&output).contains(&format!("{} events of ", kmt_common::text::grouped(events as u64))),
            "{}",
            stderr(&output)
        );
        assert_eq!(fs::metadata(&out).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(scratch.files(), ["out.kmt"]);
        // The same input gives the same file, also when the tracefs tree itself is named, and through a pipe.
        let again = scratch.path("again.kmt");
        assert_eq!(convert(&data(name).join("tracefs"), &again).status.code(), Some(0));
        assert_eq!(fs::read(&out).unwrap(), fs::read(&again).unwrap());
        let piped = run(&[&"convert", &data(name), &"-o", &"-"]);
        assert_eq!(piped.stdout, fs::read(&out).unwrap());
    }
}

#[test]
fn optional_files_are_optional_and_missed() {
    let scratch = Scratch::new();
    let capture = scratch.capture("x86_64-6.1");
    for file in ["kallsyms", "modules", "uname", "pagesize"] {
        fs::remove_file(capture.join(file)).unwrap();
    }
    for file in ["trace_clock", "trace_options", "saved_cmdlines", "per_cpu/cpu1/stats"] {
        fs::remove_file(capture.join("tracefs").join(file)).unwrap();
    }
    let output = convert(&capture, &scratch.path("out.kmt"));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for missing in [
        "kallsyms",
        "modules",
        "uname",
        "pagesize",
        "trace_clock",
        "trace_options",
        "saved_cmdlines",
        "stats",
    ] {
        assert!(stderr(&output).contains(&format!("note: no {missing}")), "{missing}: {}", stderr(&output));
    }
}

#[test]
fn a_directory_that_is_no_tracefs() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path("empty")).unwrap();
    fails(&scratch, &scratch.path("empty"), &["empty is not a copy of tracefs", "per_cpu/"]);
    let capture = scratch.capture("armhf-6.1");
    fails(
        &scratch,
        &capture.join("modules"),
        &["modules: no line is an event of a trace; the first is", "a trace.dat, a perf.data"],
    );
    fails(
        &scratch,
        &capture.join("tracefs/per_cpu/cpu0/trace_pipe_raw"),
        &["is not a recording that convert reads"],
    );
    fs::write(capture.join("tracefs/trace_marker"), "").unwrap();
    fails(&scratch, &capture, &["live tracefs"]);
}

#[test]
fn missing_formats_and_header() {
    let scratch = Scratch::new();
    let capture = scratch.capture("s390x-6.1");
    let tracefs = capture.join("tracefs");
    // One that is missing costs its events (tests/boots.rs); if none fits, none can be decoded.
    for entry in fs::read_dir(tracefs.join("events/kmem")).unwrap().map(|entry| entry.unwrap().path()) {
        let text = fs::read_to_string(entry.join("format")).unwrap();
        fs::write(entry.join("format"), text.replace("\nID: ", "\nID: 60")).unwrap();
    }
    fails(&scratch, &capture, &["trace_pipe_raw: no event has a format: id ", "copy events/*/*/format"]);
    fs::remove_dir_all(tracefs.join("events/kmem")).unwrap();
    fails(&scratch, &capture, &["has no SYSTEM/EVENT/format"]);
    fs::remove_file(tracefs.join("events/header_page")).unwrap();
    let capture = scratch.capture("armhf-6.1");
    fs::remove_file(capture.join("tracefs/events/header_page")).unwrap();
    fails(&scratch, &capture, &["events/header_page is missing"]);
    fs::write(capture.join("tracefs/events/header_page"), "nonsense").unwrap();
    fails(&scratch, &capture, &["events/header_page", "no field `timestamp`"]);
}

#[test]
fn empty_buffers() {
    let scratch = Scratch::new();
    let capture = scratch.capture("armhf-6.1");
    let raw = |cpu: u32| capture.join(format!("tracefs/per_cpu/cpu{cpu}/trace_pipe_raw"));
    (0..3).for_each(|cpu| fs::write(raw(cpu), "").unwrap());
    fails(&scratch, &capture, &["the ring buffers are empty"]);
    (0..3).for_each(|cpu| fs::write(raw(cpu), vec![0; 8192]).unwrap());
    fails(&scratch, &capture, &["no sub-buffer has events"]);
    (0..3).for_each(|cpu| fs::remove_file(raw(cpu)).unwrap());
    fails(&scratch, &capture, &["has no cpuN/trace_pipe_raw"]);
}

#[test]
fn outputs_that_cannot_be_written() {
    let scratch = Scratch::new();
    let nowhere = convert(&data("armhf-6.1"), &scratch.path("no/such/out.kmt"));
    assert_eq!(nowhere.status.code(), Some(1));
    assert!(
        stderr(&nowhere).contains("creating ") && stderr(&nowhere).contains("hint: "),
        "{}",
        stderr(&nowhere)
    );
    let full = convert(&data("armhf-6.1"), Path::new("/dev/full"));
    assert_eq!(full.status.code(), Some(1));
    assert!(
        stderr(&full).contains("writing /dev/full: No space left") && stderr(&full).contains("hint: "),
        "{}",
        stderr(&full)
    );
    let directory = convert(&data("armhf-6.1"), &scratch.0);
    assert_eq!(directory.status.code(), Some(1));
}

#[test]
fn existing_files_are_kept_unless_forced() {
    let scratch = Scratch::new();
    let (out, precious) = (scratch.path("out.kmt"), scratch.path("precious"));
    fs::write(&precious, "precious").unwrap();
    symlink(&precious, &out).unwrap();
    let refused = convert(&data("armhf-6.1"), &out);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("already exists\nhint: --force"), "{}", stderr(&refused));
    let forced = run(&[&"convert", &data("armhf-6.1"), &"--force", &"-q", &"-o", &out]);
    assert_eq!(forced.status.code(), Some(0), "{}", stderr(&forced));
    assert_eq!(stderr(&forced), "");
    assert_eq!(fs::read_to_string(&precious).unwrap(), "precious", "a link is replaced, not followed");
    assert!(fs::symlink_metadata(&out).unwrap().is_file());
}

#[test]
fn damaged_input_costs_only_itself() {
    let scratch = Scratch::new();
    let capture = scratch.capture("x86_64-6.1");
    let path = capture.join("tracefs/per_cpu/cpu1/trace_pipe_raw");
    let mut raw = fs::read(&path).unwrap();
    // The first event of the second sub-buffer gets a length that reaches past the committed data.
    raw[4096 + 16..4096 + 24].copy_from_slice(&[0, 0, 0, 0, 0xff, 0xff, 0, 0]);
    fs::write(&path, raw).unwrap();
    let output = convert(&capture, &scratch.path("out.kmt"));
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("cpu1/trace_pipe_raw at offset 4112: damaged sub-buffer"),
        "{}",
        stderr(&output)
    );
    assert!(scratch.path("out.kmt").exists());
}

#[test]
fn losses_end_with_exit_code_3() {
    let scratch = Scratch::new();
    let capture = scratch.capture("x86_64-6.1");
    let path = capture.join("tracefs/per_cpu/cpu2/stats");
    let stats = fs::read_to_string(&path).unwrap();
    fs::write(&path, stats.replace("dropped events: 0", "dropped events: 17")).unwrap();
    let output = convert(&capture, &scratch.path("out.kmt"));
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("17 counted in the kernel's stats"), "{}", stderr(&output));
}

/// Saved ring buffers that kept the newest events: only a mark that equals the kernel's `overrun`, in a buffer of which nothing
/// was read before, is by design.
#[test]
fn events_that_a_ring_overwrote_are_not_lost() {
    let scratch = Scratch::new();
    let capture = scratch.capture("x86_64-6.1");
    let cpu = capture.join("tracefs/per_cpu/cpu2");
    let stats = fs::read_to_string(cpu.join("stats")).unwrap();
    let mut raw = fs::read(cpu.join("trace_pipe_raw")).unwrap();
    // A count behind the data of the first sub-buffer, which has room for it.
    let len = u64::from_le_bytes(raw[8..16].try_into().unwrap());
    assert!(len + 8 <= 4080);
    raw[8..16].copy_from_slice(&(len | 3 << 30).to_le_bytes());
    raw[16 + len as usize..][..8].copy_from_slice(&700_u64.to_le_bytes());
    fs::write(cpu.join("trace_pipe_raw"), &raw).unwrap();
    let options = capture.join("tracefs/trace_options");
    let overwrites = fs::read_to_string(&options).unwrap();
    let without = overwrites.replace("\noverwrite\n", "\nnooverwrite\n");
    assert_ne!(without, overwrites);
    for (overrun, read, options_text, code) in
        [(700, 0, &overwrites, 0), (701, 0, &overwrites, 3), (700, 1, &overwrites, 3), (700, 0, &without, 3)]
    {
        let counters = stats
            .replace("overrun: 0\ncommit", &format!("overrun: {overrun}\ncommit"))
            .replace("read events: 0", &format!("read events: {read}"));
        fs::write(cpu.join("stats"), counters).unwrap();
        fs::write(&options, options_text).unwrap();
        let output = run(&[&"convert", &"--force", &capture, &"-o", &scratch.path("out.kmt")]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{overrun} {read}: {said}");
        assert_eq!(said.contains("events are missing"), code == 3, "{said}");
        assert_eq!(said.contains("700 older events were overwritten"), code == 0, "{said}");
    }
}

#[test]
fn usage_errors_and_help() {
    assert_eq!(run(&[&"convert"]).status.code(), Some(2));
    assert_eq!(run(&[&"frobnicate"]).status.code(), Some(2));
    assert_eq!(run(&[]).status.code(), Some(2), "no arguments: the help, and not success");
    assert_eq!(run(&[&"--help"]).status.code(), Some(0));
    assert!(String::from_utf8(run(&[&"completions", &"bash"]).stdout).unwrap().contains("kmt-capture"));
    assert!(String::from_utf8(run(&[&"man"]).stdout).unwrap().contains(".TH"));
    let page = String::from_utf8(run(&[&"man", &"record"]).stdout).unwrap();
    assert!(page.contains("kmt-capture-record") && page.contains("snapshot"), "{page}");
    let mistyped = run(&[&"man", &"recrod"]);
    assert_eq!(mistyped.status.code(), Some(2));
    assert!(
        stderr(&mistyped).contains("commands are record, check, remote, snippet"),
        "{}",
        stderr(&mistyped)
    );
    for command in ["record", "check", "remote", "snippet", "clean", "convert", "completions", "man"] {
        for args in [[command, "--help"], ["man", command]] {
            let output = run(&[&args[0], &args[1]]);
            assert!(output.status.success() && output.stdout.len() > 100, "{args:?}: {}", stderr(&output));
        }
    }
}

#[test]
fn a_kmt_file_is_written_anew() {
    let scratch = Scratch::new();
    let (plain, small, again) =
        (scratch.path("plain.kmt"), scratch.path("small.kmt"), scratch.path("again.kmt"));
    assert_eq!(convert(&data("x86_64-6.1"), &plain).status.code(), Some(0));
    let output = run(&[&"convert", &plain, &"-o", &small, &"--compress", &"lz4"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let len = |path: &Path| fs::metadata(path).unwrap().len();
    assert!(len(&small) < len(&plain) * 3 / 4, "{} of {}", len(&small), len(&plain));
    assert_eq!(run(&[&"convert", &small, &"-o", &again]).status.code(), Some(0));
    assert!(fs::read(&again).unwrap() == fs::read(&plain).unwrap(), "back to the same bytes");
    // Cut in the middle: what is there is kept, what is missing is said, and the exit code tells.
    let bytes = fs::read(&plain).unwrap();
    fs::write(scratch.path("torn.kmt"), &bytes[..bytes.len() / 2]).unwrap();
    let output = run(&[&"convert", &scratch.path("torn.kmt"), &"-o", &again, &"--force"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("has no end"), "{}", stderr(&output));
    let output = run(&[&"convert", &again, &"-o", &small, &"--force"]);
    assert_eq!(output.status.code(), Some(3), "its copies say that it was cut: {}", stderr(&output));
    assert!(stderr(&output).contains("ended unexpectedly"), "{}", stderr(&output));
    let output = run(&[&"convert", &plain, &"-o", &again, &"--force", &"--verbatim"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
}

/// The file that `convert` makes of an input, as bytes of the file.
fn converted(scratch: &Scratch, input: &Path, stdin: Option<&[u8]>) -> Vec<u8> {
    let output = scratch.path("made.kmt");
    let mut child = Command::new(env!("CARGO_BIN_EXE_kmt-capture"));
    child.arg("convert").arg(input).arg("-o").arg(&output).arg("--force").arg("--quiet");
    let mut child = child.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), stdin.unwrap_or_default()).unwrap();
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success(), "{}: {}", input.display(), stderr(&done));
    fs::read(output).unwrap()
}

#[test]
fn compressed_files_standard_input_and_directories_of_one_recording() {
    let scratch = Scratch::new();
    let text = fs::read(data("x86_64-6.1").join("trace.txt")).unwrap();
    let alone = scratch.path("alone");
    fs::create_dir(&alone).unwrap();
    let plain = alone.join("trace.txt");
    fs::write(&plain, &text).unwrap();
    let expected = converted(&scratch, &plain, None);
    // The identity of a trace follows from its bytes, so all of these are the same file.
    assert!(converted(&scratch, Path::new("-"), Some(&text)) == expected, "standard input");
    assert!(converted(&scratch, &alone, None) == expected, "a directory that holds only a text");
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gz, &text).unwrap();
    let gz = gz.finish().unwrap();
    fs::write(scratch.path("trace.txt.gz"), &gz).unwrap();
    assert!(converted(&scratch, &scratch.path("trace.txt.gz"), None) == expected, "gzip");
    assert!(converted(&scratch, Path::new("-"), Some(&gz)) == expected, "gzip on standard input");
    let utf16: Vec<u8> = std::iter::once(0xfeff)
        .chain(String::from_utf8(text.clone()).unwrap().replace('\n', "\r\n").encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect();
    assert!(!converted(&scratch, Path::new("-"), Some(&utf16)).is_empty(), "UTF-16 with CRLF");
    #[cfg(feature = "zstd")]
    {
        fs::write(scratch.path("trace.txt.zst"), zstd::encode_all(&text[..], 1).unwrap()).unwrap();
        assert!(converted(&scratch, &scratch.path("trace.txt.zst"), None) == expected, "zstd");
    }
    match Command::new("xz").arg("-c").arg(&plain).output() {
        Ok(packed) => {
            fs::write(scratch.path("trace.txt.xz"), packed.stdout).unwrap();
            assert!(converted(&scratch, &scratch.path("trace.txt.xz"), None) == expected, "xz");
        }
        Err(_) => skip(Lack::Program, "xz is not installed"),
    }
    // Cut off, it is converted until there: whole lines, and a mark on each CPU behind them.
    let cut = &gz[..gz.len() / 2];
    let mut content = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(cut), &mut content).unwrap_err();
    let whole_lines = content.iter().rposition(|&b| b == b'\n').unwrap();
    let before = converted(&scratch, Path::new("-"), Some(&content[..=whole_lines]));
    fs::write(scratch.path("cut.gz"), cut).unwrap();
    let output = convert(&scratch.path("cut.gz"), &scratch.path("cut.kmt"));
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("cut.gz is compressed and cut off"), "{}", stderr(&output));
    let file = fs::read(scratch.path("cut.kmt")).unwrap();
    let events = |trace: &Trace<'_>| trace.events().unwrap().count();
    let (cut, before) = (Trace::open(&file).unwrap(), Trace::open(&before).unwrap());

    assert_eq!(events(&cut), events(&before));
    // Damage in the content is refused: it can read as anything.
    let mut damaged = gz.clone();
    damaged[gz.len() / 2..gz.len() / 2 + 64].fill(0xff);
    fs::write(scratch.path("damaged.gz"), damaged).unwrap();
    let output = convert(&scratch.path("damaged.gz"), &scratch.path("out.kmt"));
    assert!(stderr(&output).contains("the file is damaged or incomplete"), "{}", stderr(&output));
    fs::write(alone.join("other.txt"), &text).unwrap();
    let output = convert(&alone, &scratch.path("out.kmt"));
    assert!(stderr(&output).contains("holds 2 recordings"), "{}", stderr(&output));
}

#[test]
fn a_file_without_events_of_the_allocators_says_so() {
    let scratch = Scratch::new();
    let line = |event: &str| format!("      sh-77      [001] d..1.     1.500000: {event}\n");
    let input = scratch.path("trace.txt");
    for (text, says) in [
        (line("sched_wakeup: comm=sh pid=1 prio=120 target_cpu=001"), true),
        (line("kfree: call_site=f+0x1/0x20 ptr=ffff888100001000"), false),
    ] {
        fs::write(&input, text).unwrap();
        let output = run(&[&"convert", &input, &"-o", &scratch.path("out.kmt"), &"--force"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(stderr(&output).contains("the input has no kmem events"), says, "{}", stderr(&output));
    }
}

#[test]
fn lines_with_several_readings_are_counted() {
    let scratch = Scratch::new();
    let input = scratch.path("trace.txt");
    let line = |task: &str| {
        format!("{task}-33 [002] ..... 1.700000: kfree: call_site=f+0x1/0x20 ptr=ffff888100001000\n")
    };
    let text = |padding: usize| {
        ["sh", "bash", "a-1 [7] 9.0: b:"].map(|task| line(&format!("{task:>padding$}"))).concat()
    };
    // Padded names end in one column, as tools print them.
    for (padding, is_ambiguous) in [(0, true), (16, false)] {
        fs::write(&input, text(padding)).unwrap();
        let output = run(&[&"convert", &input, &"-o", &scratch.path("out.kmt"), &"--force"]);
        let told = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{told}");
        assert_eq!(told.contains("1 line can be read in several ways"), is_ambiguous, "{told}");
        assert_eq!(told.contains("the first is line 3"), is_ambiguous, "{told}");
        assert!(told.contains("3 events of 1 CPU"), "{told}");
    }
}

#[test]
fn a_cpu_that_cannot_be_is_named() {
    for name in ["cpu4294967295", "cpu4294967296", "cpu99999999999999999999", "cpu01"] {
        let scratch = Scratch::new();
        let capture = scratch.capture("x86_64-6.1");
        let folder = capture.join("tracefs/per_cpu").join(name);
        copy(&capture.join("tracefs/per_cpu/cpu0"), &folder);
        fails(&scratch, &capture, &[folder.to_str().unwrap(), "has not the number of a CPU"]);
    }
}
