//! A live tracefs: where it is, its files, and what is changed in it and put back.

mod events;
mod instance;
mod probe;
mod undo;

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

pub use events::{Event, EventSpec, find_events};
pub use instance::{Instance, Owner, orphans, remove_orphan};
pub use probe::{NAME as PROBE_NAME, Probe, orphan_probes, remove_orphan_probe};
pub use undo::{Undo, leftovers};

use crate::failure::{Failure, Result};

/// Where tracefs is mounted: on its own since 4.1, before that only within debugfs.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Small files of tracefs that tell under which conditions was recorded.
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

/// A directory with a ring buffer: the top level of tracefs, or an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceDir {
    path: PathBuf,
}

impl TraceDir {
    /// The directory at `path`.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Path of a file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Whether there is such a file.
    pub fn has(&self, name: &str) -> bool {
        self.file(name).exists()
    }

    /// Contents of a file; `None` where it is not there or not readable.
    pub fn read(&self, name: &str) -> Option<String> {
        read_whole(&self.file(name)).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Contents of a file that must be there.
    pub fn must_read(&self, name: &str) -> Result<String> {
        let path = self.file(name);
        let bytes = read_whole(&path).map_err(|e| Failure::io("reading", &path, &e).hint(remedy(&e)))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Writes as `echo VALUE > NAME` does: what was there before is replaced.
    pub fn write(&self, name: &str, value: &str) -> Result<()> {
        self.put(name, value, OpenOptions::new().write(true).truncate(true))
    }

    /// Writes as `echo VALUE >> NAME` does.
    pub fn append(&self, name: &str, value: &str) -> Result<()> {
        self.put(name, value, OpenOptions::new().append(true))
    }

    fn put(&self, name: &str, value: &str, options: &OpenOptions) -> Result<()> {
        let path = self.file(name);
        let written = options.open(&path).and_then(|mut file| file.write_all(value.as_bytes()));
        written.map_err(|e| {
            let failure = Failure::io(&format!("writing {:?} to", value.trim_end()), &path, &e);
            match self.last_error(name) {
                Some(said) => failure.hint(format!("the kernel says: {said}")),
                None => failure.hint(remedy(&e)),
            }
        })
    }

    /// The kernel's explanation of a filter or trigger that it refused: the last entry of error_log (5.3 and later).
    fn last_error(&self, name: &str) -> Option<String> {
        if !name.ends_with("filter") && !name.ends_with("trigger") {
            return None;
        }
        let log = self.read("error_log")?;
        let entry: Vec<&str> = log.lines().collect();
        let start = entry.iter().rposition(|line| line.starts_with('['))?;
        let said: Vec<&str> = entry.get(start..)?.iter().map(|line| line.trim()).collect();
        let (_, first) = said.first()?.split_once("error: ")?;
        Some(first.to_owned()).filter(|first| !first.is_empty())
    }

    /// CPUs that have a ring buffer, possible ones included that never were there.
    pub fn cpus(&self) -> Vec<u32> {
        let entries = fs::read_dir(self.file("per_cpu")).into_iter().flatten().flatten();
        let number = |e: fs::DirEntry| e.file_name().to_str()?.strip_prefix("cpu")?.parse().ok();
        let mut cpus: Vec<u32> = entries.filter_map(number).collect();
        cpus.sort_unstable();
        cpus
    }
}

/// Reads a file of tracefs. Some of them, such as header_page on 6.18, end after the first read, however short it was;
/// so that one is long.
fn read_whole(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let mut out = Vec::new();
    let mut buffer = vec![0; 16 << 10];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(out),
            Ok(len) => out.extend_from_slice(&buffer[..len]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Finds tracefs: where the caller says, where it is mounted, or else by mounting it. The mount is undone by `undo`.
pub fn find(given: Option<&Path>, undo: &mut Undo) -> Result<TraceDir> {
    if let Some(path) = given {
        let top = TraceDir::at(path);
        return if top.has("trace_clock") {
            Ok(top)
        } else {
            Err(Failure::new(format!("{} is no tracefs: it has no trace_clock", path.display()))
                .hint("give the directory that tracefs is mounted at, such as /sys/kernel/tracing"))
        };
    }
    if let Some(top) = mounted() {
        return Ok(top);
    }
    let place = Path::new(PLACES[0]);
    let failure = |what: String| {
        Failure::new(what).hint(
            "run as root on a kernel with CONFIG_FTRACE and CONFIG_EVENT_TRACING; \
             `mount -t tracefs none /sys/kernel/tracing` tells more, and --tracefs names another place",
        )
    };
    if !place.is_dir() {
        return Err(failure("there is no tracefs: /sys/kernel/tracing is missing".to_owned()));
    }
    match rustix::mount::mount(
        "none",
        place,
        "tracefs",
        rustix::mount::MountFlags::empty(),
        None::<&std::ffi::CStr>,
    ) {
        Ok(()) => {
            undo.unmount(place);
            Ok(TraceDir::at(place))
        }
        Err(error) => Err(failure(format!("tracefs is not mounted, and mounting it failed: {error}"))),
    }
}

/// The tracefs that is mounted.
pub fn mounted() -> Option<TraceDir> {
    PLACES.iter().map(TraceDir::at).find(|top| top.has("trace_clock"))
}

/// What can be done about an error of tracefs.
pub fn remedy(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::PermissionDenied => {
            "run as root; where root is refused too, the kernel is locked down (kmt-capture check tells)"
        }
        std::io::ErrorKind::NotFound => "this kernel does not have it; kmt-capture check tells what it has",
        std::io::ErrorKind::ResourceBusy => "somebody else uses it; kmt-capture check tells who",
        std::io::ErrorKind::OutOfMemory => "give a smaller --buffer-size",
        _ => "kmt-capture check tells what this kernel can do",
    }
}
