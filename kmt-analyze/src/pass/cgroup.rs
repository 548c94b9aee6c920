//! The cgroup that an event counts for.

use super::condition::Condition;
use crate::stream::Origin;
use crate::trace::cgroups::with_parents;
use crate::trace::session::Session;

/// Cgroup of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cgroup<'s> {
    /// Interrupts and threads that work for others: the running task did not ask for it.
    Asynchronous,
    /// Path of the task's cgroup.
    Path(&'s [u8]),
    /// Not recorded.
    Unknown,
}

/// Name of [`Cgroup::Asynchronous`].
pub const ASYNCHRONOUS: &str = "(asynchronous)";

/// Names of kernel threads that work for others, by their start: kernel/workqueue.c, kernel/softirq.c, kernel/rcu, 4.4
/// to 7.2.
const WORKERS: [&[u8]; 7] = [b"kworker/", b"ksoftirqd/", b"rcu_", b"rcuc/", b"rcuop/", b"rcuog/", b"rcuos/"];

impl<'s> Cgroup<'s> {
    /// Cgroup of an event, by its context bits and the name and path of its task.
    pub fn of(level: u8, comm: Option<&[u8]>, path: Option<&'s [u8]>) -> Self {
        let is_worker = comm.is_some_and(|comm| WORKERS.iter().any(|start| comm.starts_with(start)));
        match path {
            _ if level != 0 || is_worker => Self::Asynchronous,
            Some(path) => Self::Path(path),
            None => Self::Unknown,
        }
    }

    /// True if its path, or one above it, meets the condition.
    pub fn meets(self, condition: &Condition) -> bool {
        match self {
            Self::Asynchronous => condition.holds_for_any([ASYNCHRONOUS]),
            Self::Path(path) => condition.holds_for_any(with_parents(&String::from_utf8_lossy(path))),
            Self::Unknown => condition.holds_for_any([""; 0]),
        }
    }
}

/// Cgroup of an origin, which has to be numbered with names and cgroups.
pub fn cgroup_of<'s>(session: &'s Session<'_>, origin: &Origin) -> Cgroup<'s> {
    let comm = session.names().name(origin.pid, origin.name);
    Cgroup::of(origin.level, comm, session.cgroups().path(origin.pid, origin.cgroup))
}
