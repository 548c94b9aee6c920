use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use super::special::open_special;
use super::*;

/// A directory that goes away with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("kmt-output-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn target(&self, name: &str, force: bool) -> Target {
        Target { path: self.0.join(name), force }
    }

    fn names(&self) -> Vec<String> {
        let names = fs::read_dir(&self.0).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn written(target: &Target, text: &str) -> Result<()> {
    let mut output = target.open()?;
    output.write(text.as_bytes())?;
    output.finish()
}

#[test]
fn what_replaced_a_pipe_is_not_written_to() {
    let scratch = Scratch::new("pipe");
    let (victim, link) = (scratch.0.join("victim"), scratch.0.join("link"));
    fs::write(&victim, "mine").unwrap();
    symlink(&victim, &link).unwrap();
    assert!(open_special(&DirEntry::of(&link).unwrap()).is_err(), "a link to a file");
    let said = open_special(&DirEntry::of(&victim).unwrap()).unwrap_err().to_string();
    assert!(said.contains("another process replaced") && said.contains("while it was opened"), "{said}");
    assert_eq!(fs::read(&victim).unwrap(), b"mine");
    assert!(open_special(&DirEntry::of(Path::new("/dev/null")).unwrap()).is_ok());
}

#[test]
fn a_file_has_its_name_when_it_is_complete_and_nobody_else_reads_it() {
    let scratch = Scratch::new("whole");
    let target = scratch.target("x", false);
    let mut output = target.open().unwrap();
    output.write(b"one").unwrap();
    assert_eq!(scratch.names(), [format!(".x.{}.part", std::process::id())]);
    output.finish().unwrap();
    assert_eq!(scratch.names(), ["x"]);
    assert_eq!(fs::metadata(&target.path).unwrap().permissions().mode() & 0o777, 0o600);
    drop(scratch.target("y", false).open().unwrap());
    assert_eq!(scratch.names(), ["x"], "what is not finished goes");
}

#[test]
fn nothing_is_replaced_unasked() {
    let scratch = Scratch::new("there");
    fs::write(scratch.0.join("x"), "old").unwrap();
    let said = written(&scratch.target("x", false), "new").unwrap_err().to_string();
    assert!(said.contains("already exists"), "{said}");
    // It may come up while we write.
    let mut output = scratch.target("y", false).open().unwrap();
    fs::write(scratch.0.join("y"), "theirs").unwrap();
    output.write(b"ours").unwrap();
    assert!(output.finish().unwrap_err().to_string().contains("already exists"));
    assert_eq!(fs::read(scratch.0.join("y")).unwrap(), b"theirs");
    written(&scratch.target("x", true), "new").unwrap();
    assert_eq!(fs::read(scratch.0.join("x")).unwrap(), b"new");
    assert_eq!(scratch.names(), ["x", "y"]);
}

#[test]
fn a_link_is_replaced_and_not_followed() {
    let scratch = Scratch::new("link");
    let victim = scratch.0.join("victim");
    fs::write(&victim, "mine").unwrap();
    symlink(&victim, scratch.0.join("x")).unwrap();
    assert!(written(&scratch.target("x", false), "new").is_err());
    written(&scratch.target("x", true), "new").unwrap();
    assert_eq!(fs::read(&victim).unwrap(), b"mine");
    assert!(fs::symlink_metadata(scratch.0.join("x")).unwrap().is_file());
}

#[test]
fn what_cannot_be_written_is_told_at_once() {
    let scratch = Scratch::new("check");
    fs::create_dir(scratch.0.join("folder")).unwrap();
    for (name, told) in
        [("folder", "is a directory"), ("folder/", "is a directory"), ("none/x", "No such file")]
    {
        for force in [false, true] {
            let said = scratch.target(name, force).check().unwrap_err().to_string();
            assert!(said.contains(told), "{name}: {said}");
        }
    }
    scratch.target("x", false).check().unwrap();
    assert_eq!(scratch.names(), ["folder"]);
}

#[test]
fn a_second_recorder_does_not_take_the_file_of_the_first() {
    let scratch = Scratch::new("two");
    let mut first = scratch.target("x", false).record().unwrap();
    first.write(b"first").unwrap();
    for force in [false, true] {
        let said = scratch.target("x", force).record().unwrap_err().to_string();
        assert!(said.contains("is being written by another process"), "{said}");
    }
    first.finish().unwrap();
    assert_eq!(fs::read(scratch.0.join("x")).unwrap(), b"first");
}

#[test]
fn what_was_left_is_kept_unless_it_is_forced() {
    let scratch = Scratch::new("left");
    let mut first = scratch.target("x", false).record().unwrap();
    first.write(b"first").unwrap();
    drop(first);
    assert_eq!(scratch.names(), ["x.part"]);
    let said = scratch.target("x", false).record().unwrap_err().to_string();
    assert!(said.contains("is the file of an interrupted recording"), "{said}");
    let mut second = scratch.target("x", true).record().unwrap();
    second.write(b"second").unwrap();
    second.finish().unwrap();
    assert_eq!(fs::read(scratch.0.join("x")).unwrap(), b"second");
    drop(scratch.target("y", false).record().unwrap());
    assert_eq!(scratch.names(), ["x"], "nothing recorded, nothing kept");
}

#[test]
fn a_file_that_was_replaced_while_it_was_written_gets_no_name() {
    let scratch = Scratch::new("swapped");
    for force in [false, true] {
        let mut output = scratch.target("x", force).record().unwrap();
        output.write(b"ours").unwrap();
        let part = output.unfinished().unwrap().to_owned();
        fs::remove_file(&part).unwrap();
        fs::write(&part, "theirs").unwrap();
        let said = output.finish().unwrap_err().to_string();
        assert!(said.contains("another process replaced its unfinished file"), "{said}");
        assert_eq!(scratch.names(), ["x.part"], "what is not ours stays");
        fs::remove_file(&part).unwrap();
    }
}

#[test]
fn a_killed_process_of_the_same_number_is_no_obstacle() {
    let scratch = Scratch::new("number");
    fs::write(scratch.0.join(format!(".x.{}.part", std::process::id())), "old").unwrap();
    written(&scratch.target("x", false), "new").unwrap();
    assert_eq!(scratch.names(), ["x"]);
}

#[test]
fn scratch_files_have_no_name() {
    let scratch = Scratch::new("scratch");
    let mut file = scratch.target("x", false).scratch().unwrap();
    file.write_all(b"lives").unwrap();
    assert!(scratch.names().is_empty());
}

/// What another user can plant under a name that can be guessed, and its reader.
fn plant(path: &Path, kind: usize) -> Option<std::fs::File> {
    // Without another process: until it runs its program, it holds the locks of files that other tests have closed.
    let fifo = |path: &Path| {
        let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::from_raw_mode(0o666));
        rustix::fs::mknodat(rustix::fs::CWD, path, kind, mode, 0).unwrap();
        rustix::fs::chmod(path, rustix::fs::Mode::from_raw_mode(0o666)).unwrap();
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NONBLOCK;
        Some(std::fs::File::from(rustix::fs::open(path, flags, rustix::fs::Mode::empty()).unwrap()))
    };
    let beside = |suffix: &str| {
        path.with_file_name(format!("{}{suffix}", path.file_name().unwrap().to_str().unwrap()))
    };
    match kind {
        0 => fifo(path),
        1 => fifo(&beside(".part")),
        2 => {
            let reader = fifo(&beside(".theirs"));
            symlink(beside(".theirs"), path).unwrap();
            reader
        }
        3 => {
            let reader = fifo(&beside(".theirs"));
            symlink(beside(".theirs"), beside(".part")).unwrap();
            reader
        }
        4 => symlink(beside(".made-by-us"), path).map(|()| None).unwrap(),
        5 => std::os::unix::net::UnixListener::bind(path).map(|_| None).unwrap(),
        6 => fs::write(path, "theirs").map(|()| None).unwrap(),
        _ => fs::write(beside(".part"), "theirs").map(|()| None).unwrap(),
    }
}

