//! Command lines that are meant for the other program, and a command to record without `--`.

mod first_words;
mod habits;

use std::ffi::OsString;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use habits::command_at;
use kmt_common::foreign::{self, Foreign};
use kmt_common::programs::{OF_ANALYZE, line};
use kmt_common::recording;
use kmt_common::text::escaped;
use kmt_common::usage::without_false_tips;
use kmt_format::raw::MAGIC;

/// The error of a command line, or a clearer one.
pub fn explained(error: clap::Error, args: &[OsString], cli: &clap::Command) -> clap::Error {
    let first = args.get(1).and_then(|word| word.to_str()).unwrap_or_default();
    let say = |what: String, hint: String| {
        clap::Error::raw(error.kind(), format!("{what}\nhint: {hint}\n")).with_cmd(cli)
    };
    let rest = || args.iter().skip(1).cloned();
    let known = first_words::output(&error, args, cli);
    if let Some((what, hint)) = known.or_else(|| habits::time_in_two_words(&error, args, cli)) {
        return say(what, hint);
    }
    match error.kind() {
        ErrorKind::InvalidSubcommand if OF_ANALYZE.contains(&first) => {
            say(format!("{first} is a command of kmt-analyze"), line("kmt-analyze", rest()))
        }
        ErrorKind::InvalidSubcommand if Path::new(first).is_file() => {
            let (what, hint) = misplaced_file(Path::new(first), rest);
            say(format!("{} {what}", escaped(first.as_bytes())), hint)
        }
        ErrorKind::InvalidSubcommand => match first_words::of(first) {
            Some((what, hint)) => say(what, hint),
            None => without_false_tips(error, cli, args),
        },
        ErrorKind::UnknownArgument if first == "record" => match command_at(&error, args) {
            Some(at) => {
                let (before, command) = args.split_at(at);
                let words = before.iter().skip(1).cloned().chain([OsString::from("--")]);
                let words = words.chain(command.iter().cloned());
                say("a command to record comes after --".to_owned(), line("kmt-capture", words))
            }
            None => match habits::of(&error, args, cli) {
                Some((what, hint)) => say(what, hint),
                None => without_false_tips(error, cli, args),
            },
        },
        ErrorKind::UnknownArgument if first == "remote" => match command_at(&error, args) {
            Some(at) if args.get(at).is_some_and(|word| word == "record") => {
                let (before, record) = args.split_at(at);
                let words = before.iter().skip(1).cloned().chain([OsString::from("--")]);
                let words = words.chain(record.iter().cloned());
                say("record and its options come after --".to_owned(), line("kmt-capture", words))
            }
            _ => without_false_tips(error, cli, args),
        },
        ErrorKind::ArgumentConflict => match with_adoption(&error) {
            Some(what) => say(what, ADOPTED_ALONE.to_owned()),
            None => without_false_tips(error, cli, args),
        },
        _ => without_false_tips(error, cli, args),
    }
}

/// Options that set up a buffer of the recorder's own, or write several files.
const OF_OWN_BUFFERS: [&str; 6] = ["--ring", "--stop-when", "--after", "--rearm", "--rotate", "--max-files"];

/// The remedy where they are given with `--adopt`.
const ADOPTED_ALONE: &str = "a buffer that records already is read into one file, and its settings stay as they are; without --adopt kmt-capture records in a buffer of its own";

/// The conflict of `--adopt` with such options; `None`: it is another conflict.
fn with_adoption(error: &clap::Error) -> Option<String> {
    let words = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => vec![word.clone()],
        Some(ContextValue::Strings(words)) => words.clone(),
        _ => Vec::new(),
    };
    let words: Vec<String> = [words(ContextKind::InvalidArg), words(ContextKind::PriorArg)].concat();
    let name = |word: &String| word.split([' ', '=', '[']).next().unwrap_or_default().to_owned();
    let names: Vec<String> = words.iter().map(name).filter(|name| name.starts_with("--")).collect();
    let others: Vec<&str> =
        names.iter().map(String::as_str).filter(|name| OF_OWN_BUFFERS.contains(name)).collect();
    let is_it = names.iter().any(|name| name == "--adopt") && !others.is_empty();
    is_it.then(|| format!("--adopt cannot be used with {}", others.join(", ")))
}

