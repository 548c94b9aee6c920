//! The program; see the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    match kmt_analyze::cli::run() {
        Ok(outcome) => outcome.into(),
        Err(failure) => {
            kmt_common::message!("kmt-analyze: {failure}");
            ExitCode::from(1)
        }
    }
}