/// In a directory that others can write to, a planted name receives nothing: not with --force, not by a name that was not
/// given.
#[test]
fn planted_names_receive_no_byte() {
    let scratch = Scratch::new("planted");
    rustix::fs::chmod(&scratch.0, rustix::fs::Mode::from_raw_mode(0o1777)).unwrap();
    let is_root = rustix::process::geteuid().is_root();
    for number in 0..1_000 {
        let (kind, is_given, force) = (number % 8, number % 3 != 0, number % 5 == 0);
        let path = scratch.0.join(format!("kmt-host-{number}.kmt"));
        let reader = plant(&path, kind);
        let names = fs::read_dir(&scratch.0).unwrap().map(|entry| entry.unwrap().path());
        if is_root {
            names.for_each(|path| std::os::unix::fs::lchown(path, Some(65_534), Some(65_534)).unwrap());
        }
        let recorded = match is_given {
            true => Output::record(&path, force),
            false => Output::record_new(&path),
        };
        let recorded = recorded.and_then(|mut output| output.write(b"secret").and_then(|()| output.finish()));
        // An unprivileged run plants files of its own, which --force may replace.
        if is_root || matches!(kind, 0 | 1 | 3 | 5) || !(is_given && force) {
            assert!(recorded.is_err(), "{number}: a planted name of kind {kind} was used");
        }
        if let Some(mut reader) = reader {
            let mut bytes = Vec::new();
            let _ = std::io::Read::read_to_end(&mut reader, &mut bytes);
            assert!(bytes.is_empty(), "{number}: kind {kind} received {} bytes", bytes.len());
        }
        for entry in fs::read_dir(&scratch.0).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() && is_root {
                assert_ne!(fs::read(&path).unwrap(), b"secret", "{number}: kind {kind}");
            }
            fs::remove_file(path).unwrap();
        }
    }
}

/// A pipe of ours in a directory of ours is written to; in one of all users its reader may be anybody.
#[test]
fn a_pipe_is_written_to_where_only_we_can_put_one() {
    let scratch = Scratch::new("own-pipe");
    let path = scratch.0.join("pipe");
    let reader = plant(&path, 0);
    let target = Target { path, force: false };
    assert!(target.open().is_ok());
    for mode in [0o777, 0o1777] {
        rustix::fs::chmod(&scratch.0, rustix::fs::Mode::from_raw_mode(mode)).unwrap();
        let said = target.open().unwrap_err().to_string();
        assert!(said.contains("other users can write to its directory"), "{said}");
    }
    drop(reader);
}

#[test]
fn an_unfinished_file_that_is_removed_or_replaced_is_noticed_and_never_named() {
    for replaced in [false, true] {
        let scratch = Scratch::new(if replaced { "replaced" } else { "removed" });
        let mut output = Output::record(&scratch.0.join("x"), false).unwrap();
        output.write(b"ours").unwrap();
        output.check_name().unwrap();
        let part = output.part_name().unwrap();
        let path = part.path().unwrap().to_owned();
        fs::remove_file(&path).unwrap();
        if replaced {
            fs::write(&path, "theirs").unwrap();
        }
        assert!(output.check_name().unwrap_err().to_string().contains("removed or replaced"));
        assert_eq!(part.path(), None);
        assert!(output.finish().is_err());
        assert_eq!(scratch.names().len(), usize::from(replaced));
    }
}
