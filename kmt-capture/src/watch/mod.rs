//! `watch`: waits until memory of the kernel grows steadily, then records who allocates it.
//!
//! `args` has the options, `system` reads the texts of /proc, `plan` decides what to record for a growth, `job` runs the recorder and
//! the user's command as children, `run` is the loop. The rules of growth are in kmt-common, `watch`.

mod args;
mod job;
mod plan;
mod run;
mod system;

pub(crate) use args::WatchArgs;
pub(crate) use run::watch;
