//! Files with damage made on purpose, through every command: no panic, no abort, no signal, no end that does not come.
//!
//!     cargo test --release -p kmt-analyze --test mutate -- --runs 10000 [--kind KIND] [--seed N] [--from N] [--commands N]
//!         [--without TEXT]
//!
//! Each mutation follows from its kind, seed and number alone, and a failure is printed with all three. A worker process
//! runs them under a limit of memory; should it die or hang, the next one goes on behind that mutation. Without `--runs`
//! it is a smoke run of some seconds.

#![allow(missing_docs)]

mod commands;
mod inputs;
#[allow(dead_code)]
#[path = "../../../fuzz/src/made.rs"]
mod made;
#[path = "../../../fuzz/src/made_classes.rs"]
mod made_classes;
#[path = "../../../fuzz/src/made_numbers.rs"]
mod made_numbers;
#[path = "../../../fuzz/src/made_tables.rs"]
mod made_tables;
#[path = "../../../fuzz/src/made_texts.rs"]
mod made_texts;
mod mutation;
#[path = "../../../fuzz/src/repair.rs"]
mod repair;
#[path = "../support/mod.rs"]
mod support;
mod watch;
mod worker;

use std::process::ExitCode;

use inputs::Kind;

/// What is run.
#[derive(Debug, Clone)]
pub struct Plan {
    pub kind: Kind,
    pub seed: u64,
    /// Numbers of the mutations.
    pub range: std::ops::Range<u64>,
    /// Commands on each mutation, chosen by it; all of them if there are fewer.
    pub commands: usize,
    /// One mutation in this number goes through the programs themselves.
    pub real_every: u64,
    /// Commands that hold this text are left out.
    pub without: String,
}

/// Smoke: mutations of each kind, and commands on each.
const SMOKE: (u64, usize) = (12, 4);

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| args.iter().position(|a| a == name).and_then(|at| args.get(at + 1));
    let number = |name: &str| value(name).map(|text| text.parse::<u64>().expect("a number"));
    // `cargo test FILTER` names tests of other programs.
    let names_a_test = |arg: &&String| {
        !arg.starts_with('-') && arg.parse::<u64>().is_err() && Some(*arg) != value("--without")
    };
    let is_ours = |arg: &&String| "mutations".contains(arg.as_str()) || Kind::of(arg.as_str()).is_some();
    if args.iter().filter(names_a_test).any(|arg| !is_ours(&arg)) || args.iter().any(|a| a == "--list") {
        return ExitCode::SUCCESS;
    }
    let is_long = value("--runs").is_some();
    let from = number("--from").unwrap_or(0);
    let plan = |kind| Plan {
        kind,
        seed: number("--seed").unwrap_or(1),
        range: from..from + number("--runs").unwrap_or(SMOKE.0),
        commands: number("--commands").map_or(if is_long { usize::MAX } else { SMOKE.1 }, |n| n as usize),
        without: value("--without").cloned().unwrap_or_default(),
        real_every: if is_long { 50 } else { SMOKE.0 },
    };
    let kinds: Vec<Kind> =
        Kind::ALL.into_iter().filter(|k| value("--kind").is_none_or(|v| k.name() == v)).collect();
    if args.iter().any(|a| a == "--worker") {
        worker::run(&plan(kinds[0]));
        return ExitCode::SUCCESS;
    }
    let mut failures = 0;
    for kind in kinds {
        failures += watch::run(&plan(kind));
    }
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
