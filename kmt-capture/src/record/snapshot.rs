//! The state of the target at begin and end, and what surrounds the trace.

use std::fs;
use std::path::Path;

use kmt_format::tables::CgroupRecord;
use kmt_format::write::Writer;

use super::tasks::numbered;

/// Files of /proc that are kept with `.before` and `.after`.
const STATE: [&str; 7] =
    ["slabinfo", "buddyinfo", "pagetypeinfo", "zoneinfo", "meminfo", "vmstat", "vmallocinfo"];
/// Files of a cache in /sys/kernel/slab that are kept.
const SLAB: [&str; 19] = [
    "aliases",
    "align",
    "cpu_slabs",
    "destroy_by_rcu",
    "hwcache_align",
    "min_partial",
    "object_size",
    "objects",
    "objs_per_slab",
    "order",
    "partial",
    "poison",
    "reclaim_account",
    "red_zone",
    "sanity_checks",
    "sheaf_capacity",
    "slab_size",
    "slabs",
    "store_user",
];
/// Those that are left out where they hold 0: flags that nearly no cache has.
const SLAB_FLAGS: [&str; 7] = [
    "destroy_by_rcu",
    "hwcache_align",
    "poison",
    "red_zone",
    "sanity_checks",
    "sheaf_capacity",
    "store_user",
];
/// A file that is larger is left out, and named.
const LEN_MAX: u64 = 4 << 20;

/// When a snapshot was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Before the first event.
    Before,
    /// After the last one.
    After,
}

impl When {
    /// End of the names of its files.
    pub fn suffix(self) -> &'static str {
        if self == Self::Before { "before" } else { "after" }
    }
}

