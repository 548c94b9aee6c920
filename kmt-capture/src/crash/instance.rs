//! Persistent instances of tracefs: those that have `last_boot_info`.

use kmt_common::text::count;
use kmt_format::kernel::CpuStats;

use super::last_boot::LastBoot;
use crate::failure::{Failure, Result};
use crate::tracefs::TraceDir;

/// A persistent instance.
#[derive(Debug, Clone)]
pub struct Persistent {
    /// Name of the instance.
    pub name: String,
    /// Directory of the instance.
    pub dir: TraceDir,
    /// A copy of the last boot's events, if the kernel has made one (7.0 and later, `trace_instance=backup=NAME`): it can be read
    /// and removed only.
    pub backup: Option<TraceDir>,
}

impl Persistent {
    /// The persistent instance, or the one of that name; `None`: this boot has none.
    pub fn find(top: &TraceDir, wanted: Option<&str>) -> Result<Option<Self>> {
        let names = top.names("instances").into_iter().filter_map(|name| name.into_string().ok());
        let mut found: Vec<(String, TraceDir)> = names
            .map(|name| (name.clone(), top.sub(&format!("instances/{name}"))))
            .filter(|(_, dir)| dir.has("last_boot_info"))
            .collect();
        found.sort_by(|(a, _), (b, _)| a.cmp(b));
        let (mut own, mut backups): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|(_, dir)| dir.has("events/enable"));
        if let Some(wanted) = wanted {
            let others = names_of(&own);
            own.retain(|(name, _)| name == wanted);
            if own.is_empty() {
                return Err(Failure::new(format!("tracefs has no persistent instance {wanted:?}"))
                    .hint(format!("persistent instances: {others}")));
            }
        }
        if own.len() > 1 {
            return Err(Failure::new(format!(
                "there are {}: {}",
                count(own.len() as u64, "persistent instance"),
                names_of(&own)
            ))
            .hint("select one with --instance NAME"));
        }
        let backup = if backups.len() == 1 { backups.pop().map(|(_, dir)| dir) } else { None };
        Ok(own.pop().map(|(name, dir)| Self { name, dir, backup }))
    }

    /// The directory that has the events of the last boot.
    pub fn last_boot_dir(&self) -> &TraceDir {
        let backup = self.backup.as_ref().filter(|backup| entries(backup) > 0);
        backup.unwrap_or(&self.dir)
    }

    /// Addresses of the boot that filled the buffer of `dir`.
    pub fn last_boot(dir: &TraceDir) -> LastBoot {
        LastBoot::parse(&dir.read("last_boot_info").unwrap_or_default())
    }

    /// True if tracing is on in it.
    pub fn is_on(&self) -> bool {
        self.dir.read("tracing_on").is_some_and(|text| text.trim() != "0")
    }

    /// Forgets its events.
    pub fn clear(&self) -> Result<()> {
        self.dir.write("trace", "")
    }
}

/// Events in the buffers of an instance, by the kernel's counters.
pub fn entries(dir: &TraceDir) -> u64 {
    let stats = |cpu: u32| CpuStats::parse(&dir.read(&format!("per_cpu/cpu{cpu}/stats"))?)?.entries;
    dir.cpus().into_iter().filter_map(stats).fold(0, u64::saturating_add)
}

fn names_of(found: &[(String, TraceDir)]) -> String {
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
