//! `remote`, with shells of this machine in place of a target: recordings, cut lines, and targets that lie.
#![cfg(all(feature = "convert", any(target_arch = "x86_64", target_arch = "aarch64")))]

#[path = "support/desk.rs"]
mod desk;
mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use desk::{Desk, PROGRAM, brought, liar, other_machine, signal, told};
use support::alone::{Alone, TRACING};
use support::skip::{Lack, skip};

#[test]
fn a_recording_comes_over_the_line_and_leaves_nothing() {
    let Some(_alone) = Alone::or_skip() else { return };
    let desk = Desk::new("whole");
    let (code, told) = desk.run(
        "sh",
        &[
            "--",
            "record",
            "-b",
            "16M",
            "--",
            "sh",
            "-c",
            "echo words; sleep 1; ls -lR /proc/self > /dev/null; exit 3",
        ],
    );
    assert_eq!(code, Some(0), "{told}");
    assert!(desk.events() > 100, "{told}");
    for words in ["bits, ", "sent ", "words\n", "sh exited with 3", " 0 lost", "connection: "] {
        assert!(told.contains(words), "{words}: {told}");
    }
    desk.assert_clean_within(Duration::ZERO);
    let (code, told) = desk.run(
        "bash",
        &["--", "record", "-e", "kmem:kfree", "-d", "1s", "--exit-status", "--", "sh", "-c", "exit 7"],
    );
    assert_eq!((code, told.contains("exited with 7")), (Some(7), true), "{told}");
}