/// The kind of a file that is given without a command, and the command for it, or the reason why there is none.
fn misplaced_file<I: Iterator<Item = OsString>>(path: &Path, args: impl Fn() -> I) -> (String, String) {
    let start = start(path);
    let foreign = || Foreign::of(&start).or_else(|| Foreign::in_general(&start));
    if start.is_empty() {
        let refusal = foreign::empty(path);
        ("is empty".to_owned(), refusal.remedy().unwrap_or_default().to_owned())
    } else if start.starts_with(&MAGIC) {
        ("is a .kmt file: kmt-analyze shows it".to_owned(), line("kmt-analyze", args()))
    } else if let Some(what) = recording::recording(&start).or_else(|| perfetto(&start)) {
        (format!("is {what}"), recording::convert_command(path))
    } else if let Some(kind) = foreign() {
        let refusal = kind.refuse(path);
        (format!("is {}", kind.name), refusal.remedy().unwrap_or_default().to_owned())
    } else {
        let hint = "kmt-capture convert --help lists the recordings that can be converted";
        ("is not a .kmt file, and not a recording of a known tool".to_owned(), hint.to_owned())
    }
}

/// Bytes by which a file is recognized; none if it cannot be read.
fn start(path: &Path) -> Vec<u8> {
    use std::io::Read;
    let mut start = Vec::new();
    let file = std::fs::File::open(path);
    let _ = file.and_then(|file| file.take(1 << 20).read_to_end(&mut start));
    start
}

/// A trace of Perfetto, which only the parser of convert recognizes.
#[cfg(feature = "convert")]
fn perfetto(start: &[u8]) -> Option<&'static str> {
    (crate::import::Kind::of(start) == crate::import::Kind::Perfetto).then_some("a trace of Perfetto")
}

