//! Time at which live memory is judged.

use crate::pass::selection::{Selection, recorder};
use crate::trace::session::Session;

/// Time at which the processes of a recorded command began to exit: what they had leaked is freed from then on. `None`:
/// live memory is judged at the end of the window.
pub fn command_exit(session: &Session<'_>, selection: &Selection) -> Option<u64> {
    let exit = session.trace.metadata().text("record.command_exit")?.parse().ok()?;
    let span = (session.first_time()?, session.last_time()?);
    // A selected window is judged at its own end.
    (selection.span(session) == span && span.0 < exit && exit < span.1).then_some(exit)
}

/// Thread ids of the recorder.
pub fn of_recorder(session: &Session<'_>) -> Vec<i32> {
    let Some(pid) = recorder(session) else { return Vec::new() };
    let threads = session.trace.metadata().tasks.iter().filter(|task| task.tgid == pid).map(|task| task.pid);
    let mut all: Vec<i32> = threads.chain([pid]).collect();
    all.sort_unstable();
    all.dedup();
    all
}
