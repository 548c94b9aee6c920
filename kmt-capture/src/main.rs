//! kmt-capture: turns a Linux kernel's trace ring buffers into .kmt files.

mod cli;
mod convert;
mod failure;
mod input;
mod output;
mod uuid;

use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::run() {
        Ok(outcome) => outcome.into(),
        Err(failure) => {
            eprintln!("kmt-capture: {failure}");
            ExitCode::from(1)
        }
    }
}
