//! Objects that the running kernel frees without an event.

use std::fs;
use std::path::Path;

use kmt_common::unseen_frees::unseen_frees;
use kmt_format::kernel::KernelVersion;

use super::facts::{Facts, State};

/// Caches of the running kernel whose frees have no event, if known.
pub fn without_events(facts: &mut Facts, has_probes: bool) {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let Some(version) = KernelVersion::parse(&release) else { return };
    let slabinfo = fs::read_to_string("/proc/slabinfo").unwrap_or_default();
    let slab = Path::new("/sys/kernel/slab");
    let exists = |name: &str| {
        slabinfo.lines().any(|line| line.split(' ').next() == Some(name)) || slab.join(name).exists()
    };
    let mut caches: Vec<&str> = unseen_frees(version).filter(|name| exists(name)).collect();
    // kfree_rcu frees batches by kfree_bulk (5.9), also of timerfd, epoll's own, names of files that were renamed.
    if version >= KernelVersion::new(5, 9) {
        caches.push("kmalloc objects (kfree_rcu)");
    }
    if caches.is_empty() {
        facts.good("frees", "no free without an event is known for this kernel");
        return;
    }
    facts.add(
        "frees",
        State::Warning,
        format!("some objects are freed without an event: {}", caches.join(", ")),
        &remedy(has_probes),
    );
}

/// Options that make live figures better; a kernel without kprobe_events has no probe for kfree_rcu.
fn remedy(has_probes: bool) -> String {
    let options = if has_probes { "--kfree-rcu and --snapshot-every 5s" } else { "--snapshot-every 5s" };
    format!(
        "live figures of these are upper bounds: record page events too (the default), and add {options}; `kmt-analyze slabinfo` shows the difference from the kernel's counters"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_is_a_remedy_where_the_kernel_has_probes() {
        assert!(remedy(true).contains("add --kfree-rcu and"));
        assert!(!remedy(false).contains("kfree-rcu"));
    }

    #[test]
    fn what_is_freed_unseen_depends_on_the_kernel() {
        let of = |major, minor| unseen_frees(KernelVersion::new(major, minor)).collect::<Vec<_>>();
        assert!(of(4, 19).is_empty());
        assert_eq!(of(6, 1), ["maple_node", "skbuff_head_cache"]);
        assert_eq!(of(6, 18).len(), 4);
    }
}
