//! Command lines that are meant for the other program, and a command to record without `--`.

use std::ffi::OsString;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use kmt_common::programs::{OF_ANALYZE, line};
use kmt_common::recording;
use kmt_common::text::escaped;

/// The error of a command line, or a clearer one.
pub fn explained(error: clap::Error, args: &[OsString], cli: &clap::Command) -> clap::Error {
    let first = args.get(1).and_then(|word| word.to_str()).unwrap_or_default();
    let say = |what: String, hint: String| {
        clap::Error::raw(error.kind(), format!("{what}\nhint: {hint}\n")).with_cmd(cli)
    };
    let rest = || args.iter().skip(1).cloned();
    match error.kind() {
        ErrorKind::InvalidSubcommand if OF_ANALYZE.contains(&first) => {
            say(format!("{first} is a command of kmt-analyze"), line("kmt-analyze", rest()))
        }
        ErrorKind::InvalidSubcommand if Path::new(first).is_file() => {
            let name = escaped(first.as_bytes());
            match other_recording(Path::new(first)) {
                Some(what) => say(format!("{name} is {what}"), recording::convert_command(Path::new(first))),
                None => say(
                    format!("{name} is a file: kmt-analyze shows recordings"),
                    line("kmt-analyze", rest()),
                ),
            }
        }
        ErrorKind::UnknownArgument if first == "record" => match command_at(&error, args) {
            Some(at) => {
                let (before, command) = args.split_at(at);
                let words = before.iter().skip(1).cloned().chain([OsString::from("--")]);
                let words = words.chain(command.iter().cloned());
                say("a command to record comes after --".to_owned(), line("kmt-capture", words))
            }
            None => error,
        },
        _ => error,
    }
}

/// What another tool recorded in a file.
fn other_recording(path: &Path) -> Option<&'static str> {
    use std::io::Read;
    let mut start = Vec::new();
    std::fs::File::open(path).ok()?.take(1 << 20).read_to_end(&mut start).ok()?;
    recording::recording(&start)
}

/// Place of the first word of a command that is recorded.
fn command_at(error: &clap::Error, args: &[OsString]) -> Option<usize> {
    let ContextValue::String(word) = error.get(ContextKind::InvalidArg)? else { return None };
    let at = args.iter().position(|arg| arg == word.as_str())?;
    (!word.starts_with('-')).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &[&str]) -> String {
        let args: Vec<OsString> = line.iter().map(OsString::from).collect();
        let error = crate::cli::whole().try_get_matches_from(&args).unwrap_err();
        explained(error, &args, &crate::cli::whole()).to_string()
    }

    #[test]
    fn the_other_program_and_the_missing_dashes_are_named() {
        let hint = |line: &[&str]| said(line).lines().last().unwrap_or_default().to_owned();
        assert_eq!(hint(&["kmt-capture", "leaks", "a b.kmt"]), "hint: kmt-analyze leaks 'a b.kmt'");
        assert_eq!(hint(&["kmt-capture", "record", "ls", "-l"]), "hint: kmt-capture record -- ls -l");
        assert_eq!(
            hint(&["kmt-capture", "record", "-o", "a.kmt", "ls"]),
            "hint: kmt-capture record -o a.kmt -- ls"
        );
        assert!(said(&["kmt-capture", "record", "--nothing"]).contains("unexpected argument"));
        assert!(said(&["kmt-capture", "nothing"]).contains("unrecognized subcommand"));
    }

    #[test]
    fn a_recording_is_named_with_the_program_that_shows_it() {
        let folder = std::env::temp_dir().join(format!("kmt-capture-mistakes-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for (name, bytes, hint) in [
            ("x.kmt", &b"\x93KMT"[..], "kmt-analyze"),
            ("x.data", b"PERFILE2\0\0\0\0", "kmt-capture convert"),
        ] {
            let path = folder.join(name);
            std::fs::write(&path, bytes).unwrap();
            let path = path.to_str().unwrap();
            let said = said(&["kmt-capture", path]);
            assert!(said.contains(&format!("hint: {hint} {path}")), "{said}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_list_of_commands_is_that_of_the_program() {
        let command = crate::cli::whole();
        let mut names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        names.retain(|name| !["completions", "man"].contains(name));
        names.sort_unstable();
        let known = kmt_common::programs::OF_CAPTURE;
        let known =
            known.iter().filter(|name| cfg!(feature = "convert") || !["convert", "remote"].contains(name));
        assert_eq!(names, known.copied().collect::<Vec<_>>());
    }
}
