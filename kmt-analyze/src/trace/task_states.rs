//! Names and cgroups of tasks over time, as far as a pass needs them.

use super::cgroups::Cgroups;
use super::comms::Comms;

/// Names and cgroups; `None`: not needed.
#[derive(Debug, Clone, Copy, Default)]
pub struct TaskStates<'t> {
    pub names: Option<&'t Comms>,
    pub cgroups: Option<&'t Cgroups>,
}

impl TaskStates<'_> {
    /// True if neither is needed.
    pub fn is_empty(&self) -> bool {
        self.names.is_none() && self.cgroups.is_none()
    }

    /// True if a task had several names or cgroups.
    pub fn changes(&self, pid: i32) -> bool {
        self.names.is_some_and(|names| names.changes(pid))
            || self.cgroups.is_some_and(|cgroups| cgroups.changes(pid))
    }

    /// Numbers of a task's name and cgroup at a time; 0 for what is not needed.
    pub fn numbers_at(&self, pid: i32, time: u64) -> (u16, u16) {
        let name = self.names.map_or(0, |names| names.number_at(pid, time));
        (name, self.cgroups.map_or(0, |cgroups| cgroups.number_at(pid, time)))
    }
}
