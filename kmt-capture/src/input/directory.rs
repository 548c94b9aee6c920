//! A directory laid out like tracefs, and the files in it and beside it.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use kmt_format::kernel::ByteOrder;

use super::budget::Budget;
use super::folder::Folder;
use super::limits::{Kind, Limits};
use super::raw::Raw;
use crate::build_id;
use crate::failure::{Failure, Result};
use crate::tracefs::CONDITIONS;

/// Files of the target that are kept verbatim, also with `.before` and `.after` after their name.
pub const STATE: [&str; 13] = [
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
    "kmsg",
];

/// The files of one CPU.
#[derive(Debug, Clone)]
pub struct CpuFiles {
    /// CPU number.
    pub cpu: u32,
    /// `trace_pipe_raw`, in the directory.
    name: String,
    /// `trace_pipe_raw` as it is called in messages.
    pub raw: PathBuf,
    /// Length of `trace_pipe_raw` in bytes.
    pub raw_len: u64,
    /// `stats`.
    pub stats: Option<String>,
    /// `stats.after`, taken after the buffer was drained.
    pub stats_after: Option<String>,
}

/// A directory laid out like tracefs, and where else to look.
#[derive(Debug)]
pub struct Directory {
    root: Folder,
    /// The directory that holds it: files of /proc are looked for there too.
    parent: Option<Folder>,
}

/// Number of a CPU as the kernel writes it; the largest one is not a CPU.
fn cpu_number(digits: &str) -> Option<u32> {
    let cpu = digits.parse::<u32>().ok().filter(|&cpu| cpu < u32::MAX)?;
    (cpu.to_string() == digits).then_some(cpu)
}

fn not_a_cpu(path: &Path) -> Failure {
    Failure::new(format!("{}: its name has not the number of a CPU", path.display()))
        .hint("remove it, or name it as the kernel does: cpu0, cpu1 …")
}

fn is_root(folder: &Folder) -> Result<bool> {
    Ok(folder.folder("per_cpu")?.is_some() || folder.file("events/header_page")?.is_some())
}

/// The tracefs tree in a directory.
fn root_of(input: Folder) -> Result<Option<Folder>> {
    if is_root(&input)? {
        return Ok(Some(input));
    }
    match input.folder("tracefs")? {
        Some(nested) if is_root(&nested)? => Ok(Some(nested)),
        _ => Ok(None),
    }
}

impl Directory {
    /// Finds the tracefs tree in `input`; `None` if none is there.
    pub fn open(input: &Path, budget: &Rc<Budget>) -> Result<Option<Self>> {
        let Some(root) = root_of(Folder::open(input, budget)?)? else { return Ok(None) };
        if root.has("trace_marker") || root.has("free_buffer") {
            return Err(Failure::new(format!(
                "{} is a live tracefs, not a copy of one",
                root.path.display()
            ))
            .hint(
                "reading trace_pipe_raw empties the kernel's buffer: copy the files to a directory first",
            ));
        }
        let absolute = fs::canonicalize(&root.path).map_err(|e| Failure::io("opening", &root.path, &e))?;
        let parent = absolute.parent().map(|path| root.parent(path)).transpose()?;
        Ok(Some(Self { root, parent }))
    }

    /// The tracefs tree.
    pub fn root(&self) -> &Path {
        &self.root.path
    }

    /// Limits of its files.
    pub fn limits(&self) -> &Limits {
        self.root.limits()
    }

    /// A file of the tracefs tree as text.
    pub fn text(&self, name: &str) -> Result<Option<String>> {
        Ok(self.bytes(name)?.map(|b| String::from_utf8_lossy(&b).into_owned()))
    }

    /// A file of the tracefs tree.
    pub fn bytes(&self, name: &str) -> Result<Option<Vec<u8>>> {
        self.root.read(name, Kind::File)
    }

    /// A file of the target, in the tree or beside it; files without content count as not there.
    pub fn target_file(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let kind = if name == "kallsyms" { Kind::Kallsyms } else { Kind::File };
        for folder in std::iter::once(&self.root).chain(&self.parent) {
            if let Some(bytes) = folder.read(name, kind)?.filter(|bytes| !bytes.is_empty()) {
                return Ok(Some(bytes));
            }
        }
        Ok(None)
    }

    /// Build ids by keys of the registry: `notes` of the kernel, `module_notes/NAME` of modules.
    pub fn build_ids(&self, order: ByteOrder) -> Result<Vec<(String, Vec<u8>)>> {
        let mut pairs = Vec::new();
        for folder in std::iter::once(&self.root).chain(&self.parent) {
            pairs.extend(build_ids(folder, order)?);
        }
        pairs.dedup_by(|a, b| a.0 == b.0);
        Ok(pairs)
    }

    /// A file of the target as text.
    pub fn target_text(&self, name: &str) -> Result<Option<String>> {
        Ok(self.target_file(name)?.map(|b| String::from_utf8_lossy(&b).into_owned()))
    }

