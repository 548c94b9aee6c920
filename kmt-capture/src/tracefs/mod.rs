//! A live tracefs: its mount point, its files, and changes in it that are undone.

mod dir;
mod events;
pub mod guard;
mod instance;
mod owner;
mod probe;
mod undo;

use std::io::ErrorKind::PermissionDenied;
use std::path::Path;

pub use dir::TraceDir;
pub use events::{Event, EventSpec, find_events};
pub use guard::Guard;
pub use instance::{Instance, is_of_recorder, orphans, remove_orphan};
pub use owner::Owner;
pub use probe::{NAME as PROBE_NAME, Probe, orphan_probes, remove_orphan_probe};
pub use undo::{Undo, put_back, undo_step};

use crate::failure::{Failure, Result};
use crate::root;

/// Mount points of tracefs: on its own since 4.1, before that only within debugfs.
const MOUNT_POINTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Small files of tracefs with the conditions of a recording.
pub const CONDITIONS: [&str; 17] = [
    "trace_clock",
    "timestamp_mode",
    "trace_options",
    "current_tracer",
    "buffer_size_kb",
    "buffer_total_size_kb",
    "buffer_subbuf_size_kb",
    "buffer_percent",
    "tracing_on",
    "tracing_cpumask",
    "tracing_thresh",
    "set_event",
    "set_event_pid",
    "set_event_notrace_pid",
    "set_ftrace_filter",
    "set_graph_function",
    "saved_cmdlines_size",
];

/// Finds tracefs: where the caller says, where it is mounted, or else by mounting it. The mount is undone by `undo`.
pub fn find(given: Option<&Path>, undo: &mut Undo) -> Result<TraceDir> {
    if let Some(path) = given {
        let top = TraceDir::at(std::path::absolute(path).unwrap_or_else(|_| path.to_owned()));
        return if top.has("trace_clock") {
            Ok(top)
        } else {
            check_user(Some(path))?;
            Err(Failure::new(format!("{} is not a tracefs mount: it has no trace_clock", path.display()))
                .hint("give the directory that tracefs is mounted at, such as /sys/kernel/tracing"))
        };
    }
    if let Some(top) = mounted() {
        return Ok(top);
    }
    check_user(None)?;
    let mount_point = Path::new(MOUNT_POINTS[0]);
    let failure = |what: String| {
        Failure::new(what).hint(
            "run as root on a kernel with CONFIG_FTRACE and CONFIG_EVENT_TRACING; \
             `mount -t tracefs none /sys/kernel/tracing` shows the reason; --tracefs gives another mount point",
        )
    };
    if !mount_point.is_dir() {
        return Err(failure("tracefs cannot be mounted: /sys/kernel/tracing does not exist".to_owned()));
    }
    match rustix::mount::mount(
        "none",
        mount_point,
        "tracefs",
        rustix::mount::MountFlags::empty(),
        None::<&std::ffi::CStr>,
    ) {
        Ok(()) => {
            undo.unmount(mount_point);
            Ok(TraceDir::at(mount_point))
        }
        Err(error) => Err(failure(format!("tracefs is not mounted, and mounting it failed: {error}"))),
    }
}

/// Fails for a user who may not look into tracefs. Its mount options (uid, gid, mode) let others than root use it, too.
pub fn check_user(given: Option<&Path>) -> Result<()> {
    let may_look = || match given {
        Some(path) => !path.join("trace_clock").metadata().is_err_and(|e| e.kind() == PermissionDenied),
        // Others may not even look where it is mounted.
        None => mounted().is_some(),
    };
    if root::is_root() || may_look() { Ok(()) } else { Err(root::needed()) }
}

/// The tracefs that is mounted.
pub fn mounted() -> Option<TraceDir> {
    MOUNT_POINTS.iter().map(TraceDir::at).find(|top| top.has("trace_clock"))
}
