//! Commands that screens and the page suggest: a shell gives them the file, whatever its name.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::page::about;
use crate::support::files::{Scratch, data, stderr, stdout};

const NAMES: [&str; 8] = [
    "plain.kmt",
    "a b.kmt",
    "it's.kmt",
    "$HOME`id`.kmt",
    "\"q\";&\\.kmt",
    "-x.kmt",
    "*.kmt",
    "a\u{202e}\n\u{1b}\\'1.kmt",
];

/// Words that a shell gives to the program, on a command line that is printed.
fn words(folder: &Path, line: &str) -> Vec<String> {
    let program = folder.join("bin/kmt-analyze");
    if !program.exists() {
        fs::create_dir_all(folder.join("bin")).unwrap();
        fs::write(&program, "#!/bin/sh\nprintf '%s\\0' \"$@\"\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:{}", folder.join("bin").display(), std::env::var("PATH").unwrap());
    let output =
        Command::new("bash").args(["-c", line]).env("PATH", path).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{line}: {}", stderr(&output));
    stdout(&output).split_terminator('\0').map(str::to_owned).collect()
}

fn run_in(folder: &Path, args: &[&str], name: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_kmt-analyze"))
        .args(args)
        .args(["--", name])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(matches!(output.status.code(), Some(0 | 3)), "{args:?} {name:?}: {}", stderr(&output));
    stdout(&output)
}

/// The commands of a screen, without their reasons.
fn commands(screen: &str) -> Vec<&str> {
    let of_line = |line: &'_ str| line.find("  kmt-analyze ").map(|at| at + 2);
    let command = |line| of_line(line).map(|at| line[at..].split("  # ").next().unwrap().trim_end());
    screen.lines().filter_map(command).collect()
}

fn is_of(folder: &Path, line: &str, name: &str) {
    let words = words(folder, line);
    let last = words.last().unwrap();
    let expected = if name.starts_with('-') { format!("./{name}") } else { name.to_owned() };
    assert_eq!(*last, expected, "{line}");
}

#[test]
fn suggested_commands_are_of_the_file() {
    let scratch = Scratch::new();
    let made = scratch.convert(&data("x86_64-6.1"));
    fs::write(scratch.0.join("w r"), "kmalloc\n").unwrap();
    for name in NAMES {
        fs::copy(&made, scratch.0.join(name)).unwrap();
        let mut all = 0;
        for args in [&["--wide"][..], &["callers", "--wide"], &["caches", "--wide", "--wrappers", "w r"]] {
            let screen = run_in(&scratch.0, args, name);
            let found = commands(&screen);
            assert!(!found.is_empty(), "{args:?}: {screen}");
            for line in &found {
                is_of(&scratch.0, line, name);
                let words = words(&scratch.0, line);
                assert_eq!(args.contains(&"w r"), words.contains(&"w r".to_owned()), "{line}");
            }
            all += found.len();
        }
        assert!(all > 5, "{name}: {all}");
    }
}

#[test]
fn commands_of_the_page_are_of_the_file() {
    let scratch = Scratch::new();
    // It has findings, whose commands the page has.
    let made = scratch.convert(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/x86_64-6.1-reclaim"));
    for name in NAMES {
        fs::copy(&made, scratch.0.join(name)).unwrap();
        let html = run_in(&scratch.0, &["report", "-o", "-"], name);
        let unescaped = |text: &str| {
            let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
            text.replace("&#39;", "'").replace("&amp;", "&")
        };
        let codes =
            html.split("<code>kmt-analyze ").skip(1).map(|rest| rest.split("</code>").next().unwrap());
        let lines: Vec<String> = codes.map(|code| format!("kmt-analyze {}", unescaped(code))).collect();
        assert!(!lines.is_empty());
        lines.iter().for_each(|line| is_of(&scratch.0, line, name));
        // The script makes commands of these.
        let html = run_in(&scratch.0, &["report", "-o", "-", "--where", "size>64"], name);
        let about = about(&html);
        let options = about["options"].as_array().unwrap().iter().map(|option| option.as_str().unwrap());
        let line =
            [&["kmt-analyze callers"][..], &options.collect::<Vec<_>>(), &[about["file"].as_str().unwrap()]];
        let line = line.concat().join(" ");
        is_of(&scratch.0, &line, name);
        assert_eq!(words(&scratch.0, &line)[..3], ["callers", "--where", "size>64"], "{line}");
    }
}