    /// The CPUs that have a `trace_pipe_raw`, by number.
    pub fn cpus(&self) -> Result<Vec<CpuFiles>> {
        let mut cpus = Vec::new();
        for name in self.root.names("per_cpu")? {
            let Some(number) = name.to_str().and_then(|name| name.strip_prefix("cpu")) else { continue };
            if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
                continue;
            }
            let cpu =
                cpu_number(number).ok_or_else(|| not_a_cpu(&self.root.path.join("per_cpu").join(&name)))?;
            let file = |name: &str| format!("per_cpu/cpu{cpu}/{name}");
            let name = file("trace_pipe_raw");
            let Some((_, raw_len)) = self.root.file(&name)? else { continue };
            cpus.push(CpuFiles {
                cpu,
                raw_len,
                raw: self.root.path.join(&name),
                name,
                stats: self.text(&file("stats"))?,
                stats_after: self.text(&file("stats.after"))?,
            });
        }
        cpus.sort_by_key(|c| c.cpu);
        if cpus.is_empty() {
            let per_cpu = self.root.path.join("per_cpu");
            return Err(Failure::new(format!("{} has no cpuN/trace_pipe_raw", per_cpu.display()))
                .hint("copy per_cpu/cpuN/trace_pipe_raw of every CPU, with reads of one sub-buffer"));
        }
        Ok(cpus)
    }

    /// A CPU's ring buffer from its beginning.
    pub fn raw(&self, files: &CpuFiles, sub_buffer_len: usize) -> Result<Raw> {
        let found = self.root.file(&files.name)?;
        let (file, _) = found.ok_or_else(|| Failure::new(format!("{} disappeared", files.raw.display())))?;
        Ok(Raw::new(file, sub_buffer_len))
    }

    /// All event formats as (system, path, text), sorted by path.
    pub fn formats(&self) -> Result<Vec<(String, PathBuf, String)>> {
        let mut formats = Vec::new();
        for (system, event) in self.events()? {
            let name = format!("events/{system}/{event}/format");
            if let Some(bytes) = self.root.read(&name, Kind::Format)? {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                formats.push((system, self.root.path.join(&name), text));
            }
        }
        Ok(formats)
    }

    /// System and name of each event; names of no event, which are not UTF-8, are left out.
    fn events(&self) -> Result<Vec<(String, String)>> {
        let mut events = Vec::new();
        for system in self.root.names("events")?.into_iter().filter_map(|name| name.into_string().ok()) {
            for event in self.root.names(&format!("events/{system}"))? {
                events.extend(event.into_string().ok().map(|event| (system.clone(), event)));
            }
        }
        Ok(events)
    }

    /// Under which conditions was recorded: small files, by name.
    pub fn conditions(&self) -> Result<Vec<(&'static str, Vec<u8>)>> {
        let mut out = Vec::new();
        for name in CONDITIONS {
            out.extend(self.bytes(name)?.map(|bytes| (name, bytes)));
        }
        Ok(out)
    }

    /// `enable`, `filter` and `trigger` of events where they were saved: a line of `SYSTEM:EVENT FILE=TEXT` each.
    pub fn event_conditions(&self) -> Result<String> {
        let mut out = String::new();
        for (system, event) in self.events()? {
            for file in ["enable", "filter", "trigger"] {
                let text = self.text(&format!("events/{system}/{event}/{file}"))?.unwrap_or_default();
                for line in text.lines().filter(|l| !l.starts_with('#') && *l != "none") {
                    out.push_str(&format!("{system}:{event} {file}={line}\n"));
                }
            }
        }
        Ok(out)
    }

    /// Snapshots and other files of the target, by name.
    pub fn state(&self) -> Result<Vec<(String, Vec<u8>)>> {
        let mut names: Vec<String> = Vec::new();
        for name in STATE {
            names.extend([name.to_owned(), format!("{name}.before"), format!("{name}.after")]);
        }
        let mut timed = HashSet::new();
        for folder in std::iter::once(&self.root).chain(&self.parent) {
            let found = timed_snapshots(folder)?;
            names.extend(found.into_iter().filter(|name| timed.insert(name.clone())));
        }
        let mut out = Vec::new();
        for name in names {
            if let Some(bytes) = self.target_file(&name)? {
                out.push((name, bytes));
            }
        }
        Ok(out)
    }
}

/// Build ids of a folder, by keys of the registry.
pub fn build_ids(folder: &Folder, order: ByteOrder) -> Result<Vec<(String, Vec<u8>)>> {
    let modules = folder.names("module_notes")?.into_iter().filter_map(|name| name.into_string().ok());
    let mut files = vec![(String::new(), "notes".to_owned())];
    files.extend(modules.map(|module| (module.clone(), format!("module_notes/{module}"))));
    let mut pairs = Vec::new();
    for (module, file) in files {
        let id = folder.read(&file, Kind::File)?.and_then(|notes| build_id::of_notes(&notes, order));
        pairs.extend(id.map(|id| (build_id::key(&module), id.into_bytes())));
    }
    Ok(pairs)
}

/// Texts of a folder that may have times in their names: `slabinfo.at.T0-T1`.
const TIMED: [&str; 4] = ["slabinfo", "meminfo", "zoneinfo", "vmstat"];

/// Snapshots of a folder that tell when they were taken.
pub fn timed_snapshots(folder: &Folder) -> Result<Vec<String>> {
    let names = folder.names(".")?.into_iter().filter_map(|name| name.into_string().ok());
    Ok(names.filter(|name| name.split_once(".at.").is_some_and(|(stem, _)| TIMED.contains(&stem))).collect())
}
