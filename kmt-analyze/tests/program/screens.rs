//! Screens on terminals: every report fits, nothing is said twice, numbers and nouns agree, and each has its snapshot.
//!
//! Snapshots are made again with `INSTA_UPDATE=always cargo test -p kmt-analyze --test program screens`, and read before
//! they are committed.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use kmt_analyze::reports::REPORTS;
use regex::Regex;

use crate::support::files::{Scratch, run, run_beside, stdout};
use crate::support::terminal::{command_on_terminal, on_terminal, without_colour};

/// Widths of terminals.
const WIDTHS: [u16; 3] = [80, 100, 160];

/// Captures of this repository, by name.
pub(super) fn captures() -> &'static [(String, PathBuf)] {
    static FILES: OnceLock<Vec<(String, PathBuf)>> = OnceLock::new();
    FILES.get_or_init(|| {
        let own = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folders =
            ["tests/data/x86_64-6.18-stacks", "tests/data/x86_64-6.1-reclaim", "../docs/sample/x86_64-6.1"];
        let convert = |folder: &&str| {
            let folder = own.join(folder);
            let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
            // Kept until the program ends.
            let scratch = Box::leak(Box::new(Scratch::new()));
            (name, scratch.convert(&folder))
        };
        let vectors = ["empty-le64", "losses-le64"];
        let vector = |name: &&str| {
            ((*name).to_owned(), own.join("../format-spec/vectors").join(format!("{name}.kmt")))
        };
        folders.iter().map(convert).chain(vectors.iter().map(vector)).collect()
    })
}

/// Command lines whose output fits the terminal.
pub(super) fn command_lines() -> Vec<Vec<&'static str>> {
    let reports = REPORTS.iter().map(|entry| match entry.name {
        "who" => vec!["who", "0xffff888000010060"],
        name => vec![name],
    });
    let more = [
        vec![],
        vec!["all"],
        vec!["info"],
        vec!["info", "--diff"],
        vec!["pages", "--verbose"],
        vec!["who", "pfn=0x1c49a6"],
        vec!["callers", "--sort", "wasted"],
        vec!["callers", "--bytes"],
        vec!["latency", "--threshold", "1ms"],
        vec!["callers", "--pid", "1", "--where", "size>64"],
    ];
    reports.chain(more).collect()
}

/// Lines of a screen that are longer than the terminal.
fn long_lines(screen: &str, width: usize) -> Vec<&str> {
    screen.lines().filter(|line| line.chars().count() > width).collect()
}

/// True if the file has what the command needs.
fn answers(args: &[&str], file: &Path) -> bool {
    matches!(run(args, file).status.code(), Some(0 | 3))
}

#[test]
fn every_screen_fits_its_terminal() {
    for (name, file) in captures() {
        for args in command_lines().iter().filter(|args| answers(args, file)) {
            for width in WIDTHS {
                let args = [args.as_slice(), &["--no-pager"]].concat();
                let screen = without_colour(&on_terminal(&args, file, width, &[]));
                let long = long_lines(&screen, usize::from(width));
                assert!(long.is_empty(), "{name} {args:?} at {width}: {long:#?}");
            }
        }
    }
}

#[test]
fn no_screen_has_a_heading_twice() {
    for (name, file) in captures() {
        for args in command_lines().iter().filter(|args| answers(args, file)) {
            let screen = on_terminal(
                &[args.as_slice(), &["--no-pager", "--color", "always"]].concat(),
                file,
                160,
                &[],
            );
            // Headings alone are bold from the start of a line to its end, besides the answer and numbers.
            let mut headings: Vec<&str> = screen
                .lines()
                .filter_map(|line| line.strip_prefix("\u{1b}[1m")?.strip_suffix("\u{1b}[0m"))
                .filter(|line| !line.contains('\u{1b}') && !line.ends_with('.') && !line.contains("  "))
                .collect();
            headings.sort_unstable();
            let twice: Vec<_> = headings.windows(2).filter(|pair| pair[0] == pair[1]).collect();
            // `all` holds a report each under its heading; within them tables may be called the same.
            assert!(twice.is_empty() || args == &["all"], "{name} {args:?}: {twice:?}");
        }
    }
}

#[test]
fn numbers_and_nouns_agree() {
    let one_of_several = Regex::new(
        r"(?:^|[^\d,.])1 (?:events|objects|pages|allocations|frees|call sites|caches|tasks|CPUs|rows|stalls|places|lives|others|bytes|(?:slab|page) allocations)\b",
    );
    let one_of_several = one_of_several.unwrap();
    for (name, file) in captures() {
        for args in command_lines() {
            let screen = stdout(&run(&args, file));
            let found: Vec<&str> = screen.lines().filter(|line| one_of_several.is_match(line)).collect();
            assert!(found.is_empty(), "{name} {args:?}: {found:#?}");
        }
    }
}

