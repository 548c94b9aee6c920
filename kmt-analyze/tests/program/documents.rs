//! The guide and the README show what the programs print: each `$ kmt-analyze …` of a `console` block is run on the
//! sample capture, and its output is what stands below it.
//!
//! `KMT_WRITE=1 cargo test -p kmt-analyze --test program documents` writes the outputs into the guide.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::files::Scratch;

/// Documents whose console blocks are run.
const DOCUMENTS: [&str; 6] = [
    "README.md",
    "docs/guide/tutorial.md",
    "docs/guide/growth.md",
    "docs/guide/waste.md",
    "docs/guide/waits.md",
    "docs/guide/trust.md",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Words of a shell line; single quotes hold words together.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for c in line.chars() {
        match c {
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words
}

/// Output of a command line of the guide, in a directory that holds the sample as `sample.kmt`.
fn output(line: &str, directory: &Path) -> String {
    let words = words(line);
    match words[0].as_str() {
        // The test converts through the library: what convert prints is on standard error.
        "kmt-capture" => {
            assert_eq!(line, "kmt-capture convert docs/sample/x86_64-6.1 -o sample.kmt");
            String::new()
        }
        "kmt-analyze" => {
            let mut command = Command::new(env!("CARGO_BIN_EXE_kmt-analyze"));
            let run = command.args(&words[1..]).current_dir(directory).env("COLUMNS", "80").output().unwrap();
            let message = String::from_utf8(run.stderr).unwrap();
            assert!(matches!(run.status.code(), Some(0 | 1 | 3)), "{line}: {message}");
            String::from_utf8(run.stdout).unwrap() + &message
        }
        other => panic!("{other}: the guide runs only the two programs"),
    }
}

/// A document with the outputs below its commands.
fn with_outputs(text: &str, directory: &Path) -> String {
    let mut out = String::new();
    let mut is_console = false;
    for line in text.lines() {
        match (is_console, line) {
            (false, "```console") => is_console = true,
            (true, "```") => is_console = false,
            // Outputs that stand there are left out: they are made again.
            (true, line) if !line.starts_with("$ ") => continue,
            _ => {}
        }
        out.push_str(line);
        out.push('\n');
        if let Some(command) = line.strip_prefix("$ ").filter(|_| is_console) {
            out.push_str(output(command, directory).trim_end());
            if !out.ends_with('\n') {
                out.push('\n');
            }
        }
    }
    out
}

#[test]
fn documents_show_the_output_of_their_commands() {
    let scratch = Scratch::new();
    let trace = scratch.convert(&root().join("docs/sample/x86_64-6.1"));
    fs::rename(&trace, scratch.0.join("sample.kmt")).unwrap();
    for document in DOCUMENTS {
        let path = root().join(document);
        let text = fs::read_to_string(&path).unwrap();
        let made = with_outputs(&text, &scratch.0);
        if std::env::var_os("KMT_WRITE").is_some() {
            fs::write(&path, &made).unwrap();
        } else {
            assert!(
                text == made,
                "{document} shows other output than the programs: KMT_WRITE=1 writes it anew"
            );
        }
    }
}

/// The README's block for everybody, in its order, in an empty directory beside the repository's `docs`.
#[test]
fn lines_of_the_readme_run_anywhere() {
    let text = fs::read_to_string(root().join("README.md")).unwrap();
    let block = text.split("Anywhere, without root").nth(1).unwrap().split("As root").next().unwrap();
    let lines: Vec<&str> = block.lines().filter_map(|line| line.strip_prefix("    ")).collect();
    assert!(lines.len() > 5, "{block}");
    let scratch = Scratch::new();
    std::os::unix::fs::symlink(root().join("docs").canonicalize().unwrap(), scratch.0.join("docs")).unwrap();
    for line in lines {
        let line = line.split('#').next().unwrap().trim();
        if line == "kmt-capture convert docs/sample/x86_64-6.1 -o sample.kmt" {
            let trace = scratch.convert(&scratch.0.join("docs/sample/x86_64-6.1"));
            fs::rename(trace, scratch.0.join("sample.kmt")).unwrap();
            continue;
        }
        let words = words(line);
        assert_eq!(words[0], "kmt-analyze", "{line}");
        let mut command = Command::new(env!("CARGO_BIN_EXE_kmt-analyze"));
        let output = command.args(&words[1..]).current_dir(&scratch.0).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{line}: {message}");
        match words.iter().position(|word| word == "-o") {
            Some(at) => {
                assert!(fs::metadata(scratch.0.join(&words[at + 1])).unwrap().len() > 1_000, "{line}")
            }
            None => assert!(output.stdout.len() > 200, "{line}: {message}"),
        }
        assert!(!String::from_utf8_lossy(&output.stdout).starts_with("Nothing"), "{line}");
    }
}

#[test]
fn commands_of_the_readme_exist() {
    let text = fs::read_to_string(root().join("README.md")).unwrap();
    let help = Command::new(env!("CARGO_BIN_EXE_kmt-analyze")).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let commands =
        text.split("kmt-analyze ").skip(1).filter_map(|rest| rest.split([' ', '`', '\n', ')']).next());
    let named: Vec<&str> =
        commands.filter(|word| word.chars().all(|c| c.is_ascii_lowercase() || c == '-')).collect();
    assert!(named.len() > 4, "{named:?}");
    for name in named.iter().filter(|name| !name.starts_with("--")) {
        assert!(help.contains(&format!("  {name} ")), "README names the command {name}");
    }
}

#[test]
fn links_lead_to_files() {
    let mut folders = vec![root().join("docs"), root().join("format-spec")];
    let mut files =
        vec![root().join("README.md"), root().join("CONTRIBUTING.md"), root().join("ARCHITECTURE.md")];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            match path.extension().and_then(|end| end.to_str()) {
                _ if path.is_dir() => folders.push(path),
                Some("md") => files.push(path),
                _ => {}
            }
        }
    }
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let path = link.split('#').next().unwrap();
            let is_local =
                !path.is_empty() && !link.contains("://") && !path.contains(' ') && !path.starts_with('<');
            let target = file.parent().unwrap().join(path);
            assert!(!is_local || target.exists(), "{}: {link} leads nowhere", file.display());
        }
    }
}

/// The help, the manual and the glossary have each verdict of `leaks` and its meaning.
#[test]
fn verdicts_are_explained_in_the_help_the_manual_and_the_glossary() {
    let program = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_kmt-analyze")).args(args).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let (help, manual) = (program(&["leaks", "--help"]), program(&["man", "leaks"]));
    let glossary = std::fs::read_to_string(root().join("docs/guide/glossary.md")).unwrap();
    let list = help.split("Verdicts:\n").nth(1).unwrap_or_else(|| panic!("{help}"));
    let mut number = 0;
    for line in list.lines().take_while(|line| line.starts_with("  ")) {
        let (words, meaning) = line.trim().split_once("  ").unwrap_or_else(|| panic!("{line}"));
        let row = format!("| {words} | {} |", meaning.trim());
        assert!(glossary.contains(&row), "{row}");
        assert!(manual.contains(words) && manual.contains(meaning.trim()), "{line}: {manual}");
        number += 1;
    }
    assert_eq!(number, 15, "{help}");
}
