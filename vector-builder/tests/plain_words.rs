//! Users read plain technical English: messages, headings and help in the sources of both programs and the libraries,
//! and the docs, hold none of the phrases in `plain_words/phrases.txt`.
//!
//! An exception is one line in `plain_words/exceptions.txt`: file, tab, text of the line that may stay, tab, reason.

use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use regex::Regex;

/// Most exceptions that the list may have.
const EXCEPTIONS_MAX: usize = 30;

/// Fewest phrases in the list.
const PHRASES_MIN: usize = 64;

/// Folders of sources whose string literals and option help users read.
const SOURCES: [&str; 4] = ["kmt-analyze/src", "kmt-capture/src", "kmt-capture/common/src", "kmt-format/src"];

/// Documents that users read, and folders of them.
const DOCS: [&str; 8] = [
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "docs",
    "format-spec",
    "kmt-capture/src/snippet.sh",
];

/// A piece of text that users read.
struct Piece {
    file: String,
    line: usize,
    text: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// Files below a path that end so, in order.
fn files(path: &Path, end: &str, out: &mut Vec<PathBuf>) {
    if path.is_file() {
        out.extend(path.to_str().filter(|name| name.ends_with(end)).map(|_| path.to_owned()));
        return;
    }
    let mut entries: Vec<PathBuf> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    let skipped = ["target", "node_modules", "vectors", "golden", "book"];
    let is_skipped = |path: &PathBuf| path.file_name().is_some_and(|name| skipped.iter().any(|s| name == *s));
    entries.iter().filter(|path| !is_skipped(path)).for_each(|path| files(path, end, out));
}

/// String literals, and the help of command-line options, outside of tests.
fn literals(tokens: TokenStream, in_clap: bool, found: &mut Vec<(usize, String)>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut is_clap = in_clap;
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        at += 1;
        match token {
            TokenTree::Punct(mark) if mark.as_char() == '#' => {
                let Some(TokenTree::Group(attribute)) = tokens.get(at) else { continue };
                at += 1;
                let text = attribute.stream().to_string();
                if text.replace(' ', "") == "cfg(test)" {
                    // The item behind it: up to its block or semicolon.
                    while let Some(next) = tokens.get(at) {
                        at += 1;
                        match next {
                            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => break,
                            TokenTree::Punct(mark) if mark.as_char() == ';' => break,
                            _ => {}
                        }
                    }
                } else if text.starts_with("doc") {
                    if is_clap {
                        literals(attribute.stream(), true, found);
                    }
                } else {
                    is_clap |= text.starts_with("derive")
                        && ["Parser", "Args", "Subcommand", "ValueEnum"]
                            .iter()
                            .any(|name| text.contains(name));
                    is_clap |= text.starts_with("arg") || text.starts_with("command");
                    literals(attribute.stream(), true, found);
                }
            }
            TokenTree::Group(group) => {
                literals(group.stream(), is_clap, found);
                if group.delimiter() == Delimiter::Brace {
                    is_clap = in_clap;
                }
            }
            TokenTree::Literal(literal) => {
                let text = literal.to_string();
                if text.starts_with(['"', 'r']) {
                    found.push((literal.span().start().line, text));
                }
            }
            _ => {}
        }
    }
}

fn pieces() -> Vec<Piece> {
    let root = root();
    let mut out = Vec::new();
    let name = |path: &Path| path.strip_prefix(&root).unwrap().display().to_string();
    let mut sources = Vec::new();
    SOURCES.iter().for_each(|folder| files(&root.join(folder), ".rs", &mut sources));
    for path in sources.iter().filter(|path| !name(path).contains("tests")) {
        let tokens: TokenStream = fs::read_to_string(path).unwrap().parse().unwrap();
        let mut found = Vec::new();
        literals(tokens, false, &mut found);
        out.extend(found.into_iter().map(|(line, text)| Piece { file: name(path), line, text }));
    }
    let mut docs = Vec::new();
    for end in [".md", ".sh"] {
        DOCS.iter().for_each(|path| files(&root.join(path), end, &mut docs));
    }
    for path in &docs {
        let text = fs::read_to_string(path).unwrap();
        let lines = text.lines().enumerate();
        out.extend(lines.map(|(at, line)| Piece { file: name(path), line: at + 1, text: line.to_owned() }));
    }
    out
}

/// Lines of a list that are no comments, in their parts.
fn list(name: &str) -> Vec<Vec<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plain_words").join(name);
    let text = fs::read_to_string(path).unwrap();
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

#[test]
fn users_read_plain_words() {
    let phrases = list("phrases.txt");
    assert!(phrases.len() >= PHRASES_MIN, "{} phrases", phrases.len());
    let phrases: Vec<(Regex, &str)> =
        phrases.iter().map(|p| (Regex::new(&format!("(?i){}", p[0])).unwrap(), p[1].as_str())).collect();
    let exceptions = list("exceptions.txt");
    assert!(exceptions.len() <= EXCEPTIONS_MAX, "{} exceptions", exceptions.len());
    assert!(exceptions.iter().all(|e| e.len() == 3 && e[2].len() > 10), "each exception has its reason");
    let mut used = vec![false; exceptions.len()];
    let mut found = Vec::new();
    for piece in pieces() {
        for (phrase, instead) in &phrases {
            let Some(hit) = phrase.find(&piece.text) else { continue };
            let excepted = exceptions.iter().position(|e| e[0] == piece.file && piece.text.contains(&e[1]));
            match excepted {
                Some(at) => used[at] = true,
                None => found.push(format!(
                    "{}:{}: {:?}: {} instead of {:?}",
                    piece.file,
                    piece.line,
                    piece.text.trim().chars().take(120).collect::<String>(),
                    instead,
                    hit.as_str()
                )),
            }
        }
    }
    assert!(found.is_empty(), "{} places:\n{}", found.len(), found.join("\n"));
    let unused: Vec<&Vec<String>> =
        exceptions.iter().zip(&used).filter(|(_, used)| !**used).map(|(e, _)| e).collect();
    assert!(unused.is_empty(), "exceptions that no line needs: {unused:?}");
}

#[test]
fn the_phrases_of_old_reports_are_found() {
    let phrases = list("phrases.txt");
    let old = [
        "numbers one can believe",
        "lives freed unseen",
        "frees of untraced birth",
        "the file does not tell the page size",
        "Print so many rows",
        "and nobody counted them",
        "379 intervals beyond the threshold",
        "what the pass came to",
        "kmt-capture check tells which it has",
        "where they lie in memory cannot be told",
        "somebody else uses it",
        "`kmt-capture clean` puts tracefs back",
        "no stacks are taken of it",
        "x is there, and is no file",
        "time stamps are taken for nanoseconds",
        "reports on memory have nothing to say",
        "# What is alive, and how sure that is",
    ];
    for text in old {
        let is_found = phrases.iter().any(|p| Regex::new(&format!("(?i){}", p[0])).unwrap().is_match(text));
        assert!(is_found, "{text}");
    }
}