#[test]
fn ctrl_c_ends_a_recording_well() {
    let Some(_alone) = Alone::or_skip() else { return };
    let desk = Desk::new("ctrl-c");
    let child = desk.start("sh", &["--", "record", "-b", "4M"]);
    wait_for_recorder(&desk);
    std::thread::sleep(Duration::from_millis(500));
    signal(child.id(), libc::SIGINT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    desk.events();
    desk.assert_clean_within(Duration::ZERO);
}

/// The line is cut at its end here, or is silent: the part is a sound file, and the target cleans up.
#[test]
fn a_cut_line_leaves_a_sound_file_and_a_clean_target() {
    let Some(_alone) = Alone::or_skip() else { return };
    let desk = Desk::new("cut");
    let relay = desk.script("relay", "#!/bin/sh\nexec 3<&0; (cat <&3) | sh | cat\n");
    for (round, after_ms) in [0, 37, 400, 1300].into_iter().enumerate() {
        let mut words = vec!["--line-timeout", "1s", "--", "record", "-b", "4M"];
        // A command ends with its recording.
        words.extend(if round < 2 { &["--", "sleep", "4321"][..] } else { &[] });
        let child = desk.start(&format!("setsid -w {relay}"), &words);
        wait_for_recorder(&desk);
        std::thread::sleep(Duration::from_millis(after_ms));
        if round % 2 == 0 {
            cut(child.id());
            desk.assert_clean_within(Duration::from_secs(2));
        } else {
            signal(child.id(), libc::SIGSTOP);
            // Silence counts from the last beat.
            desk.assert_clean_within(Duration::from_secs(3));
            signal(child.id(), libc::SIGCONT);
        }
        let output = child.wait_with_output().unwrap();
        // Without a byte of the recording there is no file.
        let code = if desk.path("out.kmt").exists() { 3 } else { 1 };
        assert_eq!(output.status.code(), Some(code), "{}", told(&output));
        assert!(told(&output).contains("warning: the recording is cut: "), "{}", told(&output));
        if desk.path("out.kmt").exists() {
            desk.events();
            fs::remove_file(desk.path("out.kmt")).unwrap();
        }
    }
}

/// A connection without data and without an end, or cut, while the target waits for a command, takes the program, or sends files.
#[test]
fn a_line_that_fails_between_commands_leaves_nothing() {
    let Some(_alone) = Alone::or_skip() else { return };
    let desk = Desk::new("held");
    // Passes all on, until an answer of the target begins with the word: then nothing more, in both directions.
    let relay = desk.script(
        "relay",
        "#!/bin/bash\ncoproc sh\nexec 4<&0 5>&\"${COPROC[1]}\" 6<&\"${COPROC[0]}\"\ncat <&4 >&5 & passes=$!\n\
         while IFS= read -r line <&6; do\n\
         case $line in KMT-*\" $1 \"* | KMT-*\" $1\") kill $passes; : > \"${0%/*}/held\"; exec sleep $2 ;; esac\n\
         printf '%s\\n' \"$line\"; done\n",
    );
    let other = other_machine(&desk);
    for (word, sleep) in
        [("folder", 6), ("ready", 6), ("got", 6), ("version", 6), ("status", 6), ("file", 6), ("file", 0)]
    {
        let args = ["--", "record", "-b", "64K", "-d", "1s", "-e", "kmem:kmalloc"];
        let mut child = if ["status", "file"].contains(&word) {
            let args = [&["--script"][..], &args].concat();
            desk.start_without_program(&format!("{other} {relay} {word} {sleep}"), &args)
        } else {
            desk.start(&format!("{relay} {word} {sleep}"), &args)
        };
        let begin = Instant::now();
        while !desk.path("held").exists() {
            assert!(begin.elapsed() < Duration::from_secs(20), "{word}: no such answer");
            std::thread::sleep(Duration::from_millis(10));
        }
        desk.assert_clean_within(Duration::from_secs(3));
        child.kill().unwrap();
        child.wait().unwrap();
        fs::remove_file(desk.path("held")).unwrap();
    }
}

#[test]
fn the_script_records_where_no_program_runs() {
    let Some(_alone) = Alone::or_skip() else { return };
    let desk = Desk::new("script");
    let via = other_machine(&desk);
    // Without being asked for, the script does not record: the ways are named.
    let output = desk.start_without_program(&via, &["--", "record", "-d", "1s"]).wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    for words in ["no static kmt-capture for mips was found", "kmt-targets", "--binary", "--script"] {
        assert!(told(&output).contains(words), "{words}: {}", told(&output));
    }
    assert!(!desk.path("out.kmt").exists());
    desk.assert_clean_within(Duration::ZERO);
    let output = desk.start_without_program("sh", &["--build"]).wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    let command = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(command.contains("cargo install kmt-capture --no-default-features"), "{command}");
    let misplaced = desk.start("sh", &["-d", "1s"]).wait_with_output().unwrap();
    assert_eq!(misplaced.status.code(), Some(2), "{}", told(&misplaced));
    assert!(told(&misplaced).contains("-- record -d 5s"), "{}", told(&misplaced));
    let args = ["--script", "-d", "2s", "-b", "1M", "-e", "kmem:kmalloc", "-e", "kmem:kfree"];
    let output = desk.start_without_program(&via, &args).wait_with_output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", told(&output));
    assert!(told(&output).contains("the last events that fit 1.00 MiB a CPU"), "{}", told(&output));
    assert!(desk.events() > 10);
    desk.assert_clean_within(Duration::ZERO);
    // Options that the script does not have are refused.
    let output = desk
        .start_without_program(&via, &["--script", "--", "record", "-p", "reclaim"])
        .wait_with_output()
        .unwrap();
    assert!(told(&output).contains("cannot record with these options"), "{}", told(&output));
    // A script that loses its line ends too.
    let child = desk.start_without_program(&via, &["--line-timeout", "1s", "--script", "-b", "1M"]);
    wait_for_recorder(&desk);
    std::thread::sleep(Duration::from_millis(700));
    signal(child.id(), libc::SIGKILL);
    desk.assert_clean_within(Duration::from_secs(4));
    child.wait_with_output().unwrap();
}

/// Folders that may not execute programs: the script records, and nothing was sent in vain.
#[test]
fn folders_without_execution_are_found_before_anything_is_sent() {
    let Some(_alone) = Alone::or_skip() else { return };
    let desk = Desk::new("noexec");
    let text = "#!/bin/sh\nfor d in /dev/shm /run /mnt /root /home /var/tmp /tmp; do mount -t tmpfs -o noexec x $d; done\n\
                mount -o remount,bind,ro / && exec sh\n";
    let via = format!("unshare -m --propagation private {}", desk.script("noexec", text));
    let output = desk.start(&via, &["--", "record", "-d", "1s"]).wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    assert!(told(&output).contains("(noexec, SELinux)\nhint: "), "{}", told(&output));
    desk.assert_clean_within(Duration::ZERO);
    let args = ["--script", "-d", "1s", "-b", "1M"];
    let output = desk.start_without_program(&via, &args).wait_with_output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", told(&output));
    assert!(!told(&output).contains("sent /"), "{}", told(&output));
    assert!(desk.events() > 10);
    desk.assert_clean_within(Duration::ZERO);
}

#[test]
fn a_user_without_rights_is_refused_with_the_remedy() {
    if rustix::process::geteuid().as_raw() != 0 {
        return skip(Lack::Machine, "only root can become another user");
    }
    let desk = Desk::new("user");
    let (code, told) = desk.run("setpriv --reuid 65534 --clear-groups sh", &[]);
    assert_eq!(code, Some(1));
    assert!(told.contains("user 65534: only root can record") && told.contains("--root-by sudo"), "{told}");
    let none = desk.script("sudo", "#!/bin/sh\necho sudo: a password is required >&2; exit 1\n");
    let folder = Path::new(&none).parent().unwrap();
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    let via = format!("env PATH={}:/usr/bin:/bin setpriv --reuid 65534 --clear-groups sh", folder.display());
    let (code, told) = desk.run(&via, &["--root-by", "sudo"]);
    assert_eq!(code, Some(1));
    assert!(told.contains("sudo: a password is required") && told.contains("gives no root shell"), "{told}");
}

#[test]
fn a_target_that_lies_gets_a_clear_error_and_no_file() {
    let desk = Desk::new("liar");
    let cases = [
        ("silent", "exit", "ended (exit status: 0)"),
        ("endless", "", "does not answer"),
        ("line", "head -c 99999 /dev/zero | tr '\\0' x; sleep 9", "without an end of line"),
        ("facts", "while :; do echo 'mount /x y z'; done", "more than 4096 facts"),
        (
            "escape",
            "echo $'\\e[2J\\e]0;x\\a' >&2; facts 'uid 0' \"machine \"$'\\e[31mx' 'release 6.1.0' 'host '$'\\e]2;y\\a'; exit",
            "ended (exit status: 0)",
        ),
        ("folder", "good; until_line 'folder exec'; echo \"KMT-$N folder /etc\"", "the name of a folder"),
        (
            "machine",
            "facts 'machine mips' 'uid 0' 'folder /run 99999'; sleep 9",
            "does not run on mips: it is for another machine",
        ),
        (
            "small",
            "facts 'machine '$(uname -m) 'release 6.1.0' 'uid 0' 'available 9000' 'folder /run 900000'; sleep 9",
            "9000 KiB of memory available",
        ),
        (
            "full",
            "facts 'machine '$(uname -m) 'release 6.1.0' 'uid 0' 'folder /run 12'; until_line 'folder exec'; echo \"KMT-$N folder \"; sleep 9",
            "/run: 12 KiB",
        ),
        (
            "changed",
            "good; until_line 'folder exec'; echo \"KMT-$N folder /run/kmt-$N\"; until_line take; set -- $l; echo \"KMT-$N ready\"; head -c $2 > /dev/null; echo \"KMT-$N got 12\"; sleep 9",
            "changed or cut (12)",
        ),
        (
            "growing",
            "good; until_line 'folder exec'; echo \"KMT-$N folder /run/kmt-$N\"; until_line take; set -- $l; echo \"KMT-$N ready\"; head -c $2 > /dev/null; while echo \"KMT-$N grown 12\"; do :; done",
            "the length of a file that grows",
        ),
        (
            "version",
            "install_() { good; until_line 'folder exec'; echo \"KMT-$N folder /run/kmt-$N\"; until_line take; set -- $l; echo \"KMT-$N ready\"; head -c $2 > /dev/null; echo \"KMT-$N got $2\"; until_line chmod; echo \"KMT-$N version Illegal instruction\"; }; install_; sleep 1; exit",
            "does not run on the target: Illegal instruction",
        ),
        (
            "flood",
            "good; for ((i = 0; i < 3000; i++)); do echo flood >&2; done; exit",
            "more than 1000 lines",
        ),
        (
            "text",
            "install; echo 'no frames'; echo \"KMT-$N status 1\"",
            "recording failed on the target (status 1)",
        ),
        ("garbage", "install; frame D 16; echo 'not a kmt file.'", "the bytes that came are in"),
        (
            "complete-garbage",
            "install; frame D 16; echo 'not a kmt file.'; frame E 0; echo \"KMT-$N status 0\"",
            "the target sent no recording: offset 0: this is not a .kmt file",
        ),
        ("nothing", "install; frame E 0; echo \"KMT-$N status 0\"", "a complete file of 0 bytes"),
        ("cut-at-once", "install", "the target sent no recording"),
    ];
    for (name, case, expected) in cases {
        let via = if name == "endless" { "yes".to_owned() } else { liar(&desk, name, case) };
        let (code, told) = desk.run(&via, &["--", "record", "-b", "1M"]);
        assert_eq!(code, Some(1), "{name}: {told}");
        assert!(told.contains(expected), "{name}: {told}");
        assert!(!told.contains('\x1b') && !told.contains('\x07'), "{name}: {told}");
        assert!(!desk.path("out.kmt").exists(), "{name}");
    }
    // An endless stream ends where the recording was to end.
    let via = liar(&desk, "stream", "install; while frame D 255 && head -c 255 /dev/zero; do :; done");
    let (code, told) = desk.run(&via, &["-q", "--", "record", "--max-size", "4K"]);
    assert_ne!(code, Some(0), "{told}");
    assert!(told.contains("more than --max-size"), "{told}");
}

#[test]
fn usage_is_checked_before_anything_is_started() {
    for (args, expected) in [
        (&["remote"][..], "required"),
        (&["remote", "--via", "touch '/tmp/x"], "is not closed"),
        (&["remote", "--via", "sh", "--", "rm"], "must come `record`"),
        (&["remote", "--via", "sh", "--", "record", "-o", "x"], "give them before --"),
        (&["remote", "--via", "sh", "--", "record", "--nonsense"], "unexpected argument"),
        (&["remote", "--via", "sh", "--script", "--", "record", "--survivors"], "cannot record with these"),
        (&["remote", "--via", "/nonexistent/x"], "starting /nonexistent/x"),
    ] {
        let output = Command::new(PROGRAM).args(args).output().unwrap();
        assert!(
            matches!(output.status.code(), Some(1 | 2)) && told(&output).contains(expected),
            "{args:?}: {}",
            told(&output)
        );
    }
}

fn wait_for_recorder(desk: &Desk) {
    let begin = Instant::now();
    let instances =
        || brought().iter().filter(|path| path.starts_with(TRACING) && !desk.before.contains(*path)).count();
    while instances() == 0 {
        assert!(begin.elapsed() < Duration::from_secs(20), "no recorder");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Kills the relays of a desk at once, as a connection that is cut: both its ends see the end of their streams.
fn cut(desk: u32) {
    let killed = Command::new("pkill").args(["-KILL", "-x", "cat", "-s"]).arg(session_below(desk)).status();
    assert!(killed.is_ok_and(|status| status.success()));
}

/// The session of the process that this one has started with `setsid`.
fn session_below(pid: u32) -> String {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    children.split_whitespace().next().unwrap().to_owned()
}
