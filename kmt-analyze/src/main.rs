//! kmt-analyze: explains where a Linux kernel's memory went, from a .kmt file.

mod analysis;
mod cli;
mod commands;
mod edit;
mod export;
mod failure;
mod open;
mod render;
mod stream;
mod time_range;

use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::run() {
        Ok(outcome) => outcome.into(),
        Err(failure) => {
            eprintln!("kmt-analyze: {failure}");
            ExitCode::from(1)
        }
    }
}
