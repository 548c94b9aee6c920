//! What is printed to a full disk, or to nobody: a message and a code, no panic.

use std::fs::File;
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
        &["convert", concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/sample/x86_64-6.1"), "-o", to, "--force"]
            [..],
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
