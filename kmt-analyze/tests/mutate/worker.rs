//! Runs mutations in this process, which has little memory; it tells what it is about to do before it does it.

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use rustix::process::{Resource, Rlimit, setrlimit};

use super::Plan;
use super::commands::{self, Commands};
use super::inputs::Inputs;
use super::mutation::{Numbers, mutate};
use super::support::files::Scratch;

/// Address space of a worker and of the programs that it starts, in bytes.
const MEMORY: u64 = 4 << 30;

static PANIC: Mutex<String> = Mutex::new(String::new());

pub fn tell(line: &str) {
    let mut out = std::io::stdout().lock();
    // A watcher that is gone ends the worker by its pipe.
    writeln!(out, "{}", line.replace('\n', " ")).and_then(|()| out.flush()).expect("the watcher reads");
}

/// Runs mutations in order.
pub fn run(plan: &Plan) {
    let limit = Rlimit { current: Some(MEMORY), maximum: Some(MEMORY) };
    setrlimit(Resource::As, limit).expect("a lower limit is allowed");
    let scratch = Scratch::new();
    let inputs = Inputs::make(plan.kind, &scratch);
    std::panic::set_hook(Box::new(|info| {
        *PANIC.lock().unwrap_or_else(|e| e.into_inner()) = info.to_string();
    }));
    for number in plan.range.clone() {
        tell(&format!("at {number}"));
        let mut numbers = Numbers::of(plan.seed, plan.kind.name(), number);
        let mutant = mutate(&inputs, &mut numbers);
        let is_real = number % plan.real_every == plan.real_every - 1;
        let mut chosen = Commands::of(plan, &mut numbers, is_real, &scratch);
        chosen.prepare(&mutant);
        while let Some(command) = chosen.next() {
            tell(&format!("try {}", command.text()));
            let ended = catch_unwind(AssertUnwindSafe(|| commands::run(&command, &mut chosen)));
            match ended {
                Ok(None) => {}
                Ok(Some(what)) => tell(&format!("bad {what}")),
                Err(_) => tell(&format!("panic {}", PANIC.lock().unwrap_or_else(|e| e.into_inner()))),
            }
        }
    }
    drop(scratch);
    tell("done");
}
