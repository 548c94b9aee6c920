//! Tasks that allocated the objects of a family, as a screen names them, and the system call that a stack came through.
//!
//! Names of tasks are those of the time of the allocation.

use std::collections::BTreeMap;

use kmt_format::schema::EventClass;
use serde::Serialize;

use crate::collect::growth::SurvivorSums;
use crate::collect::tasks::TaskEvents;
use crate::reports::common::ReportContext;
use crate::reports::common::labels::Labels;
use crate::reports::leaks::judge::families::Family;
use crate::reports::leaks::judge::makers::Maker;

/// Smallest share of the objects whose makers have a name in common, in percent.
const NAME_PERCENT_MIN: u64 = 80;

/// Tasks that allocated the old survivors of a family's first call site.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MakersRow {
    /// Number of tasks.
    pub tasks: usize,
    /// Name of the tasks with at least 80 % of the objects; `null`: they have several.
    pub name: Option<String>,
    /// Name and id of the task that started those with at least half of the objects; `null`: unknown, or one task
    /// allocated half of them itself.
    pub parent: Option<String>,
    /// Tasks that have exited; `null`: not recorded.
    pub exited: Option<usize>,
    /// Threads of one process that allocated at least half of the objects; `null`: they are of none.
    pub threads: Option<ThreadsRow>,
}

/// Threads of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ThreadsRow {
    /// Number of threads.
    pub threads: usize,
    /// Name and id of the process.
    pub process: String,
}

/// Tasks that started and are still allocated, if their number grows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TasksRow {
    /// Tasks that are still allocated.
    pub live: u64,
    /// Tasks that have exited and were not reaped; `null`: not recorded.
    pub not_reaped: Option<u64>,
}

/// A task with a part of a family.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FamilyHolder {
    /// Thread id.
    pub pid: i32,
    /// Name and id.
    pub task: String,
    /// Share of the growth, in percent.
    pub share_percent: f64,
}

/// Call sites that grow together.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FamilyRow {
    /// Tasks that allocated the old survivors of its leader.
    pub makers: MakersRow,
    /// The task that allocated most of the growth; `null`: unknown.
    pub holder: Option<FamilyHolder>,
    /// Tasks that started and are still allocated, where their number grows; `null`: the family is not of tasks.
    pub tasks: Option<TasksRow>,
    /// Number of call sites.
    pub call_sites: usize,
    /// Call site that names it: the one that allocates the thing itself, else the largest.
    pub leader: Option<String>,
    /// Bytes of the old survivors of all of them.
    pub old_bytes: u64,
    /// Bytes of the old survivors of all of them per second, or per 10^9 ticks, since growth began.
    pub old_bytes_per_second: u64,
}

/// True if the recording has exits of tasks, even if none exited.
pub(super) fn has_exits(context: &ReportContext<'_, '_>) -> bool {
    let is_exit = |class: &EventClass| class.system == "sched" && class.name == "sched_process_exit";
    context.recorded_class(is_exit) == Some(true)
}

/// Makers of a family; `exits`: the recording has exits of tasks.
pub(super) fn makers(
    family: &Family<'_>,
    task_events: &TaskEvents,
    exits: bool,
    labels: &Labels<'_, '_>,
) -> MakersRow {
    let Some(survival) = family.rows.first().map(|row| row.growing.as_ref()) else {
        return MakersRow::default();
    };
    // Tasks whose objects are all of another part of the window hold none of these.
    let held = || survival.tasks().map(|(pid, steps)| (pid, steps.sum())).filter(|(_, held)| *held > 0);
    let mut by_name: BTreeMap<String, u64> = BTreeMap::new();
    for (pid, held) in held() {
        *by_name.entry(labels.name(pid)).or_default() += held;
    }
    let all: u64 = by_name.values().sum();
    let most = by_name.into_iter().max_by_key(|(_, count)| *count);
    let is_most = |count: u64| count.saturating_mul(100) >= all.saturating_mul(NAME_PERCENT_MIN);
    let (parent, threads) = match Maker::of(survival, task_events) {
        Maker::ChildrenOf(parent) => (Some(labels.task(parent)), None),
        Maker::ThreadsOf(process) => {
            let threads = held().filter(|(pid, _)| task_events.process(*pid) == process).count();
            (None, Some(ThreadsRow { threads, process: labels.task(process) }))
        }
        _ => (None, None),
    };
    let exited = held().filter(|(pid, _)| task_events.has_exited(*pid)).count();
    MakersRow {
        tasks: held().count(),
        name: most.filter(|(_, count)| is_most(*count)).map(|(name, _)| name),
        parent,
        exited: exits.then_some(exited),
        threads,
    }
}