/// Snapshots at one time: between two files of a recording they are in both.
#[derive(Debug)]
pub struct Snapshots(Vec<(&'static str, Option<Vec<u8>>)>);

impl Snapshots {
    /// Reads them.
    pub fn read() -> Self {
        Self(STATE.iter().map(|&name| (name, read(name))).collect())
    }

    /// Writes them into the file; returns the names of those that could not be had.
    pub fn write(&self, writer: &mut Writer, when: When) -> kmt_format::Result<Vec<String>> {
        let mut missing = Vec::new();
        for (name, bytes) in &self.0 {
            match bytes {
                Some(bytes) => writer.add_file(&format!("{name}.{}", when.suffix()), bytes)?,
                None if *name == "vmallocinfo" => {}
                None => missing.push((*name).to_owned()),
            }
        }
        Ok(missing)
    }
}

/// Writes the snapshots into the file one by one; returns the names of those that could not be had.
pub fn write(writer: &mut Writer, when: When) -> kmt_format::Result<Vec<String>> {
    let mut missing = Vec::new();
    for name in STATE {
        missing.extend(Snapshots(vec![(name, read(name))]).write(writer, when)?);
    }
    Ok(missing)
}

/// A file of /proc as it is stored; `None`: it cannot be read, or is too large.
pub fn read(name: &str) -> Option<Vec<u8>> {
    let bytes = fs::read(format!("/proc/{name}")).ok().filter(|bytes| bytes.len() as u64 <= LEN_MAX)?;
    Some(if name == "vmallocinfo" { without_unpurged(&bytes) } else { bytes })
}

/// Writes the configuration of the running kernel into the file.
pub fn write_config(writer: &mut Writer) -> kmt_format::Result<()> {
    if let Some(config) = kernel_config() {
        writer.add_file("config", config.as_bytes())?;
    } else if let Ok(config) = fs::read("/proc/config.gz") {
        writer.add_file("config.gz", &config)?;
    }
    Ok(())
}

/// Writes the state of the caches in /sys/kernel/slab into the file, after the last event: reading thousands of small
/// files would delay the first one, and allocates memory itself.
pub fn write_slab(writer: &mut Writer) -> kmt_format::Result<()> {
    let slab = slab_text(Path::new("/sys/kernel/slab"));
    if slab.is_empty() {
        return Ok(());
    }
    writer.add_file("slab_sysfs.after", slab.as_bytes())
}

/// Leaves out areas of vmallocinfo that were freed and wait for being unmapped: they have neither caller nor pages, there
/// are thousands of them, and their hashed addresses cannot be compressed (`show_purge_info`, mm/vmalloc.c).
fn without_unpurged(text: &[u8]) -> Vec<u8> {
    let lines = text.split_inclusive(|&b| b == b'\n');
    lines.filter(|line| !line.windows(8).any(|w| w == b"unpurged")).collect::<Vec<_>>().concat()
}

/// Reads what is read meanwhile; `now` reads the trace clock, so that the file tells between which times it was read. Returns the
/// names of those that cannot be read.
pub fn write_meanwhile(
    writer: &mut Writer,
    now: impl Fn() -> Option<u64>,
) -> kmt_format::Result<Vec<&'static str>> {
    let memory = write_memory(writer, &now)?;
    let slabinfo = write_slabinfo(writer, &now)?;
    let all = [("meminfo", memory), ("slabinfo", slabinfo)];
    Ok(all.into_iter().filter(|(_, is_read)| !is_read).map(|(name, _)| name).collect())
}

/// Reads /proc/slabinfo alone between two times, which bound what is live.
fn write_slabinfo(writer: &mut Writer, now: impl Fn() -> Option<u64>) -> kmt_format::Result<bool> {
    let (Some(before), Ok(text)) = (now(), fs::read("/proc/slabinfo")) else { return Ok(false) };
    let Some(after) = now().filter(|_| text.len() as u64 <= LEN_MAX) else { return Ok(false) };
    writer.add_file_at("slabinfo", &text, (before, after))?;
    Ok(true)
}

/// Texts that show where memory is. meminfo is the one that is needed, and the first.
const MEMORY: [&str; 3] = ["meminfo", "zoneinfo", "vmstat"];
/// zoneinfo has some lines for each CPU and zone: on hundreds of CPUs it is left out meanwhile.
const MEMORY_LEN_MAX: u64 = 128 << 10;

/// Reads the kernel's counts of memory, all between the same two times. False: meminfo cannot be read.
fn write_memory(writer: &mut Writer, now: impl Fn() -> Option<u64>) -> kmt_format::Result<bool> {
    let Some(before) = now() else { return Ok(false) };
    let texts = MEMORY.map(|name| fs::read(format!("/proc/{name}")).ok());
    let Some(after) = now().filter(|_| texts.first().is_some_and(Option::is_some)) else { return Ok(false) };
    for (name, text) in MEMORY.into_iter().zip(texts) {
        if let Some(text) = text.filter(|text| text.len() as u64 <= MEMORY_LEN_MAX) {
            writer.add_file_at(name, &text, (before, after))?;
        }
    }
    Ok(true)
}

/// `CACHE FILE=VALUE FILE=VALUE …` and `ALIAS -> CACHE`, a line each: half as long, compressed, as a line for each file.
fn slab_text(root: &Path) -> String {
    let mut names: Vec<_> = fs::read_dir(root).into_iter().flatten().flatten().map(|e| e.path()).collect();
    names.sort();
    let mut out = String::new();
    for path in names {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if let Ok(target) = fs::read_link(&path) {
            let target = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
            out.push_str(&format!("{name} -> {target}\n"));
            continue;
        }
        out.push_str(&name);
        for file in SLAB {
            if let Ok(text) = fs::read_to_string(path.join(file)) {
                if text.trim() != "0" || !SLAB_FLAGS.contains(&file) {
                    out.push_str(&format!(" {file}={}", text.trim()));
                }
            }
        }
        out.push('\n');
    }
    out
}

/// Writes the cgroup of every process, from `time` on: in the memory controller's hierarchy, or in the unified one.
pub fn write_cgroups(writer: &mut Writer, time: u64) -> kmt_format::Result<()> {
    let mut rows = cgroups();
    rows.iter_mut().for_each(|row| row.time = time);
    if rows.is_empty() { Ok(()) } else { writer.add_cgroups(&rows) }
}

fn cgroups() -> Vec<CgroupRecord<'static>> {
    let mut rows = Vec::new();
    for process in numbered("/proc") {
        let Ok(text) = fs::read(format!("/proc/{process}/cgroup")) else { continue };
        let lines = text.split(|&b| b == b'\n');
        let path = |line: &[u8]| {
            let mut parts = line.splitn(3, |&b| b == b':');
            let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
            let hierarchy: u32 = std::str::from_utf8(number).ok()?.parse().ok()?;
            let is_memory = controllers.split(|&b| b == b',').any(|c| c == b"memory");
            (controllers.is_empty() || is_memory).then(|| (is_memory, hierarchy, path.to_vec()))
        };
        if let Some((_, hierarchy, path)) = lines.filter_map(path).max_by_key(|(is_memory, ..)| *is_memory) {
            let mut row = CgroupRecord::new(process, path);
            row.hierarchy = hierarchy;
            rows.push(row);
        }
    }
    rows
}

/// CPUs and nodes, as keys and values.
pub fn topology() -> Vec<(String, Vec<u8>)> {
    let mut pairs = Vec::new();
    let mut add = |key: String, path: String| {
        if let Ok(text) = fs::read_to_string(path) {
            pairs.push((key, text.trim().as_bytes().to_vec()));
        }
    };
    for state in ["possible", "present", "online"] {
        add(format!("cpus.{state}"), format!("/sys/devices/system/cpu/{state}"));
    }
    let nodes = fs::read_dir("/sys/devices/system/node").into_iter().flatten().flatten();
    let mut nodes: Vec<u32> =
        nodes.filter_map(|e| e.file_name().to_str()?.strip_prefix("node")?.parse().ok()).collect();
    nodes.sort_unstable();
    for node in nodes {
        add(format!("node{node}.cpus"), format!("/sys/devices/system/node/node{node}/cpulist"));
    }
    pairs
}

/// The configuration of the running kernel, where a distribution leaves it as text.
pub fn kernel_config() -> Option<String> {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let paths = [format!("/boot/config-{release}"), format!("/lib/modules/{release}/config")];
    paths.iter().find_map(|path| fs::read_to_string(path).ok())
}

/// Bytes of memory that are available to ring buffers: free memory of CMA is not, which the kernel counts too.
pub fn available_to_kernel() -> Option<u64> {
    Some(meminfo("MemAvailable")?.saturating_sub(meminfo("CmaFree").unwrap_or(0)))
}

/// A number of /proc/meminfo, in bytes.
pub fn meminfo(key: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(':'))?;
    let kb: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    Some(kb.saturating_mul(1024))
}