#[cfg(not(feature = "convert"))]
fn perfetto(_: &[u8]) -> Option<&'static str> {
    None
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
        for (line, hinted) in [
            ("kmt-capture remote h record -d 3s", "hint: kmt-capture remote h -- record -d 3s"),
            ("kmt-capture remote h record -- ls", "hint: kmt-capture remote h -- record -- ls"),
        ] {
            assert_eq!(hint(&line.split(' ').collect::<Vec<_>>()), hinted);
        }
        for line in
            ["kmt-capture record --nothing", "kmt-capture record -n -- ls", "kmt-capture convert -x a"]
        {
            let said = said(&line.split(' ').collect::<Vec<_>>());
            assert!(said.contains("unexpected argument") && !said.contains("tip:"), "{said}");
            assert!(said.contains(&line[..line.find(" -").unwrap()]), "{said}");
        }
        assert!(said(&["kmt-capture", "nothing"]).contains("unrecognized subcommand"));
    }

    /// A hint is a line that the parser accepts.
    #[test]
    fn words_of_other_programs_have_a_line_that_works() {
        let mut lines = vec![
            ("kmt-capture snippet -o s.sh", "kmt-capture snippet > s.sh"),
            ("kmt-capture snippet s.sh", "kmt-capture snippet > s.sh"),
            ("kmt-capture snippet --output=s.sh", "kmt-capture snippet > s.sh"),
            ("kmt-capture start", "kmt-capture record -d 30s -o trace.kmt"),
            ("kmt-capture stop", "kmt-capture record --help"),
        ];
        if cfg!(feature = "convert") {
            lines.push(("kmt-capture convert in.txt out.kmt", "kmt-capture convert in.txt -o out.kmt"));
            let forced = "kmt-capture convert --force in.txt -o out.kmt";
            lines.push(("kmt-capture convert --force in.txt out.kmt", forced));
        }
        for (line, hinted) in lines {
            let said = said(&line.split(' ').collect::<Vec<_>>());
            let hint = said.lines().find_map(|line| line.strip_prefix("hint: "));
            assert_eq!(hint, Some(hinted), "{said}");
            let words = hinted.split(" > ").next().unwrap_or_default().split(' ');
            let parsed = crate::cli::whole().try_get_matches_from(words);
            assert!(parsed.is_ok() || hinted.ends_with("--help"), "{hinted}");
        }
        let said = said(&["kmt-capture", "convert", "a", "-o", "b", "c"]);
        assert!(!said.contains("hint:"), "{said}");
    }

    #[test]
    fn a_recording_is_named_with_the_program_that_shows_it() {
        let folder = std::env::temp_dir().join(format!("kmt-capture-mistakes-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for (name, bytes, hint) in
            [("x.kmt", &MAGIC[..], "kmt-analyze"), ("x.data", b"PERFILE2\0\0\0\0", "kmt-capture convert")]
        {
            let path = folder.join(name);
            std::fs::write(&path, bytes).unwrap();
            let path = path.to_str().unwrap();
            let said = said(&["kmt-capture", path]);
            assert!(said.contains(&format!("hint: {hint} {path}")), "{said}");
        }
        // For others there is a remedy, and not the other program, which would name this one.
        for (name, bytes, what, hint) in [
            (
                "a.zip",
                &b"PK\x03\x04\x14\0"[..],
                "is an archive",
                "unpack it into a folder; `kmt-capture convert FOLDER",
            ),
            ("empty", b"", "is empty", "it has no data that can be recovered; record again"),
            ("junk", b"\0\x01\x02", "is not a .kmt file", "kmt-capture convert --help lists"),
        ] {
            let path = folder.join(name);
            std::fs::write(&path, bytes).unwrap();
            let said = said(&["kmt-capture", path.to_str().unwrap()]);
            assert!(said.contains(&format!("{name} {what}")), "{said}");
            assert!(said.contains(&format!("\nhint: {hint}")), "{said}");
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

    #[test]
    fn options_of_other_recorders_are_named_as_here() {
        for (line, what, hinted) in [
            ("kmt-capture record -a", "all CPUs are always recorded", "kmt-capture record"),
            ("kmt-capture record -a -o a.kmt sleep 5", "all CPUs", "kmt-capture record -o a.kmt -- sleep 5"),
            ("kmt-capture record -t 5", "-d is the time", "kmt-capture record -d 5s"),
            ("kmt-capture record -t5", "-d is the time", "kmt-capture record -d5s"),
            ("kmt-capture record --time 2.5s -a", "-d is the time", "kmt-capture record -d 2.5s"),
            ("kmt-capture record -t", "-d is the time", "kmt-capture record -d 10s"),
            ("kmt-capture record -a -- ls -a", "all CPUs", "kmt-capture record -- ls -a"),
            ("kmt-capture record -a -g -- sleep 1", "all CPUs", "kmt-capture record -g -- sleep 1"),
            (
                "kmt-capture record -e kmem:* -a -g sleep 1",
                "all CPUs",
                "kmt-capture record -e 'kmem:*' -g -- sleep 1",
            ),
            ("kmt-capture record -d 10 sec", "one word", "kmt-capture record -d 10s"),
            ("kmt-capture record -d 2 minutes", "one word", "kmt-capture record -d 2min"),
            ("kmt-capture record -d 10 s ls -l", "one word", "kmt-capture record -d 10s -- ls -l"),
            ("kmt-capture record --duration=10 s", "one word", "kmt-capture record --duration=10s"),
        ] {
            let said = said(&line.split(' ').collect::<Vec<_>>());
            assert!(!said.contains("tip:"), "{said}");
            assert!(said.contains(what), "{said}");
            assert_eq!(said.lines().find_map(|line| line.strip_prefix("hint: ")), Some(hinted), "{said}");
        }
    }
}
