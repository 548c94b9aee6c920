//! Allow-lists of `anonymize`: event fields that keep their numbers, and public names.
//!
//! Fields with counts, flags and other small numbers are kept. Names are public if mainline Linux has them: modules, caches,
//! events, words of its /proc files and of its format files (`mainline/`). [`Treatment`] is the result for one field; the masks
//! of event classes are made of it.

use std::collections::HashSet;
use std::sync::LazyLock;

use crate::trace::names::is_kmalloc;

/// Common fields besides those with roles (kernel/trace/trace.h, 4.4 to 6.12, and PREEMPT_RT).
pub const COMMON: [&str; 4] =
    ["common_migrate_disable", "common_preempt_lazy_count", "common_padding", "common_migrate_disable_count"];

/// Counts, flags and small numbers by system. Frame numbers and zone bounds of compaction are not included: its
/// scanners start at known places and go through memory in order, so they would reveal the positions of blocks.
pub const ALLOWED: [(&str, &[&str]); 7] = [
    (
        "kmem",
        &[
            "alloc_order",
            "fallback_order",
            "alloc_migratetype",
            "fallback_migratetype",
            "change_ownership",
            "percpu_refill",
            "member",
            "curr",
            "cold",
            "pageblock_order",
        ],
    ),
    (
        "vmscan",
        &[
            "nid",
            "zid",
            "order",
            "gfp_flags",
            "may_writepage",
            "nr_reclaimed",
            "nr_objects_to_shrink",
            "cache_items",
            "delta",
            "total_scan",
            "priority",
            "unused_scan",
            "new_scan",
            "retval",
            "highest_zoneidx",
            "classzone_idx",
            "classzone",
            "nr_requested",
            "nr_scanned",
            "nr_skipped",
            "nr_taken",
            "isolate_mode",
            "lru",
            "file",
            "reclaim_flags",
            "nr_dirty",
            "nr_writeback",
            "nr_congested",
            "nr_immediate",
            "nr_activate",
            "nr_activate0",
            "nr_activate1",
            "nr_ref_keep",
            "nr_unmap_fail",
            "nr_active",
            "nr_deactivated",
            "nr_referenced",
            "usec_timeout",
            "usec_delayed",
            "reason",
            "pgs_needed",
            "nr_rotated",
            "inactive",
            "active",
            "ratio",
            "total_inactive",
            "total_active",
            "reclaim_idx",
            "lruvec_nid",
        ],
    ),
    (
        "compaction",
        &[
            "nr_scanned",
            "nr_taken",
            "nr_migrated",
            "nr_failed",
            "sync",
            "status",
            "order",
            "gfp_mask",
            "prio",
            "nid",
            "idx",
            "ret",
            "considered",
            "defer_shift",
            "order_failed",
            "classzone_idx",
            "highest_zoneidx",
            "mode",
        ],
    ),
    (
        "migrate",
        &[
            "succeeded",
            "failed",
            "thp_succeeded",
            "thp_failed",
            "thp_split",
            "large_folio_split",
            "mode",
            "reason",
            "order",
        ],
    ),
    (
        "oom",
        &[
            "oom_score_adj",
            "node",
            "zone_idx",
            "order",
            "reclaimable",
            "available",
            "min_wmark",
            "no_progress_loops",
            "wmark_check",
            "priority",
            "result",
            "retries",
            "max_retries",
            "ret",
        ],
    ),
    ("ftrace", &["depth", "overrun", "count"]),
    ("sched", &["prev_prio", "next_prio", "prev_state", "target_cpu", "prio", "success"]),
];

/// Treatment of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Treatment {
    /// Unchanged.
    Keep,
    /// Becomes zero.
    Zero,
    /// A task id.
    Pid,
    /// An address of the heap.
    Heap,
    /// Any address of data.
    Address,
    /// An address of the text.
    Code,
    /// Addresses of the text.
    Stack,
    /// A page frame number.
    Frame,
    /// A time of the trace's clock.
    Time,
    /// The name of a cache.
    CacheName,
    /// The name of a task.
    TaskName,
    /// An identifier without other meaning.
    Identity,
}

