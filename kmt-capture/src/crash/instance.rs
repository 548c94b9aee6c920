//! Persistent instances of tracefs: those that have `last_boot_info`.

use std::collections::HashSet;

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

    /// True if a kernel counts its sub-buffers wrongly at the size of this buffer: a read of it, before or later, damages the
    /// list of sub-buffers that the next boot checks, and that boot drops the events.
    pub fn is_miscounted(&self) -> bool {
        let meta = |cpu: u32| self.dir.read(&format!("per_cpu/cpu{cpu}/buffer_meta"));
        self.dir.cpus().into_iter().filter_map(meta).any(|text| is_miscounted(&text))
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

/// True if `buffer_meta` has a sub-buffer twice; or if nothing was recorded or read yet, and the first sub-buffer for events has the
/// number 2. 0 is the reader's, and 1 would be right.
///
/// 6.12 leaves the header out where it aligns the begin of the sub-buffers in `rb_meta_subbuf_idx` (kernel/trace/ring_buffer.c), and
/// includes it in `rb_subbufs_from_meta`: where a page ends between the two, all numbers are one too high. Seen on 6.12.95 with 12 MiB
/// for each CPU: each buffer that had been read was lost at the next restart ("array has duplicates"). 7.2 has the right numbers.
fn is_miscounted(meta: &str) -> bool {
    let number = |line: &str| line.split_once(':')?.1.trim().parse::<u64>().ok();
    let named = |name: &str| meta.lines().find(|line| line.starts_with(name)).and_then(number);
    let order: Vec<u64> =
        meta.lines().filter(|line| line.starts_with("buffer[")).filter_map(number).collect();
    let different: HashSet<u64> = order.iter().copied().collect();
    let was_read = order.iter().zip(0..).any(|(&have, place)| have != place);
    let (first, last) = (named("head_buffer"), named("commit_buffer"));
    different.len() < order.len() || (!was_read && first == Some(2) && last == first)
}

fn names_of(found: &[(String, TraceDir)]) -> String {
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As 6.12.95 prints it.
    fn meta(head: u64, order: &[u64]) -> String {
        let mut text = format!(
            "head_buffer:   {head}\ncommit_buffer: {head}\nsubbuf_size:   4096\nnr_subbufs:    {}\n",
            order.len()
        );
        for (place, number) in order.iter().enumerate() {
            text.push_str(&format!("buffer[{place}]:    {number}\n"));
        }
        text
    }

    #[test]
    fn a_kernel_that_counts_sub_buffers_wrongly_is_noticed_before_the_first_read_and_after_it() {
        assert!(!is_miscounted(&meta(1, &[0, 1, 2, 3])));
        assert!(is_miscounted(&meta(2, &[0, 1, 2, 3])), "the first one is 1");
        assert!(!is_miscounted(&meta(2, &[1, 0, 2, 3])), "it was read");
        assert!(is_miscounted(&meta(2, &[1, 1, 2, 3])));
        assert!(!is_miscounted(""), "a kernel without this file");
    }
}
