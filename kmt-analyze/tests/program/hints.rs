//! Commands on screens and in messages are run as they are printed: nothing is filled in, and each one succeeds.

use std::path::Path;
use std::process::Command;

use crate::screens::{captures, command_lines};
use crate::support::files::{Scratch, run_beside, stderr, stdout};

/// Commands of a text: on lines of their own, where a backslash continues a line, and between backquotes.
fn commands(text: &str) -> Vec<String> {
    const NAME: &str = "kmt-analyze ";
    let whole = text.replace(" \\\n", " ");
    let line = |line: &str| {
        let at = line.find(NAME)?;
        let is_alone = line[..at].trim().is_empty() || line[..at].ends_with("  ");
        is_alone.then(|| line[at..].split("  # ").next().unwrap_or_default().trim().to_owned())
    };
    let mut found: Vec<String> = whole.lines().filter_map(line).collect();
    let quoted = text.split('`').skip(1).step_by(2).filter(|part| part.starts_with(NAME));
    found.extend(quoted.map(|part| part.replace('\n', " ")));
    found
}

/// Options of a recording that a full stop follows: copied to the end of the line they are wrong.
fn recordings_with_stop(text: &str) -> Vec<String> {
    let whole = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let options = whole.split("record ").skip(1).filter_map(|rest| {
        let words = rest.strip_prefix("with ").unwrap_or(rest);
        let end = words.find(". ").map_or(words.len(), |at| at + 1);
        let words = words.get(..end)?.strip_suffix('.')?;
        let (before, last) = words.rsplit_once(' ').unwrap_or(("", words));
        let is_option = |word: &str| word.rsplit(' ').next().is_some_and(|word| word.starts_with('-'));
        (words.starts_with('-') && (is_option(before) || is_option(last))).then(|| words.to_owned())
    });
    options.collect()
}

#[test]
fn recordings_at_the_end_of_a_sentence_are_found() {
    let found = |text: &str| recordings_with_stop(text).len();
    assert_eq!(found("Record again with kmt-capture record --buffer-size\n9M.\nMore."), 1);
    assert_eq!(found("Unknown: record with --stack kmem:mm_page_alloc. More"), 1);
    assert_eq!(
        found("kmt-capture record -p reclaim records them.\n  kmt-capture record -d 3s  # again\n"),
        0
    );
}

