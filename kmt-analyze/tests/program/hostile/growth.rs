//! Twice as many of one thing cost a command about twice as much, whatever the thing is.
//!
//! The short form looks at four times as many of everything in fewer commands, and allows what noise may add.
//! `.ci/growth` runs the long one with the optimised program, and leaves a table of all that it measured.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

use super::budget::{Taken, taken};
use super::dimensions::{self, Dimension};
use crate::support::files::{Scratch, reports};

/// How many times the CPU time for twice as many.
const TIMES_MAX: f64 = 2.6;
const BYTES_MAX: u64 = 512 << 20;
/// What takes less says nothing: the clock counts steps of 10 ms.
const SECONDS_MIN: f64 = 0.15;
const ROUNDS: usize = 4;
/// A command that costs too much is measured again on larger files: factors of their counts.
const SCALES: [u32; 3] = [1, 2, 4];

/// What two files cost a command.
#[derive(Default)]
struct Pair {
    small: Taken,
    large: Taken,
}

impl Pair {
    /// The least of several rounds: what else the machine does adds to it.
    fn measure(words: &[&str], files: &[PathBuf; 2], times_max: f64, seconds_max: f64) -> Self {
        let mut pair = Self::default();
        for round in 0..ROUNDS {
            let [small, large] = files.each_ref().map(|file| {
                let same = file.to_str().unwrap();
                let words: Vec<&str> = words.iter().map(|w| if *w == "SAME" { same } else { w }).collect();
                taken(&words, file, seconds_max)
            });
            let is_less = |new: &Taken, old: &Taken| round == 0 || new.seconds < old.seconds;
            if is_less(&small, &pair.small) {
                pair.small = small;
            }
            if is_less(&large, &pair.large) {
                pair.large = large;
            }
            if pair.times() <= times_max || pair.large.seconds > seconds_max {
                break;
            }
        }
        pair
    }

    /// How many times the smaller one the larger one costs.
    fn times(&self) -> f64 {
        if self.large.seconds < SECONDS_MIN { 1.0 } else { self.large.seconds / self.small.seconds.max(0.01) }
    }

    fn is_fine(&self, times_max: f64, seconds_max: f64, bytes_max: u64) -> bool {
        let ended = [&self.small, &self.large].iter().all(|taken| matches!(taken.code, Some(0 | 1 | 3)));
        ended
            && self.large.seconds < seconds_max
            && self.times() <= times_max
            && self.large.bytes <= bytes_max
    }
}

/// What is looked at, and what is allowed.
struct Test {
    dimensions: Vec<Dimension>,
    commands: Vec<String>,
    /// How many of a dimension's number the smaller and the larger file have.
    parts: [f64; 2],
    times_max: f64,
    seconds_max: f64,
}

impl Test {
    /// Measures all, and returns what is not fine. `table` gets a line of each measurement.
    fn run(&self, table: &mut String) -> Vec<String> {
        let scratch = Scratch::new();
        let out = scratch.0.join("out").to_str().unwrap().to_owned();
        let mut found = Vec::new();
        for dimension in &self.dimensions {
            let mut left: Vec<&String> = self.commands.iter().collect();
            let mut lines = Vec::new();
            // A table that no longer fits a cache adds its part once: what is a product is more so with twice as much.
            for scale in SCALES {
                if left.is_empty() {
                    break;
                }
                let files = Files::make(&scratch.0, dimension, self.parts, scale);
                lines.clear();
                left.retain(|command| {
                    let words: Vec<&str> =
                        command.split(' ').map(|w| if w == "OUT" { &out } else { w }).collect();
                    let (is_fine, line) = self.measure(&words, &files, command);
                    writeln!(table, "{line}").unwrap();
                    if !is_fine {
                        lines.push(line);
                    }
                    !is_fine
                });
            }
            found.extend(lines.into_iter().inspect(|line| println!("{line}")));
        }
        found
    }

    fn measure(&self, words: &[&str], files: &Files, command: &str) -> (bool, String) {
        let seconds_max = self.seconds_max * f64::from(files.scale);
        let pair = Pair::measure(words, &files.paths, self.times_max, seconds_max);
        let line = format!(
            "{}\t{}\t{command}\t{}\t{:.2}\t{:.2}\t{:.2}\t{}",
            files.name,
            files.counts[1],
            pair.large.code.map_or("killed".to_owned(), |code| code.to_string()),
            pair.small.seconds,
            pair.large.seconds,
            pair.times(),
            pair.large.bytes >> 20,
        );
        let bytes_max = BYTES_MAX * u64::from(files.scale);
        // A larger file may be refused at once.
        let is_same = files.scale == 1 || pair.small.code == pair.large.code;
        (is_same && pair.is_fine(self.times_max, seconds_max, bytes_max), line)
    }
}

