//! What kmt-capture and kmt-analyze share: failures and exit codes, output files, mapped input, and the end of the
//! program by a signal. Internal: it has no promise of compatibility.

pub mod early_end;
pub mod failure;
pub mod mapping;
pub mod output;
pub mod text;
