//! Call sites that grow by the rule alone and are no leak: the precondition of each other verdict.

use serde_json::Value;

use super::super::files::json;
use super::Case;
use super::growth::Judged;
use super::survival::lack_events;
use kmt_format::read::Trace;

/// Caches that every kernel marks as reclaimable, for files without /sys/kernel/slab.
const RECLAIMABLE: [&str; 4] = ["dentry", "radix_tree_node", "buffer_head", "inode"];
const SLAB_METADATA: [&str; 3] =
    ["alloc_slab_obj_exts", "memcg_alloc_slab_cgroups", "memcg_alloc_page_obj_cgroups"];

fn text<'r>(judged: &'r Judged<'_>, key: &str) -> &'r str {
    judged.row[key].as_str().unwrap()
}

fn function<'r>(judged: &'r Judged<'_>) -> &'r str {
    text(judged, "symbol").split('+').next().unwrap()
}

/// True if the verdict of a row is possible for it.
pub fn is_excused(case: &Case<'_>, judged: &Judged<'_>, rows: &[Judged<'_>]) -> bool {
    let (evidence, function) = (&judged.evidence, function(judged));
    match text(judged, "verdict") {
        "reclaimable" => text(judged, "api") == "cache" && is_reclaimable(case, text(judged, "cache")),
        "with_reclaimable" => {
            let is_blob = function.starts_with("security_") || function.starts_with("lsm_");
            is_blob || rows.iter().any(|host| is_host(case, host, function))
        }
        "with_tasks" => {
            rows.iter().any(|row| text(row, "cache") == "task_struct" && row.evidence.survivors > 0)
        }
        "with_slabs" => SLAB_METADATA.contains(&function),
        "lazy" => matches!(function, "alloc_vmap_area" | "__get_vm_area_node"),
        "frees_unseen" => {
            let are_few = evidence.old * 20 < evidence.births;
            let is_bulk = matches!(text(judged, "cache"), "skbuff_head_cache" | "maple_node");
            let is_by_rcu = matches!(function, "kernfs_fop_open" | "kernfs_get_open_node")
                && evidence.freed * 20 <= evidence.freed + evidence.implied_frees + evidence.survivors;
            is_by_rcu
                || are_few && (is_bulk || lack_events(evidence.freed, evidence.implied_frees))
                || most_live(case, judged) * 2 < evidence.survivors
        }
        _ => false,
    }
}

fn is_host(case: &Case<'_>, host: &Judged<'_>, of: &str) -> bool {
    text(host, "api") == "cache" && function(host) == of && is_reclaimable(case, text(host, "cache"))
}

/// The kernel's own flag, where the file has it.
fn is_reclaimable(case: &Case<'_>, cache: &str) -> bool {
    let name = cache;
    let bytes = std::fs::read(case.file).unwrap();
    let trace = Trace::open(&bytes).unwrap();
    let sysfs = ["slab_sysfs.after", "slab_sysfs.before"].iter().find_map(|n| trace.metadata().attachment(n));
    let sysfs = String::from_utf8_lossy(sysfs.unwrap_or_default()).into_owned();
    let alias = sysfs.lines().find_map(|line| line.strip_prefix(cache)?.strip_prefix(" -> "));
    let cache = alias.unwrap_or(cache);
    let line = sysfs.lines().find(|line| line.split(' ').next() == Some(cache));
    let is_marked = line.is_some_and(|line| line.contains(" reclaim_account=1"));
    is_marked || RECLAIMABLE.iter().any(|part| name.contains(part))
}

/// Upper bound of the objects of a call site by `callers`, which slabinfo limits.
fn most_live(case: &Case<'_>, judged: &Judged<'_>) -> u64 {
    let callers = json(&["callers", "--json", "-l", "0"], case.file);
    let is_same = |row: &&Value| ["call_site", "api"].iter().all(|key| row[key] == judged.row[key]);
    let row = callers["callers"].as_array().unwrap().iter().find(is_same);
    row.and_then(|row| row["live_range"][1].as_u64()).unwrap_or(u64::MAX / 2)
}
