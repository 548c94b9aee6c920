//! `watch`: waits until memory of the kernel grows steadily, then records who allocates it.
//!
//! `args` has the options, `system` reads the texts of /proc, `plan` decides what to record for a growth, `job` runs the recorder and
//! the user's command as children, within their limits (`budget`), `words` has the sentences, `run` is the loop. The rules of growth are in kmt-common, `watch`.

mod args;
mod budget;
mod job;
mod plan;
mod run;
mod system;
mod words;

pub(crate) use args::WatchArgs;
pub(crate) use run::watch;
