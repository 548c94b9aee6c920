//! Small files that ask for much: what every command takes of memory.
//!
//! Every command on every file takes minutes, and time says something only of optimised programs:
//! `cargo test --release -p kmt-analyze --test program hostile::budget -- --ignored`.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{fs, thread};

use super::dimensions;
use super::files::{self, File};
use crate::support::files::{Scratch, data, reports, run, stderr};

/// Memory that any command may take, and more for each allocation in the file.
const BYTES_MAX: u64 = 512 << 20;
const BYTES_PER_ALLOCATION: u64 = 200;
/// The same for each call site: `all` has the sums of every report at a time.
const BYTES_PER_SITE: u64 = 2560;
/// CPU time that any command may take.
const SECONDS_MAX: f64 = 10.0;

/// What a process took.
#[derive(Debug, Default)]
pub struct Taken {
    pub code: Option<i32>,
    pub bytes: u64,
    pub seconds: f64,
}

/// Runs a command to its end, or until it has used that much CPU time or 4 GiB, and looks at what it takes meanwhile.
pub fn taken(args: &[&str], file: &Path, seconds_max: f64) -> Taken {
    let mut child = Command::new(env!("CARGO_BIN_EXE_kmt-analyze"))
        .args(args)
        .arg(file)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let place = format!("/proc/{}", child.id());
    let mut taken = Taken::default();
    loop {
        let status = fs::read_to_string(format!("{place}/status")).unwrap_or_default();
        let kib = status.lines().find_map(|l| l.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
        taken.bytes = kib.and_then(|k| k.parse::<u64>().ok()).map_or(taken.bytes, |kib| kib << 10);
        // Fields 3, 14 and 15 of proc(5): state, ticks of 10 ms. What has ended keeps its ticks until it is waited for.
        let stat = fs::read_to_string(format!("{place}/stat")).unwrap_or_default();
        let ticks: Vec<u64> = stat.split(' ').skip(13).take(2).filter_map(|t| t.parse().ok()).collect();
        taken.seconds = (ticks.iter().sum::<u64>() as f64 / 100.0).max(taken.seconds);
        if stat.split(' ').nth(2) == Some("Z") {
            break;
        }
        if taken.seconds > seconds_max || taken.bytes > 4 << 30 {
            child.kill().unwrap();
        }
        thread::sleep(Duration::from_millis(2));
    }
    taken.code = child.wait().unwrap().code();
    taken
}

/// What is wrong with what a command took.
fn wrong(args: &[&str], made: &File, file: &Path, is_timed: bool) -> Option<String> {
    let taken = taken(args, file, f64::INFINITY);
    let is_fine = matches!(taken.code, Some(0 | 1 | 3))
        && taken.bytes <= BYTES_MAX + BYTES_PER_ALLOCATION * made.allocations + BYTES_PER_SITE * made.sites
        && (!is_timed || taken.seconds <= SECONDS_MAX);
    (!is_fine).then(|| format!("{}: {args:?}: {taken:?}", made.name))
}

fn written(made: &File, scratch: &Scratch) -> std::path::PathBuf {
    let bytes = (made.make)();
    assert!(bytes.len() <= 16 << 20, "{}: {} bytes", made.name, bytes.len());
    let file = scratch.0.join(made.name).with_extension("kmt");
    fs::write(&file, bytes).unwrap();
    file
}

#[test]
fn memory_is_bounded_whatever_a_file_asks_for() {
    let scratch = Scratch::new();
    for made in files::all().iter().filter(|made| !made.is_long) {
        let file = written(made, &scratch);
        for args in [&["all", "--json"][..], &["info"], &["summary", "--compat", "perf-kmem", "--page"]] {
            assert_eq!(wrong(args, made, &file, false), None);
        }
    }
}

/// Memory grows with the number of call sites, by no more than documented.
#[test]
fn memory_for_each_call_site_is_bounded() {
    let scratch = Scratch::new();
    let file = scratch.0.join("sites.kmt");
    for args in [&["all", "--json", "--threads", "1"][..], &["findings", "--threads", "1"]] {
        let of = |count| {
            fs::write(&file, dimensions::call_sites(count)).unwrap();
            let taken = taken(args, &file, f64::INFINITY);
            assert!(matches!(taken.code, Some(0 | 3)), "{args:?}: {taken:?}");
            taken.bytes
        };
        let (few, many) = (of(20_000), of(60_000));
        let most = 40_000 * (BYTES_PER_SITE + BYTES_PER_ALLOCATION);
        assert!(many - few <= most, "{args:?}: {few} bytes of 20,000 sites, {many} of 60,000");
    }
}

#[test]
#[ignore = "every command on every file: minutes, and of the optimised program"]
fn memory_and_time_of_every_command_are_bounded() {
    let scratch = Scratch::new();
    let out = scratch.0.join("out");
    let out = out.to_str().unwrap();
    let mut commands: Vec<Vec<&str>> = reports().into_iter().map(|report| vec![report]).collect();
    for words in [
        "all --json",
        "info",
        "dump",
        "verify",
        "account",
        "reconcile",
        "callgraph --top-down",
        "lifetimes --where call_site~x",
        "timeline --by call-site",
        "timeline --by task",
        "summary --compat trace-cmd-mem",
        "summary --compat perf-kmem --slab --caller",
        "summary --compat perf-kmem --page --alloc",
        "diff --time +0..+0.01 --against +0.01..+0.02",
    ] {
        commands.push(words.split(' ').collect());
    }
    for kind in ["timeline", "flame", "waste", "lifetimes", "filling", "pageblocks", "latency"] {
        commands.push(vec!["chart", kind, "--force", "-o", out]);
    }
    commands.push(vec!["report", "--force", "-o", out]);
    for form in ["perfetto", "pprof", "dhat", "folded", "csv", "ndjson"] {
        commands.push(vec!["export", form, "--force", "-o", out]);
    }
    for table in ["events", "callers"] {
        commands.push(vec!["export", "csv", "--of", table, "--force", "-o", out]);
    }
    for edit in ["slice", "recover", "anonymize"] {
        commands.push(vec![edit, "--force", "-o", out]);
    }
    let mut found = Vec::new();
    for made in &files::all() {
        let file = written(made, &scratch);
        found.extend(commands.iter().filter_map(|args| wrong(args, made, &file, true)));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// What exceeds a limit is refused by its name, and let through by that name.
#[test]
fn limits_are_named_and_can_be_raised() {
    let scratch = Scratch::new();
    let (file, out) = (scratch.0.join("large.kmt"), scratch.0.join("out"));
    fs::write(&file, files::one_large_value()).unwrap();
    let out = out.to_str().unwrap();
    for args in [&["summary"][..], &["recover", "--force", "-o", out]] {
        let refused = run(args, &file);
        let told = stderr(&refused);
        assert_eq!(refused.status.code(), Some(1), "{args:?}: {told}");
        assert!(told.contains("the limit `metadata` is") && told.contains("--limit NAME=SIZE"), "{told}");
        let raised = run(&[args, &["--limit", "metadata=1G"]].concat(), &file);
        assert_eq!(raised.status.code(), Some(3), "{args:?}: no end: {}", stderr(&raised));
    }
    let convert = |limits| {
        kmt_capture::convert::convert(&kmt_capture::convert::Options {
            input: file.clone(),
            output: scratch.0.join("converted.kmt"),
            force: true,
            compression: kmt_format::Compression::None,
            symbols: kmt_capture::record::Symbols::Used,
            verbatim: false,
            quiet: true,
            instance: None,
            boot: None,
            survivors: None,
            limits,
        })
    };
    let mut limits = kmt_capture::convert::Limits::default();
    let told = convert(limits).unwrap_err().to_string();
    assert!(told.contains("the limit `metadata` is") && told.contains("--limit NAME=SIZE"), "{told}");
    assert!(limits.set(kmt_capture::convert::LimitKind::Kmt("metadata"), 1 << 30));
    assert!(convert(limits).is_ok());
}

#[test]
fn names_beyond_their_limit_are_reported() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("x86_64-6.1"));
    let few = run(&["caches", "--limit", "texts=20"], &file);
    assert_eq!(few.status.code(), Some(3));
    assert!(stderr(&few).contains("the limit `texts` is 20"), "{}", stderr(&few));
    assert_eq!(run(&["caches", "--limit", "texts=1M"], &file).status.code(), Some(0));
    assert_eq!(run(&["caches", "--limit", "nonsense=1"], &file).status.code(), Some(2));
}

#[test]
fn rows_beyond_their_limit_are_reported() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("x86_64-6.1"));
    let export = |limit| run(&["export", "csv", "--of", "callers", "-o", "-", "--limit", limit], &file);
    let (few, all) = (export("rows=3"), export("rows=1M"));
    assert_eq!(few.status.code(), Some(3));
    assert!(stderr(&few).contains("the limit `rows` is 3") && stderr(&few).contains("--limit NAME=SIZE"));
    assert_eq!(all.status.code(), Some(0), "{}", stderr(&all));
    let lines = |bytes: &[u8]| String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect::<Vec<_>>();
    let (few, all) = (lines(&few.stdout), lines(&all.stdout));
    assert!(all.len() > 10 && few == all[..4], "{} rows", all.len());
}

/// Writes the files, for those who look at them by hand.
#[test]
#[ignore = "KMT_HOSTILE names a folder"]
fn files_are_written() {
    let folder = std::env::var_os("KMT_HOSTILE").expect("KMT_HOSTILE names a folder");
    for made in files::all() {
        fs::write(Path::new(&folder).join(made.name).with_extension("kmt"), (made.make)()).unwrap();
    }
    for made in dimensions::all() {
        let name = made.name.replace(' ', "-");
        fs::write(Path::new(&folder).join(name).with_extension("kmt"), (made.make)(made.count * 2)).unwrap();
    }
}