/// Lines of a list, without comments.
fn list(text: &'static str) -> HashSet<&'static [u8]> {
    text.lines().filter(|l| !l.is_empty() && !l.starts_with('#')).map(str::as_bytes).collect()
}

static MODULES: LazyLock<HashSet<&[u8]>> = LazyLock::new(|| list(include_str!("mainline/modules.txt")));
static CACHES: LazyLock<HashSet<&[u8]>> = LazyLock::new(|| list(include_str!("mainline/caches.txt")));
static EVENTS: LazyLock<HashSet<&[u8]>> = LazyLock::new(|| list(include_str!("mainline/events.txt")));
static FORMAT_WORDS: LazyLock<HashSet<&[u8]>> =
    LazyLock::new(|| list(include_str!("mainline/format_words.txt")));
static WORDS: LazyLock<HashSet<&[u8]>> = LazyLock::new(|| list(include_str!("mainline/words.txt")));

/// True if the mainline tree has a module of that name.
pub fn has_module(name: &[u8]) -> bool {
    MODULES.contains(name)
}

/// True if the mainline tree creates a cache of that name, ignoring numbers in it.
pub fn has_cache(name: &[u8]) -> bool {
    let digits = name.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    let stem = name.get(..name.len() - digits).unwrap_or_default();
    is_kmalloc(name)
        || CACHES.contains(name)
        || (digits > 0 && CACHES.contains([stem, b"%u"].concat().as_slice()))
}

/// True if the mainline tree has that event.
pub fn has_event(system: &str, name: &str) -> bool {
    EVENTS.contains(format!("{system}:{name}").as_bytes())
}

/// True if the kernel prints that word in the /proc files that stay.
pub fn has_word(word: &[u8]) -> bool {
    WORDS.contains(word)
}

/// True if the format files of the mainline kernel have that word: in a field, or in a print fmt.
pub fn has_format_word(word: &str) -> bool {
    FORMAT_WORDS.contains(word.as_bytes())
}

/// True if a text of a format file has no word that the mainline kernel's do not have, and no long number.
pub fn has_format_text(text: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut words = text.split(|c| !is_word(c)).filter(|word| !word.is_empty());
    text.is_ascii() && words.all(|word| has_format_word(word) || is_small_number(word))
}

/// True for a number of 32 bits, in C.
fn is_small_number(word: &str) -> bool {
    let digits = word.trim_end_matches(['u', 'U', 'l', 'L']);
    match digits.strip_prefix("0x") {
        // In a text, a conversion follows.
        Some("") => true,
        Some(hex) => u32::from_str_radix(hex, 16).is_ok(),
        None => digits.parse::<u32>().is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_know_what_is_common() {
        assert!(has_module(b"ext4") && has_module(b"virtio_net") && !has_module(b"acme_driver"));
        assert!(has_event("kmem", "kmalloc") && has_event("vmscan", "mm_vmscan_lru_isolate"));
        assert!(!has_event("acme", "kmalloc") && !has_event("kmem", "acme"));
        assert!(has_word(b"MemTotal") && has_word(b"nr_free_pages") && !has_word(b"AcmeHeap"));
        assert!(has_format_text("\"order=%d\\n\", REC->order ? 0x40u : 7") && has_format_text(""));
        assert!(
            !has_format_text("REC->acme")
                && !has_format_text("\"order=0x123456789\"")
                && !has_format_text("é")
        );
        assert!(is_kmalloc(b"kmalloc-rnd-03-8k") && is_kmalloc(b"dma-kmalloc-64"));
        assert!(!is_kmalloc(b"kmalloc-acme-64") && !is_kmalloc(b"kmalloc-"));
    }
}
