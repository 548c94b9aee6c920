//! The program; see the library.

use std::process::ExitCode;

use kmt_common::out_of_memory::Checked;

#[global_allocator]
static ALLOCATOR: Checked = Checked {
    program: "kmt-capture",
    hint: "--limit NAME=SIZE bounds parts of the input of convert; or raise the limit of memory (ulimit -v)",
};

fn main() -> ExitCode {
    match kmt_capture::cli::run() {
        Ok(outcome) => outcome.into(),
        Err(failure) => {
            kmt_common::message!("kmt-capture: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}