#[test]
fn numbers_are_the_same_at_every_width() {
    let number = Regex::new(r"^[\d,.]+$").unwrap();
    for (_, file) in captures() {
        for args in command_lines().iter().filter(|args| answers(args, file)) {
            let wide = stdout(&run(&[args.as_slice(), &["--wide", "--bytes"]].concat(), file));
            let narrow = stdout(&run(&[args.as_slice(), &["--bytes"]].concat(), file));
            for word in narrow.split_whitespace().filter(|word| number.is_match(word)) {
                assert!(wide.contains(word), "{args:?}: {word} is not in the wide screen");
            }
        }
    }
}

#[test]
fn a_pager_gets_the_screen_on_a_terminal_alone() {
    let (_, file) = &captures()[0];
    let pager = [("PAGER", "sed s/^/paged:/")];
    let paged = on_terminal(&["callers"], file, 80, &pager);
    assert!(paged.lines().all(|line| line.starts_with("paged:")), "{paged}");
    assert!(!on_terminal(&["callers", "--no-pager"], file, 80, &pager).contains("paged:"));
    assert!(!on_terminal(&["dump", "-l", "3"], file, 80, &pager).contains("paged:"));
    assert!(!stdout(&run(&["callers"], file)).contains("paged:"));
}

/// Before the file is read: there is none.
#[test]
fn what_is_no_text_is_refused_on_a_terminal_at_once() {
    let scratch = Scratch::new();
    let missing = scratch.0.join("missing.kmt");
    for args in ["report", "export perfetto", "export pprof", "recover -o -", "anonymize -o -"] {
        let refusal = scratch.0.join("refusal");
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_kmt-analyze"));
        command.args(args.split(' ')).arg(&missing).stderr(std::fs::File::create(&refusal).unwrap());
        command_on_terminal(command, 80);
        let said = std::fs::read_to_string(&refusal).unwrap();
        assert!(said.contains("standard output is a terminal"), "{args}: {said}");
    }
}

#[test]
fn colour_is_for_terminals_that_want_it() {
    let (_, file) = &captures()[0];
    let has_colour = |text: &str| text.contains('\u{1b}');
    let args = ["callers", "--no-pager"];
    assert!(has_colour(&on_terminal(&args, file, 80, &[])));
    assert!(!has_colour(&on_terminal(&args, file, 80, &[("NO_COLOR", "1")])));
    assert!(!has_colour(&on_terminal(&args, file, 80, &[("TERM", "dumb")])));
    assert!(!has_colour(&stdout(&run(&["callers"], file))));
    assert!(has_colour(&stdout(&run(&["callers", "--color", "always"], file))));
    let plain = without_colour(&on_terminal(&args, file, 80, &[]));
    assert_eq!(plain, on_terminal(&args, file, 80, &[("NO_COLOR", "1")]), "colour moves nothing");
}

#[test]
fn screens_are_those_of_the_snapshots() {
    let settings = {
        let mut settings = insta::Settings::new();
        settings.set_prepend_module_to_snapshot(false);
        settings.set_snapshot_path("snapshots");
        settings.set_omit_expression(true);
        settings
    };
    settings.bind(|| {
        for (name, file) in captures() {
            for args in command_lines().iter().filter(|args| answers(args, file)) {
                let command = if args.is_empty() {
                    "first-screen".to_owned()
                } else {
                    args.join("_").replace(['>', '/'], "")
                };
                insta::assert_snapshot!(format!("{name}_{command}"), stdout(&run_beside(args, file)));
            }
        }
    });
}

/// Captures outside of the repository: `KMT_TRACES` names a folder of .kmt files.
#[test]
#[ignore = "KMT_TRACES names a folder of .kmt files"]
fn every_screen_of_other_captures_fits() {
    let folder = std::env::var("KMT_TRACES").expect("KMT_TRACES");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    for file in files.filter(|path| path.extension().is_some_and(|end| end == "kmt")) {
        for args in command_lines() {
            for width in WIDTHS {
                let args = [args.as_slice(), &["--no-pager"]].concat();
                let screen = without_colour(&on_terminal(&args, &file, width, &[]));
                let long = long_lines(&screen, usize::from(width));
                assert!(long.is_empty(), "{} {args:?} at {width}: {long:#?}", file.display());
            }
        }
    }
}
