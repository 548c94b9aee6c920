//! A second instance that records the same events at the same time, read as text.

use std::fs;
use std::path::PathBuf;

/// An instance of the running kernel's tracefs; removed when dropped.
pub struct Reference(PathBuf);

impl Reference {
    /// Records these events into a buffer of so many KiB a CPU at most; all together take no more than a quarter of the
    /// memory that there is.
    pub fn start(systems: &[&str], events: &[&str], kb_max: u64) -> Self {
        let path = PathBuf::from(format!("/sys/kernel/tracing/instances/reference-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        let this = Self(path);
        this.write("tracing_on", "0");
        this.write("trace_clock", "mono");
        let cpus = fs::read_dir(this.0.join("per_cpu")).unwrap().count() as u64;
        this.write("buffer_size_kb", &kb_max.min(available_kb() / 4 / cpus).to_string());
        this.write("trace_options", "nohash-ptr");
        for system in systems {
            for event in fs::read_dir(this.0.join("events").join(system)).unwrap().flatten() {
                let name = event.file_name().into_string().unwrap();
                if name != "rss_stat" && event.path().is_dir() {
                    this.write(&format!("events/{system}/{name}/enable"), "1");
                }
            }
        }
        for event in events {
            if this.0.join("events").join(event).exists() {
                this.write(&format!("events/{event}/enable"), "1");
            }
        }
        this.write("tracing_on", "1");
        this
    }

    fn write(&self, name: &str, value: &str) {
        fs::write(self.0.join(name), value).unwrap();
    }

    /// The kernel's text of what was recorded. Nothing may have been lost.
    pub fn text(self) -> String {
        self.write("tracing_on", "0");
        for cpu in fs::read_dir(self.0.join("per_cpu")).unwrap().flatten() {
            let stats = fs::read_to_string(cpu.path().join("stats")).unwrap();
            assert!(stats.contains("\noverrun: 0\n"), "the reference overflowed: {stats}");
        }
        String::from_utf8_lossy(&fs::read(self.0.join("trace")).unwrap()).into_owned()
    }
}

fn available_kb() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

impl Drop for Reference {
    fn drop(&mut self) {
        for _ in 0..50 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}
