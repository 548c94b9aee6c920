//! Which objects the running kernel frees without an event.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use kmt_format::kernel::KernelVersion;

use super::facts::{Facts, State};

/// Caches of which objects are freed without an event, since that kernel: in bulk (lib/maple_tree.c, net/core/skbuff.c), or
/// by kfree_rcu (fs/eventpoll.c, kernel/time/posix-timers.c), whose batches have none.
const UNSEEN: [(&str, (u32, u32)); 4] = [
    ("maple_node", (6, 1)),
    ("skbuff_head_cache", (5, 13)),
    ("eventpoll_epi", (6, 18)),
    ("posix_timers_cache", (6, 18)),
];

/// Caches of the running kernel whose frees have no event, as far as it is known.
pub fn without_events(facts: &mut Facts) {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let Some(version) = KernelVersion::parse(&release) else { return };
    let slabinfo = fs::read_to_string("/proc/slabinfo").unwrap_or_default();
    let slab = Path::new("/sys/kernel/slab");
    let exists = |name: &str| {
        slabinfo.lines().any(|line| line.split(' ').next() == Some(name)) || slab.join(name).exists()
    };
    let known = UNSEEN.iter().filter(|(_, (major, minor))| version >= KernelVersion::new(*major, *minor));
    let mut caches: BTreeSet<String> =
        known.map(|(name, _)| (*name).to_owned()).filter(|name| exists(name)).collect();
    // Sheaves of 6.18 and later are filled and emptied in bulk, also by kfree_rcu (mm/slub.c).
    let sheaf = |name: &str| fs::read_to_string(slab.join(name).join("sheaf_capacity")).ok();
    let names =
        fs::read_dir(slab).into_iter().flatten().flatten().filter_map(|e| e.file_name().into_string().ok());
    caches.extend(names.filter(|name| sheaf(name).is_some_and(|capacity| capacity.trim() != "0")));
    // kfree_rcu frees batches of any kmalloc class by kfree_bulk (5.9).
    if version >= KernelVersion::new(5, 9) {
        caches.insert("kmalloc by kfree_rcu".to_owned());
    }
    if caches.is_empty() {
        facts.good("frees", "all have events, as far as it is known");
        return;
    }
    let caches: Vec<String> = caches.into_iter().collect();
    facts.add(
        "frees",
        State::Warning,
        format!("some objects are freed without an event: {}", caches.join(", ")),
        "what seems live of them is an upper bound: record page events, too (the default), and --snapshot-every 5s; `kmt-analyze slabinfo` shows how far off it is",
    );
}
