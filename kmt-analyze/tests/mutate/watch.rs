//! Starts workers, and counts how they end.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::Plan;

/// Longest time of one command.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs a plan; the number of failures.
pub fn run(plan: &Plan) -> u64 {
    let begin = Instant::now();
    let mut failures = 0;
    let mut next = plan.range.start;
    let mut commands = 0;
    while next < plan.range.end {
        let part = Plan { range: next..plan.range.end, ..plan.clone() };
        let outcome = run_worker(&part, &mut commands);
        failures += outcome.failures;
        next = outcome.next;
    }
    let (count, seconds) = (plan.range.end - plan.range.start, begin.elapsed().as_secs_f64());
    println!(
        "{}: {count} mutations, {commands} commands, {failures} failures, {seconds:.1} s",
        plan.kind.name()
    );
    failures
}

struct WorkerOutcome {
    failures: u64,
    next: u64,
}

fn run_worker(plan: &Plan, commands: &mut u64) -> WorkerOutcome {
    let numbers = [
        ("--seed", plan.seed),
        ("--from", plan.range.start),
        ("--runs", plan.range.end - plan.range.start),
        ("--commands", plan.commands as u64),
    ];
    let mut worker = Command::new(std::env::current_exe().expect("our own program"))
        .args(["--worker", "--kind", plan.kind.name()])
        .args(["--without", &plan.without])
        .args(numbers.iter().flat_map(|(name, number)| [(*name).to_owned(), number.to_string()]))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a process");
    let (sender, lines) = mpsc::channel();
    let output = BufReader::new(worker.stdout.take().expect("a pipe"));
    let reader = std::thread::spawn(move || {
        output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)).ok();
    });
    let mut outcome = WorkerOutcome { failures: 0, next: plan.range.start };
    let mut last = String::new();
    let tell = |what: &str, number: u64, command: &str| {
        println!(
            "FAILED {} --seed {} --from {number} --runs 1: {what}: {command}",
            plan.kind.name(),
            plan.seed
        );
    };
    let is_whole = loop {
        match lines.recv_timeout(PATIENCE) {
            Ok(line) if line == "done" => break true,
            Ok(line) => match line.split_once(' ') {
                Some(("try", command)) => {
                    last = command.to_owned();
                    *commands += 1;
                }
                Some(("at", number)) => outcome.next = number.parse().expect("a number"),
                Some((_, what)) => {
                    outcome.failures += 1;
                    tell(what, outcome.next, &last);
                }
                None => {}
            },
            Err(mpsc::RecvTimeoutError::Timeout) => {
                tell("no end", outcome.next, &last);
                outcome.failures += 1;
                worker.kill().ok();
                break false;
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                let status = worker.wait().expect("our own child");
                tell(&status.to_string(), outcome.next, &last);
                outcome.failures += 1;
                break false;
            }
        }
    };
    worker.wait().ok();
    reader.join().ok();
    outcome.next = if is_whole { plan.range.end } else { outcome.next + 1 };
    outcome
}
