//! Meaning of each kind of anomaly.

use super::finder::Finder;
use super::rows::AnomalyRow;

/// A kind and its meaning.
pub struct Meaning {
    /// The kind in JSON.
    pub kind: &'static str,
    /// Its name.
    pub title: &'static str,
    /// Name of one of them.
    pub one: &'static str,
    /// It may be a bug of the traced kernel.
    pub may_be_a_fault: bool,
    /// Verdict in a few words, where no site is suspect.
    pub verdict: &'static str,
    /// Verdict where one is.
    pub verdict_suspect: &'static str,
    /// Verdict where one may be because events were lost, if that is a cause.
    pub verdict_lossy: Option<&'static str>,
    /// Its causes.
    pub explanation: &'static str,
    /// Its sites.
    pub rows: fn(&Finder<'_, '_, '_>) -> Vec<AnomalyRow>,
}

/// All kinds; those that may be bugs first.
pub const KINDS: [Meaning; 10] = [
    Meaning {
        kind: "undersized",
        title: "allocations smaller than requested",
        one: "allocation smaller than requested",
        may_be_a_fault: true,
        verdict: "bug or damaged record",
        verdict_suspect: "bug or damaged record",
        verdict_lossy: None,
        explanation: "bytes_alloc is less than bytes_req: the object is too small for its user, or the record is damaged.",
        rows: |finder| finder.undersized(),
    },
    Meaning {
        kind: "freed_again_or_born_unseen",
        title: "frees of already freed addresses",
        one: "free of an already freed address",
        may_be_a_fault: true,
        verdict: "normal: allocated in bulk",
        verdict_suspect: "possible double free",
        verdict_lossy: Some("lost event or double free"),
        explanation: "A double free, or the free of an object whose allocation has no event. kmem_cache_alloc_bulk has no events (maple tree, \
         network, io_uring): frees of these caches are normal. After a real double free most kernels stop.",
        rows: |finder| finder.freed_again_or_born_unseen(),
    },
    Meaning {
        kind: "born_unseen",
        title: "frees of objects allocated without an event",
        one: "free of an object allocated without an event",
        may_be_a_fault: false,
        verdict: "normal: allocated in bulk",
        verdict_suspect: "normal: allocated in bulk",
        verdict_lossy: Some("lost or bulk allocation"),
        explanation: "The page was allocated in the trace, so the object was too, without an event: in bulk (kmem_cache_alloc_bulk), at boot \
         before events were enabled, or in a gap.",
        rows: |finder| finder.born_unseen(),
    },
    Meaning {
        kind: "mixed_api",
        title: "mixed API (kmalloc / kmem_cache_free)",
        one: "object with mixed API (kmalloc / kmem_cache_free)",
        may_be_a_fault: false,
        verdict: "normal: kfree frees any object",
        verdict_suspect: "bug: cache free of kmalloc",
        verdict_lossy: Some("lost event, or a bug"),
        explanation: "kmem_cache_alloc followed by kfree is allowed: for any cache since Linux 6.4, with SLAB and SLUB before. kmalloc followed \
         by kmem_cache_free is a bug.",
        rows: |finder| finder.mixed_api(),
    },
    Meaning {
        kind: "late_free",
        title: "late free events",
        one: "late free event",
        may_be_a_fault: false,
        verdict: "normal before Linux 6.0",
        verdict_suspect: "normal before Linux 6.0",
        verdict_lossy: None,
        explanation: "Kernels before about 6.0 log kmem_cache_free after the free, so the next use of the memory on another CPU can come \
         first. The object ends at that use; no lifetime is negative.",
        rows: |finder| finder.late_free(),
    },
    Meaning {
        kind: "ambiguous_free",
        title: "ambiguous frees",
        one: "ambiguous free",
        may_be_a_fault: false,
        verdict: "uncertain",
        verdict_suspect: "uncertain",
        verdict_lossy: None,
        explanation: "Two allocations of one address with one free: the first object counts as an implied free, and as uncertain.",
        rows: |finder| finder.ambiguous_free(),
    },
    Meaning {
        kind: "inverted",
        title: "objects freed before their allocation",
        one: "object freed before its allocation",
        may_be_a_fault: false,
        verdict: "clocks of CPUs differ",
        verdict_suspect: "clocks of CPUs differ",
        verdict_lossy: None,
        explanation: "The clocks of two CPUs differ (trace clock `local`): the order of these events is not the order of their times.",
        rows: |finder| finder.inverted(),
    },
    Meaning {
        kind: "freed_unseen",
        title: "implied frees",
        one: "implied free",
        may_be_a_fault: false,
        verdict: "normal: no free event",
        verdict_suspect: "normal: no free event",
        verdict_lossy: Some("lost, or no free event"),
        explanation: "The address or page was reused; the free has no event. kfree_rcu, kmem_cache_free_bulk and per-CPU sheaves (Linux 6.18) \
         free without one. A cache with many implied frees is not a leak, even if many of its objects look live.",
        rows: |finder| finder.freed_unseen(),
    },
    Meaning {
        kind: "alloc_failures",
        title: "failed allocations",
        one: "failed allocation",
        may_be_a_fault: false,
        verdict: "often expected",
        verdict_suspect: "often expected",
        verdict_lossy: None,
        explanation: "The allocation returned NULL. Callers that pass __GFP_NOWARN or __GFP_NORETRY expect this.",
        rows: |finder| finder.alloc_failures(),
    },
    Meaning {
        kind: "double_report",
        title: "duplicate kmalloc events",
        one: "duplicate kmalloc event",
        may_be_a_fault: false,
        verdict: "normal since Linux 6.10",
        verdict_suspect: "normal since Linux 6.10",
        verdict_lossy: None,
        explanation: "Kernels since 6.10 log a kmalloc of more than two pages in its inner and its outer function: one object, counted once.",
        rows: |finder| finder.double_report(),
    },
];