/// Runs a command line in a shell that finds the program.
fn run_in_shell(line: &str, folder: &Path) -> std::process::Output {
    let program = Path::new(env!("CARGO_BIN_EXE_kmt-analyze")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    Command::new("sh").args(["-c", line]).current_dir(folder).env("PATH", path).output().unwrap()
}

#[test]
fn every_hint_runs_as_it_is_printed() {
    let mut seen = std::collections::BTreeSet::new();
    for (name, capture) in captures() {
        // Of the vectors, one lost most of its events: what it suggests has an answer too.
        let is_vector = name.ends_with("-le64");
        let scratch = Scratch::new();
        // A shell would split this name.
        let file = scratch.0.join("it's a trace.kmt");
        std::fs::copy(capture, &file).unwrap();
        for args in command_lines() {
            let output = run_beside(&args, &file);
            // `all` lists the reasons of reports that have no answer as sentences.
            if args.first() != Some(&"all") {
                assert_eq!(recordings_with_stop(&stdout(&output)), [""; 0], "{name} {args:?}");
            }
            for command in commands(&(stdout(&output) + &stderr(&output))) {
                assert!(!command.ends_with("FILE"), "{name} {args:?}: {command}");
                if !seen.insert((name, command.clone())) {
                    continue;
                }
                let done = run_in_shell(&command, &scratch.0);
                let code = done.status.code().filter(|code| !is_vector || *code != 3).unwrap_or(0);
                assert_eq!(code, 0, "{name} {args:?}: {command}: {}", stderr(&done));
            }
        }
    }
    assert!(seen.len() > 60, "{seen:#?}");
}

/// Leaks has no verdict where more than a tenth of the events was lost.
#[test]
fn leaks_is_suggested_where_it_has_an_answer() {
    for (overrun, has_answer) in [(0, true), (999_999, false)] {
        let scratch = Scratch::new();
        let file = scratch.changed("x86_64-6.1", |folder| {
            let stats = folder.join("tracefs/per_cpu/cpu0/stats");
            let text = std::fs::read_to_string(&stats).unwrap();
            let lost = format!("overrun: {overrun}\ncommit");
            std::fs::write(stats, text.replace("overrun: 0\ncommit", &lost)).unwrap();
        });
        let leaks = run_beside(&["leaks"], &file);
        assert_eq!(leaks.status.code(), Some(if has_answer { 0 } else { 3 }), "{}", stderr(&leaks));
        assert_eq!(stdout(&leaks).contains("growth is not judged"), !has_answer, "{}", stdout(&leaks));
        for report in ["summary", "lifetimes"] {
            let text = stdout(&run_beside(&[report], &file));
            assert_eq!(text.contains("kmt-analyze leaks "), has_answer, "{report}: {text}");
        }
    }
}

#[test]
fn hints_of_a_comparison_run_as_they_are_printed() {
    let scratch = Scratch::new();
    let (one, two) = (scratch.0.join("a b.kmt"), scratch.0.join("-c.kmt"));
    for file in [&one, &two] {
        std::fs::copy(&captures()[2].1, file).unwrap();
    }
    for line in [
        "kmt-analyze diff 'a b.kmt' ./-c.kmt",
        "kmt-analyze diff --time +0..+0.1 --against +0.1..+0.2 'a b.kmt'",
        "kmt-analyze diff 'a b.kmt' --repeat-before ./-c.kmt ./-c.kmt",
    ] {
        let output = run_in_shell(line, &scratch.0);
        assert_eq!(output.status.code(), Some(0), "{line}: {}", stderr(&output));
        let found = commands(&stdout(&output));
        assert!(found.len() >= 2, "{line}: {}", stdout(&output));
        for command in found {
            let done = run_in_shell(&command, &scratch.0);
            assert_eq!(done.status.code(), Some(0), "{line}: {command}: {}", stderr(&done));
        }
    }
}

/// Words of other tools: the hint has the right command and the file, and runs.
#[test]
fn hints_for_words_of_other_tools_run_as_they_are_printed() {
    let scratch = Scratch::new();
    std::fs::copy(&captures()[2].1, scratch.0.join("a b.kmt")).unwrap();
    for (typed, meant) in [
        ("kmem 'a b.kmt'", "summary --compat perf-kmem 'a b.kmt'"),
        ("kmem stat 'a b.kmt'", "summary --compat perf-kmem 'a b.kmt'"),
        ("mem 'a b.kmt'", "summary --compat trace-cmd-mem 'a b.kmt'"),
        ("-i 'a b.kmt'", "'a b.kmt'"),
        ("kmem -i 'a b.kmt'", "summary --compat perf-kmem 'a b.kmt'"),
        ("callers -i 'a b.kmt' -l 3", "callers -l 3 'a b.kmt'"),
        ("leaks --input='a b.kmt'", "leaks 'a b.kmt'"),
        ("callers --from +0 --to +0.1 'a b.kmt'", "callers --time +0..+0.1 'a b.kmt'"),
        ("callers --from +0 'a b.kmt'", "callers --time +0.. 'a b.kmt'"),
        ("--from +0 --to +0.1 'a b.kmt'", "--time +0..+0.1 'a b.kmt'"),
        ("callers --format csv 'a b.kmt'", "callers --csv 'a b.kmt'"),
        ("-l 3 'a b.kmt'", "all -l 3 'a b.kmt'"),
        ("--csv 'a b.kmt'", "callers --csv 'a b.kmt'"),
        ("callers --group task 'a b.kmt'", "callers --by task 'a b.kmt'"),
        ("pages 'a b.kmt' --group-by=order", "pages 'a b.kmt' --by order"),
        ("summary --csv 'a b.kmt'", "export csv --of summary 'a b.kmt'"),
        ("info --csv 'a b.kmt'", "events --csv 'a b.kmt'"),
        ("waste --by task 'a b.kmt'", "callers --sort wasted --by task 'a b.kmt'"),
        ("waste --by task --sort live 'a b.kmt'", "callers --by task --sort live 'a b.kmt'"),
        ("leaks --group=task 'a b.kmt'", "memory --by task 'a b.kmt'"),
        ("top 'a b.kmt'", "callers 'a b.kmt'"),
        ("slabtop 'a b.kmt'", "caches --sort live 'a b.kmt'"),
        ("dump --csv 'a b.kmt'", "export csv 'a b.kmt'"),
        ("summary --sort live 'a b.kmt'", "callers --sort live 'a b.kmt'"),
        ("callers --sort max 'a b.kmt'", "lifetimes --sort max 'a b.kmt'"),
        ("findings --sort max 'a b.kmt'", "lifetimes --sort max 'a b.kmt'"),
        ("--by task 'a b.kmt'", "callers --by task 'a b.kmt'"),
        ("diff --csv 'a b.kmt' 'a b.kmt'", "diff --json 'a b.kmt' 'a b.kmt'"),
        ("lifetimes --cache dentry 'a b.kmt'", "lifetimes --where cache=dentry 'a b.kmt'"),
        ("leaks --task=cat 'a b.kmt'", "leaks --where comm=cat 'a b.kmt'"),
        ("leaks --pid cat 'a b.kmt'", "leaks --comm cat 'a b.kmt'"),
        ("callers -n 5 'a b.kmt'", "callers -l 5 'a b.kmt'"),
        ("callers --sort bytes 'a b.kmt'", "callers --sort allocated 'a b.kmt'"),
        ("callers --sort frag 'a b.kmt'", "callers --sort waste_percent 'a b.kmt'"),
        ("callers -s hit 'a b.kmt'", "callers -s allocs 'a b.kmt'"),
        ("stat --slab 'a b.kmt'", "summary 'a b.kmt'"),
        ("script 'a b.kmt'", "dump 'a b.kmt'"),
        ("verify --csv 'a b.kmt'", "verify --json 'a b.kmt'"),
    ] {
        let output = run_in_shell(&format!("kmt-analyze {typed}"), &scratch.0);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{typed}: {said}");
        let hint = said.lines().find_map(|line| line.strip_prefix("hint: "));
        assert_eq!(hint, Some(format!("kmt-analyze {meant}").as_str()), "{typed}: {said}");
        let done = run_in_shell(hint.unwrap(), &scratch.0);
        assert_eq!(done.status.code(), Some(0), "{typed}: {}", stderr(&done));
    }
    let none = run_in_shell("kmt-analyze kmem missing.kmt", &scratch.0);
    assert!(!stderr(&none).contains("--compat"), "{}", stderr(&none));
}

/// Words that some reports have: each command that reads a file accepts them, or names a line that is accepted.
#[test]
fn words_of_other_reports_have_a_hint_in_every_command() {
    let scratch = Scratch::new();
    std::fs::copy(&captures()[2].1, scratch.0.join("a b.kmt")).unwrap();
    let commands = crate::support::files::reports();
    let others = ["info", "dump", "all", "reconcile", ""];
    let mut hints = 0;
    for command in commands.iter().copied().chain(others) {
        // The recording lacks the events of some reports: their own lines are refused too.
        if run_in_shell(&format!("kmt-analyze {command} 'a b.kmt'"), &scratch.0).status.code() == Some(1) {
            continue;
        }
        for words in ["--by task", "--group task", "--sort allocs", "--csv", "--sort live --csv"] {
            let output = run_in_shell(&format!("kmt-analyze {command} {words} 'a b.kmt'"), &scratch.0);
            // Accepted, or a name of a column that the report lacks, which is answered with its own names.
            if output.status.code() != Some(2) || stderr(&output).contains("possible values") {
                continue;
            }
            // It needs more than a file.
            if ["who", "temporary"].contains(&command) && !stderr(&output).contains("unexpected argument") {
                continue;
            }
            let said = stderr(&output);
            let hint = said.lines().find_map(|line| line.strip_prefix("hint: "));
            let hint = hint.unwrap_or_else(|| panic!("{command} {words}: {said}"));
            let done = run_in_shell(hint, &scratch.0);
            let code = done.status.code();
            assert!(
                code == Some(0) && hint.ends_with("'a b.kmt'"),
                "{command} {words}: {hint}: {}",
                stderr(&done)
            );
            hints += 1;
        }
    }
    assert!(hints > 40, "{hints}");
}

/// Weights of the call graph, by the names that other reports have for them.
#[test]
fn columns_are_weights_of_the_call_graph() {
    let scratch = Scratch::new();
    std::fs::copy(&captures()[0].1, scratch.0.join("a.kmt")).unwrap();
    for (column, weight) in [("live", "live"), ("allocs", "count"), ("allocated", "alloc")] {
        let said = stderr(&run_in_shell(&format!("kmt-analyze callgraph --sort {column} a.kmt"), &scratch.0));
        let hint = said.lines().find_map(|line| line.strip_prefix("hint: "));
        let meant = format!("kmt-analyze callgraph --by {weight} a.kmt");
        assert_eq!(hint, Some(meant.as_str()), "{said}");
        let done = run_in_shell(&meant, &scratch.0);
        assert_eq!(done.status.code(), Some(0), "{meant}: {}", stderr(&done));
    }
}

/// A folder with texts of /proc is read by `balance`, and by no other command.
#[test]
fn folders_of_proc_texts_are_for_balance() {
    let scratch = Scratch::new();
    let meminfo =
        std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/sample/x86_64-6.1/meminfo.after"))
            .unwrap();
    for folder in ["be fore", "after", "saved"] {
        std::fs::create_dir(scratch.0.join(folder)).unwrap();
        let name = if folder == "saved" { "meminfo.before" } else { "meminfo" };
        std::fs::write(scratch.0.join(folder).join(name), &meminfo).unwrap();
    }
    std::fs::write(scratch.0.join("saved/meminfo.after"), &meminfo).unwrap();
    for (typed, meant) in [
        ("'be fore'", "kmt-analyze balance 'be fore'"),
        ("leaks 'be fore'", "kmt-analyze balance 'be fore'"),
        ("diff 'be fore' after", "kmt-analyze balance 'be fore' after"),
        ("saved", "kmt-analyze balance saved"),
    ] {
        let said = stderr(&run_in_shell(&format!("kmt-analyze {typed}"), &scratch.0));
        let hint = said.lines().find_map(|line| line.strip_prefix("hint: "));
        assert_eq!(hint, Some(meant), "{typed}: {said}");
        let done = run_in_shell(meant, &scratch.0);
        assert_eq!(done.status.code(), Some(0), "{meant}: {}", stderr(&done));
    }
    // Beside ring buffers the texts describe a recording.
    std::fs::create_dir(scratch.0.join("saved/tracefs")).unwrap();
    let said = stderr(&run_in_shell("kmt-analyze saved", &scratch.0));
    assert!(said.contains("kmt-capture convert saved"), "{said}");
}

/// A part of a name is not a name: where nothing matches, the condition that finds it is shown.
#[test]
fn a_part_of_a_name_has_a_condition_that_finds_it() {
    let scratch = Scratch::new();
    std::fs::copy(&captures()[2].1, scratch.0.join("a.kmt")).unwrap();
    let tasks = stdout(&run_in_shell("kmt-analyze tasks --csv a.kmt", &scratch.0));
    let name = tasks.lines().nth(1).and_then(|row| row.split(',').next()).unwrap().to_owned();
    let name = name.rsplit_once('-').map_or(name.as_str(), |(name, _)| name);
    let part = name.get(1..).filter(|part| !part.is_empty()).unwrap();
    let said = stdout(&run_in_shell(&format!("kmt-analyze callers --comm {part} a.kmt"), &scratch.0));
    assert!(said.starts_with("Nothing matches."), "{said}");
    let condition = format!("--where 'comm~{part}'");
    assert!(said.contains(&condition), "{condition}: {said}");
    let found = run_in_shell(&format!("kmt-analyze callers {condition} a.kmt"), &scratch.0);
    assert!(!stdout(&found).starts_with("Nothing matches."), "{}", stdout(&found));
    let none = stdout(&run_in_shell("kmt-analyze callers --comm nosuchname a.kmt", &scratch.0));
    assert!(!none.contains("--where"), "{none}");
}

#[test]
fn commands_are_found_in_texts() {
    let text = "It grows.  kmt-analyze leaks 'a b'\nSee kmt-analyze.\n\n  kmt-analyze x \\\n      c.kmt  # why\nhint: `kmt-analyze y\nd.kmt` does\n";
    assert_eq!(
        commands(text),
        ["kmt-analyze leaks 'a b'", "kmt-analyze x       c.kmt", "kmt-analyze y d.kmt"]
    );
}
