//! The program; see the library.
//!
//! It sets the allocator, which ends the program with a message where memory runs out, calls `cli::run`, and makes an
//! exit code of the result.

use std::process::ExitCode;

use kmt_common::out_of_memory::Checked;

#[global_allocator]
static ALLOCATOR: Checked = Checked {
    program: "kmt-analyze",
    hint: "--time FROM..TO reads a part of the trace, and --limit NAME=SIZE bounds parts of the file; or raise the limit of memory (ulimit -v)",
};

fn main() -> ExitCode {
    match kmt_analyze::cli::run() {
        Ok(outcome) => outcome.into(),
        Err(failure) => {
            kmt_common::message!("kmt-analyze: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}
