//! A directory laid out like tracefs, and the files in it and beside it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};
use crate::tracefs::CONDITIONS;

/// Files of the target that are kept verbatim, also with `.before` and `.after` behind their name.
pub const STATE: [&str; 12] = [
    "slabinfo",
    "buddyinfo",
    "pagetypeinfo",
    "zoneinfo",
    "meminfo",
    "vmstat",
    "vmallocinfo",
    "cpuinfo",
    "iomem",
    "config",
    "last_boot_info",
    "btf",
];

/// The files of one CPU.
#[derive(Debug, Clone)]
pub struct CpuFiles {
    /// CPU number.
    pub cpu: u32,
    /// `trace_pipe_raw`.
    pub raw: PathBuf,
    /// Its length in bytes.
    pub raw_len: u64,
    /// `stats`.
    pub stats: Option<String>,
    /// `stats.after`, taken after the buffer was drained.
    pub stats_after: Option<String>,
}

/// A directory laid out like tracefs, and where else to look.
#[derive(Debug)]
pub struct Directory {
    root: PathBuf,
    /// Where the files of /proc are looked for, in this order.
    beside: Vec<PathBuf>,
}

fn is_root(path: &Path) -> bool {
    path.join("per_cpu").is_dir() || path.join("events/header_page").is_file()
}

impl Directory {
    /// Finds the tracefs tree in `input`.
    pub fn open(input: &Path) -> Result<Self> {
        let metadata = fs::metadata(input).map_err(|e| Failure::io("opening", input, &e))?;
        if !metadata.is_dir() {
            return Err(Failure::new(format!("{} is not a directory", input.display()))
                .hint("give the directory that holds events/ and per_cpu/ as copied from tracefs"));
        }
        let nested = input.join("tracefs");
        let root = if is_root(input) {
            input.to_owned()
        } else if is_root(&nested) {
            nested
        } else {
            return Err(Failure::new(format!(
                "{} is no tracefs: neither per_cpu/ nor events/header_page is in it or in its tracefs/",
                input.display()
            ))
            .hint("copy events/ and per_cpu/ from /sys/kernel/tracing or from the instance that recorded"));
        };
        if root.join("trace_marker").exists() || root.join("free_buffer").exists() {
            return Err(Failure::new(format!("{} is a live tracefs, not a copy of one", root.display()))
                .hint(
                    "reading trace_pipe_raw empties the kernel's buffer: copy the files to a directory first",
                ));
        }
        let mut beside = vec![root.clone()];
        let absolute = fs::canonicalize(&root).map_err(|e| Failure::io("opening", &root, &e))?;
        beside.extend(absolute.parent().map(Path::to_owned));
        Ok(Self { root, beside })
    }

    /// Whether there is a tracefs tree in a directory.
    pub fn is_tree(input: &Path) -> bool {
        is_root(input) || is_root(&input.join("tracefs"))
    }

    /// The tracefs tree.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A file of the tracefs tree as text.
    pub fn text(&self, name: &str) -> Option<String> {
        self.bytes(name).map(|b| String::from_utf8_lossy(&b).into_owned())
    }

    /// A file of the tracefs tree.
    pub fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        fs::read(self.root.join(name)).ok()
    }

    /// A file of the target, in the tree or beside it; files without content count as not there.
    pub fn beside(&self, name: &str) -> Option<Vec<u8>> {
        self.beside.iter().filter_map(|dir| fs::read(dir.join(name)).ok()).find(|bytes| !bytes.is_empty())
    }

    /// The same as text.
    pub fn beside_text(&self, name: &str) -> Option<String> {
        self.beside(name).map(|b| String::from_utf8_lossy(&b).into_owned())
    }

    /// The CPUs that have a `trace_pipe_raw`, by number.
    pub fn cpus(&self) -> Result<Vec<CpuFiles>> {
        let per_cpu = self.root.join("per_cpu");
        let mut cpus = Vec::new();
        for entry in fs::read_dir(&per_cpu).map_err(|e| Failure::io("reading", &per_cpu, &e))? {
            let path = entry.map_err(|e| Failure::io("reading", &per_cpu, &e))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let Some(cpu) = name.strip_prefix("cpu").and_then(|n| n.parse().ok()) else { continue };
            let raw = path.join("trace_pipe_raw");
            let Ok(metadata) = fs::metadata(&raw) else { continue };
            cpus.push(CpuFiles {
                cpu,
                raw_len: metadata.len(),
                raw,
                stats: fs::read_to_string(path.join("stats")).ok(),
                stats_after: fs::read_to_string(path.join("stats.after")).ok(),
            });
        }
        cpus.sort_by_key(|c| c.cpu);
        if cpus.is_empty() {
            return Err(Failure::new(format!("{} holds no cpuN/trace_pipe_raw", per_cpu.display()))
                .hint("copy per_cpu/cpuN/trace_pipe_raw of every CPU, one sub-buffer a read"));
        }
        Ok(cpus)
    }

    /// All event formats as (system, path, text), sorted by path.
    pub fn formats(&self) -> Vec<(String, PathBuf, String)> {
        let mut formats = Vec::new();
        for system in sorted_dirs(&self.root.join("events")) {
            for event in sorted_dirs(&system) {
                let path = event.join("format");
                if let Ok(bytes) = fs::read(&path) {
                    let system = system.file_name().unwrap_or_default().to_string_lossy().into_owned();
                    formats.push((system, path, String::from_utf8_lossy(&bytes).into_owned()));
                }
            }
        }
        formats
    }

    /// Under which conditions was recorded: small files, by name.
    pub fn conditions(&self) -> Vec<(&'static str, Vec<u8>)> {
        CONDITIONS.iter().filter_map(|&name| Some((name, self.bytes(name)?))).collect()
    }

    /// `enable`, `filter` and `trigger` of events where they were saved: a line of `SYSTEM:EVENT FILE=TEXT` each.
    pub fn event_conditions(&self) -> String {
        let mut out = String::new();
        for system in sorted_dirs(&self.root.join("events")) {
            for event in sorted_dirs(&system) {
                for file in ["enable", "filter", "trigger"] {
                    let Ok(text) = fs::read_to_string(event.join(file)) else { continue };
                    let name =
                        |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                    for line in text.lines().filter(|l| !l.starts_with('#') && *l != "none") {
                        out.push_str(&format!("{}:{} {file}={line}\n", name(&system), name(&event)));
                    }
                }
            }
        }
        out
    }

    /// Snapshots and other files of the target, by name.
    pub fn state(&self) -> Vec<(String, Vec<u8>)> {
        let mut out = Vec::new();
        for name in STATE {
            for name in [name.to_owned(), format!("{name}.before"), format!("{name}.after")] {
                if let Some(bytes) = self.beside(&name) {
                    out.push((name, bytes));
                }
            }
        }
        for name in self.beside.iter().flat_map(|folder| timed_snapshots(folder)) {
            if !out.iter().any(|(have, _)| *have == name) {
                out.extend(self.beside(&name).map(|bytes| (name, bytes)));
            }
        }
        out
    }
}

/// Snapshots of a folder that tell when they were taken: `slabinfo.at.T0-T1`.
pub fn timed_snapshots(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = names.filter_map(|e| e.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.starts_with("slabinfo.at.")).collect();
    names.sort();
    names
}

fn sorted_dirs(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let mut dirs: Vec<PathBuf> = entries.map(|e| e.path()).filter(|p| p.is_dir()).collect();
    dirs.sort();
    dirs
}
