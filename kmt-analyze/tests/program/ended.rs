//! The end of the program before its work is done: by a signal, by a file that shrinks, by an output that cannot be
//! written. Nothing unfinished stays behind.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use kmt_common::early_end::is_ignored;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::files::{Scratch, data, run, stderr};
use crate::support::swap::Swapper;

/// Commands that write a file, or a directory of files.
const WRITERS: [&[&str]; 11] = [
    &["slice"],
    &["recover"],
    &["anonymize"],
    &["export", "perfetto"],
    &["export", "pprof"],
    &["export", "dhat"],
    &["export", "folded"],
    &["export", "csv", "--of", "events"],
    &["export", "ndjson"],
    &["export", "sqlite", "--events"],
    &["export", "parquet"],
];

/// A capture many times over, each time later than the time before: what writes it takes a while.
fn long(scratch: &Scratch) -> PathBuf {
    const TIMES: u64 = 24;
    const LATER: u64 = 1 << 36;
    scratch.changed("x86_64-6.1", |capture| {
        for cpu in fs::read_dir(capture.join("tracefs/per_cpu")).unwrap() {
            let path = cpu.unwrap().path().join("trace_pipe_raw");
            let once = fs::read(&path).unwrap();
            let mut all = Vec::new();
            for time in 0..TIMES {
                for sub_buffer in once.chunks(4096) {
                    let (stamp, rest) = sub_buffer.split_at(8);
                    let stamp = u64::from_le_bytes(stamp.try_into().unwrap()) + time * LATER;
                    all.extend_from_slice(&stamp.to_le_bytes());
                    all.extend_from_slice(rest);
                }
            }
            fs::write(path, all).unwrap();
        }
    })
}

fn start(args: &[&str], file: &Path, output: &Path) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kmt-analyze"));
    command.args(args).arg(file).arg("-o").arg(output).stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Waits until an unfinished file is below `folder`; says whether the program still runs.
fn has_begun(child: &mut Child, folder: &Path) -> bool {
    let start = Instant::now();
    while files(folder).iter().all(|name| !name.ends_with(".part")) {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "nothing is written");
        std::thread::sleep(Duration::from_micros(300));
    }
    true
}

/// All files and folders below one.
fn files(folder: &Path) -> Vec<String> {
    let mut out = Vec::new();
    for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()) {
        if path.is_dir() {
            out.extend(files(&path));
        }
        out.push(path.display().to_string());
    }
    out
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

fn ended(mut child: Child) -> (ExitStatus, String) {
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    (child.wait().unwrap(), said)
}

#[test]
fn a_signal_removes_what_is_unfinished_and_ends_the_program_itself() {
    let scratch = Scratch::new();
    let file = long(&scratch);
    let signals = [Signal::INT, Signal::TERM, Signal::HUP];
    let signals: Vec<Signal> = signals.into_iter().filter(|s| !is_ignored(s.as_raw())).collect();
    let folder = scratch.0.join("made");
    for (number, args) in WRITERS.iter().enumerate() {
        let signal = signals[number % signals.len()];
        // On a busy machine the program can be done before the signal comes.
        let is_cut_off = (0..10).any(|_| is_cut_off(args, &file, &folder, signal));
        assert!(is_cut_off, "{args:?} ended too early");
    }
}

/// Sends a signal as soon as something is written; says whether that came before the end.
fn is_cut_off(args: &[&str], file: &Path, folder: &Path, signal: Signal) -> bool {
    fs::create_dir(folder).unwrap();
    let mut child = start(args, file, &folder.join("out"));
    let is_cut_off = has_begun(&mut child, folder) && {
        send(&child, signal);
        true
    };
    let (status, said) = ended(child);
    let left = files(folder);
    fs::remove_dir_all(folder).unwrap();
    assert!(left.iter().all(|name| !name.ends_with(".part")), "{args:?} leaves {left:?}");
    if !is_cut_off || status.success() || left.iter().any(|name| name.ends_with("/out")) {
        return false;
    }
    assert_eq!(status.signal(), Some(signal.as_raw()), "{args:?}: {status} {said}");
    assert_eq!(left, Vec::<String>::new(), "{args:?}");
    true
}

#[test]
fn a_signal_that_is_ignored_stays_ignored() {
    let scratch = Scratch::new();
    let file = long(&scratch);
    let folder = scratch.0.join("made");
    fs::create_dir(&folder).unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_kmt-analyze"), "slice"]);
    command.arg(&file).arg("-o").arg(folder.join("out")).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    assert!(has_begun(&mut child, &folder));
    send(&child, Signal::HUP);
    let (status, said) = ended(child);
    assert!(status.success(), "{status} {said}");
    assert!(folder.join("out").is_file());
}

