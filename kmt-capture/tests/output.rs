//! Output to a full disk, or without a reader: a message and a code, no panic.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, Stdio};

fn command(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kmt-capture"));
    command.args(words);
    command
}

const COMMANDS: [&[&str]; 5] = [&["check"], &["check", "--json"], &["clean"], &["snippet"], &["man"]];

#[test]
fn a_full_disk_is_told() {
    for words in COMMANDS {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = command(words).stdout(full).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {said}");
        assert!(said.contains("writing to standard output: No space left"), "{words:?}: {said}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    for words in COMMANDS {
        let mut child = command(words).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        // Long before it gets to write anything.
        drop(child.stdout.take());
        let status = child.wait().unwrap();
        // `check` fails where nothing can be recorded.
        assert!(matches!(status.code(), Some(0 | 1)), "{words:?}: {status}");
    }
}

#[test]
fn a_message_that_cannot_be_printed_is_dropped() {
    let folder = std::env::temp_dir().join(format!("kmt-stderr-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (missing, to) = (folder.join("missing"), folder.join("out.kmt"));
    let (missing, to) = (missing.to_str().unwrap(), to.to_str().unwrap());
    let lines = [
        &["convert", SAMPLE, "-o", to, "--force"][..],
        &["convert", missing, "-o", to, "--force"],
        &["record", "--tracefs", missing, "-o", to, "--force"],
        &["check", "--tracefs", missing],
        &["clean", "--tracefs", missing],
        &["record", "--nonsense"],
        &["completions", "bash"],
    ];
    for words in COMMANDS.into_iter().chain(lines) {
        let code =
            |stderr: Stdio| command(words).stdout(Stdio::null()).stderr(stderr).status().unwrap().code();
        let full = File::options().write(true).open("/dev/full").unwrap();
        let expected = code(Stdio::null());
        assert!(matches!(expected, Some(0..=3)), "{words:?}: {expected:?}");
        assert_eq!(code(full.into()), expected, "{words:?}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/sample/x86_64-6.1");

#[test]
fn a_limit_on_the_size_of_files_is_reported_as_a_full_disk_is() {
    let folder = std::env::temp_dir().join(format!("kmt-fsize-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let script =
        format!("ulimit -f 16; exec {} convert {SAMPLE} -o out.kmt", env!("CARGO_BIN_EXE_kmt-capture"));
    let output = Command::new("sh").args(["-c", &script]).current_dir(&folder).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{}: {said}", output.status);
    assert!(said.contains("writing out.kmt: File too large") && said.contains("ulimit -f"), "{said}");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_fifo_without_a_reader_is_named_and_waited_for() {
    let folder = std::env::temp_dir().join(format!("kmt-fifo-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let fifo = folder.join("out.kmt");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let start = || {
        command(&["convert", SAMPLE, "-o", fifo.to_str().unwrap()]).stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut child = start();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.contains("out.kmt has no reader: waiting for one"), "{line}");
    let received = std::fs::read(&fifo).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(kmt_format::read::Trace::open(&received).unwrap().is_finished());
    // With a reader already there, nothing is said, and it gets the same.
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let mut reader = File::options().read(true).custom_flags(flags).open(&fifo).unwrap();
    let mut child = start();
    let (mut len, mut buffer) = (0, vec![0; 1 << 16]);
    loop {
        // Before there is a writer, a read ends at once.
        let has_ended = child.try_wait().unwrap().is_some();
        match reader.read(&mut buffer) {
            Ok(some @ 1..) => len += some,
            _ if has_ended => break,
            _ => std::thread::sleep(std::time::Duration::from_millis(5)),
        }
    }
    assert_eq!(len, received.len());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && !String::from_utf8_lossy(&output.stderr).contains("no reader"));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn cleaning_is_done_whether_it_can_be_printed_or_not() {
    let top = std::env::temp_dir().join(format!("kmt-clean-{}", std::process::id()));
    // No process has these numbers: instances of recorders that are gone.
    let orphans = ["kmt-4194304-1", "kmt-4194304-2"].map(|name| top.join("instances").join(name));
    orphans.iter().for_each(|orphan| std::fs::create_dir_all(orphan).unwrap());
    let full = File::options().write(true).open("/dev/full").unwrap();
    let words = ["clean", "--tracefs", top.to_str().unwrap()];
    let output = command(&words).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let left: Vec<_> = orphans.iter().filter(|orphan| orphan.exists()).collect();
    assert!(left.is_empty(), "{left:?}");
    std::fs::remove_dir_all(top).unwrap();
}

#[test]
fn cleaning_waits_for_another_process_that_cleans() {
    let top = std::env::temp_dir().join(format!("kmt-clean-waits-{}", std::process::id()));
    let orphan = top.join("instances/kmt-4194304-1");
    // A directory that is not empty cannot be removed, like an instance with an open file.
    std::fs::create_dir_all(orphan.join("used")).unwrap();
    let words = ["clean", "--tracefs", top.to_str().unwrap()];
    let cleaner = command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(500));
    std::fs::remove_dir(orphan.join("used")).unwrap();
    let output = cleaner.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!orphan.exists());
    std::fs::remove_dir_all(top).unwrap();
}

#[test]
fn the_version_names_the_release_and_the_format() {
    let output = command(&["--version"]).output().unwrap();
    let expected = concat!("kmt-capture ", env!("CARGO_PKG_VERSION"), " (format 1.0)\n");
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}

#[test]
fn words_of_the_command_line_are_harmless() {
    let word = "a\u{61c}\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}\u{1b}[31mb";
    let option = format!("--{word}");
    for words in [
        &["convert", "--limit", word, "x"][..],
        &["record", "-b", word],
        &["record", &option],
        &["completions", word],
        &["remote", "host", "--", "record", &option],
        &["remote", "host", "--", "record", "-b", word],
        &[word],
    ] {
        let output = command(words).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        let found = said.chars().find(|&c| c != '\n' && kmt_common::text::is_hostile(c));
        assert!(found.is_none() && said.contains("error: "), "{words:?}: {said:?}");
    }
}

/// With few open files, every message names the remedy, and no other one.
#[test]
fn too_few_open_files_are_named_as_the_reason() {
    let folder = std::env::temp_dir().join(format!("kmt-files-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let to = folder.join("out.kmt");
    let mut refused = 0;
    for most in 3..=16 {
        let limit = format!("ulimit -n {most}; exec \"$0\" convert \"$1\" -o \"$2\" --force");
        let output = Command::new("sh")
            .args(["-c", &limit, env!("CARGO_BIN_EXE_kmt-capture"), SAMPLE, to.to_str().unwrap()])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        // The loader of the program needs one, too.
        if output.status.code() != Some(1) {
            continue;
        }
        refused += 1;
        assert!(said.contains("Too many open files"), "{most}: {said}");
        let hints: Vec<&str> = said.lines().filter(|line| line.starts_with("hint: ")).collect();
        assert!(matches!(hints[..], [hint] if hint.contains("ulimit -n")), "{most}: {said}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(refused >= 5, "{refused}");
}

#[test]
fn repeated_recordings_are_refused_before_the_first() {
    let folder = std::env::temp_dir().join(format!("kmt-repeat-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("out-2.kmt"), "other").unwrap();
    std::fs::create_dir_all(folder.join("folder-3.kmt")).unwrap();
    let missing = folder.join("missing");
    let said = |words: &[&str]| {
        let record = ["record", "--tracefs", missing.to_str().unwrap(), "--repeat", "3"];
        let output = command(&[&record[..], words].concat()).current_dir(&folder).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for (words, code, text) in [
        (&["-o", "out.kmt", "--", "true"][..], 1, "out-2.kmt already exists"),
        (&["-o", "folder.kmt", "--force", "--", "true"], 1, "folder-3.kmt is a directory"),
        (&["-o", "-", "--", "true"], 1, "--repeat cannot write several files to -"),
        (&["-o", "out.kmt"], 2, "required"),
        (&["-o", "out.kmt", "--keep-running", "--", "true"], 2, "cannot be used with"),
    ] {
        let (status, said) = said(words);
        assert!(status == Some(code) && said.contains(text), "{words:?}: {status:?}: {said}");
    }
    assert!(!folder.join("out-1.kmt").exists() && !folder.join("out-1.kmt.part").exists());
    assert_eq!(std::fs::read(folder.join("out-2.kmt")).unwrap(), b"other");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Also where an option needs another one that is not given.
#[test]
fn a_buffer_that_records_already_is_neither_a_ring_nor_several_files() {
    let missing = std::env::temp_dir().join("kmt-no-tracefs");
    for words in [
        &["--ring"][..],
        &["--ring", "8M", "--stop-when", "oom"],
        &["--ring", "--stop-when", "oom", "--rearm"],
        &["--ring", "--stop-when", "oom", "--rearm", "--max-files", "3"],
        &["--stop-when", "slab>1M", "--after", "2s"],
        &["--rearm"],
        &["--rotate", "10m"],
        &["--rotate", "10M", "--max-files", "2"],
        &["--max-files", "2"],
    ] {
        for adopt in [&["--adopt"][..], &["--adopt=early"]] {
            let record = ["record", "--tracefs", missing.to_str().unwrap(), "-o", "/dev/null"];
            let output = command(&[&record[..], adopt, words].concat()).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
            assert!(said.contains("--adopt cannot be used with --"), "{words:?}: {said}");
            let named = said.lines().next().unwrap().rsplit(" with ").next().unwrap();
            let named: Vec<&str> = named.split(", ").collect();
            assert!(named.iter().all(|name| words.contains(name)), "{words:?}: {said}");
            assert!(said.contains("hint: ") && said.contains("into one file"), "{words:?}: {said}");
        }
    }
    // Other conflicts are those of the parser.
    let output = command(&["record", "--adopt", "--event", "kmem:kfree"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("cannot be used with") && !said.contains("into one file"), "{said}");
}
