//! An instance of the running kernel's tracefs, and copies of what it holds.

use std::fs;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use crate::support::alone::TRACING;

/// Events that are recorded.
const EVENTS: [&str; 7] = [
    "kmem/enable",
    "task/task_newtask/enable",
    "task/task_rename/enable",
    "sched/sched_switch/enable",
    "sched/sched_process_fork/enable",
    "sched/sched_process_exec/enable",
    "sched/sched_process_exit/enable",
];
/// Some events have stacks.
const STACKS: &str = "kmem/kmalloc/trigger";

/// Removed when dropped.
pub struct Instance(PathBuf);

impl Instance {
    /// Not recording yet.
    pub fn new(name: &str) -> Self {
        let path = Path::new(TRACING).join(format!("instances/{name}-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        let this = Self(path);
        this.write("tracing_on", "0");
        this.write("trace_clock", "mono");
        this.write("buffer_size_kb", "65536");
        this.write("trace_options", "nohash-ptr");
        for events in EVENTS {
            this.write(&format!("events/{events}"), "1");
        }
        this.write(&format!("events/{STACKS}"), "stacktrace if bytes_req > 1000");
        this
    }

    pub fn write(&self, name: &str, value: &str) {
        fs::write(self.0.join(name), value).unwrap_or_else(|e| panic!("{name}: {e}"));
    }

    /// Events in the buffers.
    pub fn entries(&self) -> u64 {
        let count = |stats: String| {
            assert!(stats.contains("\noverrun: 0\n"), "the buffer overflowed: {stats}");
            stats.lines().find_map(|line| line.strip_prefix("entries: ")?.parse::<u64>().ok()).unwrap()
        };
        self.cpus().map(|(_, path)| count(fs::read_to_string(path.join("stats")).unwrap())).sum()
    }

    fn cpus(&self) -> impl Iterator<Item = (String, PathBuf)> + use<> {
        let cpus = fs::read_dir(self.0.join("per_cpu")).unwrap().flatten();
        cpus.map(|cpu| (cpu.file_name().into_string().unwrap(), cpu.path()))
    }

    /// The text with these options, which are taken back.
    pub fn text(&self, options: &[&str]) -> String {
        options.iter().for_each(|option| self.write("trace_options", option));
        let text = fs::read(self.0.join("trace")).unwrap();
        for option in options {
            let opposite = option.strip_prefix("no").map_or_else(|| format!("no{option}"), str::to_owned);
            self.write("trace_options", &opposite);
        }
        String::from_utf8_lossy(&text).into_owned()
    }

    /// The text of `trace_pipe`, which takes the events out.
    pub fn pipe(&self) -> String {
        String::from_utf8_lossy(&drained(&self.0.join("trace_pipe"), 1 << 16)).into_owned()
    }

    /// Copies of the raw buffers, which takes the events out, and of all that describes them.
    pub fn capture(&self, to: &Path) {
        let tracefs = to.join("tracefs");
        for folder in ["events", "per_cpu"] {
            fs::create_dir_all(tracefs.join(folder)).unwrap();
        }
        let page = fs::read_to_string(self.0.join("buffer_subbuf_size_kb"))
            .map_or(4, |kb| kb.trim().parse().unwrap());
        for (cpu, path) in self.cpus() {
            let to = tracefs.join("per_cpu").join(cpu);
            fs::create_dir(&to).unwrap();
            fs::copy(path.join("stats"), to.join("stats")).unwrap();
            fs::write(to.join("trace_pipe_raw"), drained(&path.join("trace_pipe_raw"), page << 10)).unwrap();
        }
        // Not every kernel has each.
        let copy = |from: PathBuf, to: PathBuf| {
            if from.exists() {
                // In large pieces: header_page has its text in the first one only (show_header_file,
                // kernel/trace/trace_events.c), and std begins with 32 bytes.
                fs::write(to, drained(&from, 1 << 20)).unwrap();
            }
        };
        for file in ["trace_clock", "trace_options"] {
            copy(self.0.join(file), tracefs.join(file));
        }
        for file in
            ["printk_formats", "saved_cmdlines", "saved_tgids", "events/header_page", "events/header_event"]
        {
            copy(Path::new(TRACING).join(file), tracefs.join(file));
        }
        for system in ["kmem", "task", "sched", "ftrace"] {
            for event in fs::read_dir(Path::new(TRACING).join("events").join(system)).unwrap().flatten() {
                let to = tracefs.join("events").join(system).join(event.file_name());
                if event.path().join("format").exists() {
                    fs::create_dir_all(&to).unwrap();
                    copy(event.path().join("format"), to.join("format"));
                }
            }
        }
        for file in ["kallsyms", "modules"] {
            copy(Path::new("/proc").join(file), to.join(file));
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = fs::write(self.0.join("tracing_on"), "0");
        let gone = (0..50).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            fs::remove_dir(&self.0).is_ok()
        });
        assert!(gone || std::thread::panicking());
    }
}

/// All that a file has now.
fn drained(path: &Path, piece: usize) -> Vec<u8> {
    let flags = OFlags::NONBLOCK.bits() as i32;
    let mut file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path).unwrap();
    let (mut bytes, mut buffer) = (Vec::new(), vec![0; piece]);
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return bytes,
            Ok(len) => bytes.extend_from_slice(&buffer[..len]),
            Err(e) if e.kind() == ErrorKind::WouldBlock => return bytes,
            Err(e) => panic!("{}: {e}", path.display()),
        }
    }
}

/// A script that reads files.
pub const LOAD: &str =
    "find /usr/lib /etc -type f 2> /dev/null | head -400 | xargs -n 40 -P 2 cat > /dev/null 2>&1";

/// Works until the instances have that many events.
pub fn record(instances: &[&Instance], events: u64) {
    instances.iter().for_each(|instance| instance.write("tracing_on", "1"));
    let start = Instant::now();
    while instances.iter().any(|instance| instance.entries() < events) {
        assert!(
            start.elapsed() < Duration::from_secs(120),
            "{} events in two minutes",
            instances[0].entries()
        );
        let mut load = Command::new("sh").args(["-c", LOAD]).stdin(Stdio::null()).spawn().unwrap();
        while load.try_wait().unwrap().is_none()
            && instances.iter().any(|instance| instance.entries() < events)
        {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = load.kill();
        load.wait().unwrap();
    }
    instances.iter().for_each(|instance| instance.write("tracing_on", "0"));
}