/// Tasks of a family that tasks lead; `tasks` are those that started and are still allocated.
pub(super) fn tasks(
    family: &Family<'_>,
    tasks: &SurvivorSums,
    task_events: &TaskEvents,
    exits: bool,
) -> Option<TasksRow> {
    family.rows.first().filter(|row| row.is_of_tasks)?;
    let live = tasks.survivors.sum();
    let exited = task_events.starts.keys().filter(|pid| task_events.has_exited(**pid)).count() as u64;
    let running = task_events.started.saturating_sub(exited);
    let not_reaped = (task_events.started > 0 && exits).then(|| live.saturating_sub(running));
    Some(TasksRow { live, not_reaped })
}

/// Architectures and macros in the names of entries: `__x64_sys_pipe2`, `__do_sys_pipe2` (include/linux/syscalls.h and
/// asm/syscall_wrapper.h, 4.17 to 7.2).
const WRAPPERS: [&str; 10] = ["x64", "ia32", "x32", "arm64", "s390", "s390x", "riscv", "powerpc", "se", "do"];

/// Name of the system call in a stack, whose frames are given from the innermost.
pub fn syscall_of(frames: &[String]) -> Option<&str> {
    frames.iter().rev().find_map(|frame| of_function(frame))
}

/// Name of the system call that a function is the entry of.
fn of_function(symbol: &str) -> Option<&str> {
    let end = symbol.find(['+', '.', ' ']).unwrap_or(symbol.len());
    let function = symbol.get(..end)?;
    // SyS_ until 4.16.
    let (before, call) = function.split_once("sys_").or_else(|| function.split_once("SyS_"))?;
    let before = before.strip_suffix("compat_").unwrap_or(before);
    let wrapper = before.strip_prefix("__").and_then(|before| before.strip_suffix('_'));
    let is_entry = before.is_empty() || wrapper.is_some_and(|wrapper| WRAPPERS.contains(&wrapper));
    (is_entry && !call.is_empty()).then_some(call)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_system_calls() {
        for (symbol, call) in [
            ("__x64_sys_pipe2+0x14/0x20", Some("pipe2")),
            ("__se_sys_openat+0x1/0x2", Some("openat")),
            ("__do_sys_clone.constprop.0+0x1/0x2", Some("clone")),
            ("__arm64_sys_mmap+0x1/0x2", Some("mmap")),
            ("__ia32_compat_sys_ioctl+0x1/0x2", Some("ioctl")),
            ("__s390x_sys_read+0x1/0x2", Some("read")),
            ("sys_pipe2+0x1/0x2", Some("pipe2")),
            ("compat_sys_keyctl", Some("keyctl")),
            ("SyS_epoll_wait+0x1/0x2", Some("epoll_wait")),
            ("do_syscall_64+0x71/0x280", None),
            ("x64_sys_call+0x1/0x2", None),
            ("__do_syscall+0x1/0x2", None),
            ("__sys_sendmsg+0x1/0x2", None),
            ("sysfs_create_file+0x1/0x2", None),
            ("kernfs_sys_x+0x1/0x2", None),
            ("sys_", None),
            ("", None),
        ] {
            assert_eq!(of_function(symbol), call, "{symbol}");
        }
    }

    #[test]
    fn the_outermost_entry_counts() {
        let frames = ["alloc_pipe_info+0x1", "__do_sys_pipe+0x1", "__x64_sys_pipe2+0x1", "do_syscall_64+0x1"];
        let frames = frames.map(str::to_owned);
        assert_eq!(syscall_of(&frames), Some("pipe2"));
        assert_eq!(syscall_of(&frames[3..]), None);
    }
}