#[test]
fn a_file_that_shrinks_under_a_report_is_an_error_with_a_name() {
    let scratch = Scratch::new();
    let file = long(&scratch);
    let mut command = Command::new(env!("CARGO_BIN_EXE_kmt-analyze"));
    let mut child =
        command.arg("dump").arg(&file).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    // Once the first bytes are there it goes on only until the pipe is full: a small part of the file.
    stdout.read_exact(&mut [0; 100]).unwrap();
    File::options().write(true).open(&file).unwrap().set_len(4096).unwrap();
    let shrunk = Instant::now();
    std::io::copy(&mut stdout, &mut std::io::sink()).unwrap();
    let (status, said) = ended(child);
    println!("ended {:?} after the file shrank", shrunk.elapsed());
    assert_eq!(status.code(), Some(1), "{status} {said}");
    assert!(said.contains("kmt-analyze: ") && said.contains(file.to_str().unwrap()), "{said}");
    assert!(said.contains("became shorter while it was read") && said.contains("hint: "), "{said}");
}

#[test]
fn a_file_that_shrinks_leaves_no_unfinished_output() {
    for args in [&["slice"][..], &["export", "csv", "--of", "events"], &["export", "parquet"]] {
        assert!((0..10).any(|_| shrinks_under(args)), "{args:?} ended too early");
    }
}

/// Makes the input shorter as soon as something is written; says whether that came before the end.
fn shrinks_under(args: &[&str]) -> bool {
    let scratch = Scratch::new();
    let file = long(&scratch);
    let folder = scratch.0.join("made");
    fs::create_dir(&folder).unwrap();
    let mut child = start(args, &file, &folder.join("out"));
    if has_begun(&mut child, &folder) {
        send(&child, Signal::STOP);
        File::options().write(true).open(&file).unwrap().set_len(4096).unwrap();
        send(&child, Signal::CONT);
    }
    let (status, said) = ended(child);
    if status.success() {
        return false;
    }
    assert_eq!(status.code(), Some(1), "{args:?}: {status} {said}");
    assert!(said.contains("became shorter while it was read"), "{args:?}: {said}");
    assert_eq!(files(&folder), Vec::<String>::new(), "{args:?} leaves files");
    true
}

#[test]
fn what_cannot_be_written_is_told_before_any_work() {
    let scratch = Scratch::new();
    let (folder, plain) = (scratch.0.join("folder"), scratch.0.join("plain"));
    fs::create_dir(&folder).unwrap();
    fs::write(&plain, "").unwrap();
    // There is no input: a program that opens it first reports that instead.
    let input = scratch.0.join("no-input.kmt");
    for args in WRITERS {
        let is_set = args.contains(&"parquet");
        let (taken, told) = if is_set { (&plain, "is not a directory") } else { (&folder, "is a directory") };
        let below = scratch.0.join(if is_set { "plain/out" } else { "none/out" });
        for (output, told) in [(taken, told), (&below, if is_set { told } else { "creating" })] {
            let mut args = args.to_vec();
            args.extend(["--force", "-o", output.to_str().unwrap()]);
            let output = run(&args, &input);
            assert_eq!(output.status.code(), Some(1), "{args:?}");
            assert!(stderr(&output).contains(told), "{args:?}: {}", stderr(&output));
        }
    }
}

#[test]
fn a_link_in_the_place_of_a_pipe_is_not_followed() {
    const TRIES: usize = 200;
    let scratch = Scratch::new();
    let file = scratch.convert(&data("armhf-6.1"));
    let folder = scratch.0.join("shared");
    fs::create_dir(&folder).unwrap();
    let swapper = Swapper::start(&folder);
    let mut written = 0;
    for number in 0..TRIES {
        let command: &[&str] =
            if number % 4 < 2 { &["recover"] } else { &["export", "csv", "--of", "events"] };
        let mut args = command.to_vec();
        args.extend((number % 2 == 1).then_some("--force"));
        let path = swapper.path();
        args.extend(["-o", path.to_str().unwrap()]);
        let output = run(&args, &file);
        assert!(matches!(output.status.code(), Some(0 | 1 | 3)), "{output:?}");
        written += usize::from(output.status.success());
        swapper.assert_harmless();
    }
    assert!(written > 10 && swapper.swaps() > 1000, "{written} written, {} swaps", swapper.swaps());
    println!("{TRIES} tries, {written} of them written, {} swaps", swapper.swaps());
}