/// A smaller and a larger file.
struct Files {
    name: &'static str,
    /// How many times as large as they usually are.
    scale: u32,
    counts: [u64; 2],
    paths: [PathBuf; 2],
}

impl Files {
    fn make(folder: &Path, dimension: &Dimension, parts: [f64; 2], scale: u32) -> Self {
        let counts = parts.map(|part| (dimension.count as f64 * part) as u64 * u64::from(scale));
        let paths = ["small.kmt", "large.kmt"].map(|name| folder.join(name));
        for (path, count) in paths.iter().zip(counts) {
            fs::write(path, (dimension.make)(count)).unwrap();
        }
        Self { name: dimension.name, scale, counts, paths }
    }
}

/// Commands beside the reports as JSON. SAME is the file once more.
const OTHERS: [&str; 58] = [
    "summary",
    "info",
    "findings",
    "all",
    "all --json --threads 1",
    "all --json --time +0..+0.001",
    "callers --by task,cache,gfp --json",
    "callers --at +0.001 --json",
    "caches --where lifetime>1us --json",
    "callers --where dir~x --json",
    "callers --where cgroup~x --json",
    "memory --by cgroup,call_site --json",
    "callers --by subsystem,file,task --json",
    "info --diff --json",
    "callgraph --json --top-down --min 0",
    "callgraph --json --min 0",
    "callgraph --json --pages",
    "lifetimes --by cpu --json",
    "summary --comm cc1 --json",
    "timeline --by call-site --json",
    "timeline --by task --steps 1000 --json",
    "timeline --by call-site --steps 1000 --lines 100000 --json",
    "chart timeline --by call-site --steps 1000 --lines 100000 --force -o OUT",
    "export perfetto --lines 100000 --force -o OUT",
    "reconcile --json",
    "diff --time +0..+0.0005 --against +0.0005..+0.0009 --json",
    "diff SAME --json",
    "report --against SAME --force -o OUT",
    "who ffff888000010060 --json",
    "who pfn=16 --json",
    "pages --where pfn=1..100000 --json",
    "summary --compat perf-kmem --slab --caller --alloc",
    "summary --compat perf-kmem --page --caller --alloc",
    "summary --compat trace-cmd-mem",
    "account",
    "info --json",
    "dump",
    "dump --json",
    "verify --json",
    "chart timeline --by cache --force -o OUT",
    "chart flame --force -o OUT",
    "chart waste --force -o OUT",
    "chart lifetimes --force -o OUT",
    "chart filling --force -o OUT",
    "chart pageblocks --force -o OUT",
    "chart latency --force -o OUT",
    "report --force -o OUT",
    "export perfetto --events --force -o OUT",
    "export pprof --force -o OUT",
    "export dhat --force -o OUT",
    "export folded --force -o OUT",
    "export csv --force -o OUT",
    "export csv --of objects --force -o OUT",
    "export csv --of callers --force -o OUT",
    "slice --force -o OUT",
    "slice --time +0..+0.001 --force -o OUT",
    "recover --force -o OUT",
    "anonymize --force -o OUT",
];

#[test]
#[ignore = "every command on two files of each dimension: minutes, and of the optimised program: .ci/growth"]
fn every_dimension_of_every_command() {
    let is_wanted = |name: &str, key| env::var(key).map_or(true, |part| name.contains(&part));
    let mut dimensions = dimensions::all();
    dimensions.retain(|dimension| is_wanted(dimension.name, "KMT_DIMENSION"));
    let mut commands: Vec<String> = reports().iter().map(|report| format!("{report} --json")).collect();
    commands.extend(OTHERS.map(str::to_owned));
    commands.retain(|command| is_wanted(command, "KMT_COMMAND"));
    let mut table =
        "dimension\tcount\tcommand\texit\tseconds_small\tseconds_large\ttimes\tmib_large\n".to_owned();
    let test = Test { dimensions, commands, parts: [1.0, 2.0], times_max: TIMES_MAX, seconds_max: 10.0 };
    let found = test.run(&mut table);
    if let Some(path) = env::var_os("KMT_GROWTH") {
        fs::write(path, table).unwrap();
    }
    println!("{} dimensions × {} commands", test.dimensions.len(), test.commands.len());
    assert!(found.is_empty(), "{} cost more than they should:\n{}", found.len(), found.join("\n"));
}

#[test]
fn four_times_as_much_costs_no_sixteen_times_as_much() {
    let commands = [
        "all --json",
        "latency",
        "info",
        "dump",
        "export perfetto --events --force -o OUT",
        "slice --force -o OUT",
    ];
    let commands = commands.map(str::to_owned).to_vec();
    let test = Test {
        dimensions: dimensions::all(),
        commands,
        parts: [0.025, 0.1],
        times_max: 9.0,
        seconds_max: 20.0,
    };
    let found = test.run(&mut String::new());
    assert!(found.is_empty(), "{}", found.join("\n"));
}
