//! Meaning of each kind of anomaly, and the rows by kind.
//!
//! The table has a key for JSON and sentences for people. The verdict of a kind may depend on its number and on losses.

use super::rows::{AnomalyKind, AnomalyRow, AnomalyRows, Finder, KindShown};
use crate::collect::anomalies::AnomalySums;
use crate::reports::common::ReportContext;
use crate::sort_rows::SortRows;

/// A kind and its meaning.
pub struct Meaning {
    /// The kind in JSON.
    pub kind: &'static str,
    /// Name of the kind for people.
    pub title: &'static str,
    /// Name of one event of the kind.
    pub one: &'static str,
    /// It may be a bug of the traced kernel.
    pub may_be_a_fault: bool,
    /// Verdict in a few words, where no site is suspect.
    pub verdict: &'static str,
    /// Verdict where one is.
    pub verdict_suspect: Option<&'static str>,
    /// Verdict where one may be because events were lost, if that is a cause.
    pub verdict_lossy: Option<&'static str>,
    /// Verdict where no site is suspect and events were lost before some of the frees.
    pub verdict_maybe_lost: Option<&'static str>,
    /// Verdict where no site is suspect and not all free objects allocated in bulk; the second one if events were lost.
    pub verdict_not_bulk: Option<[&'static str; 2]>,
    /// Causes of the kind.
    pub explanation: &'static str,
    /// Sites of the kind.
    pub rows: fn(&Finder<'_, '_, '_>) -> Vec<AnomalyRow>,
}

impl Meaning {
    /// That of a kind.
    pub fn of(kind: &AnomalyKind) -> &'static Self {
        KINDS.iter().find(|meaning| meaning.kind == kind.kind).unwrap_or(&KINDS[0])
    }

    /// Verdict on the rows of a kind.
    pub fn verdict(&self, kind: &AnomalyKind, is_lossy: bool) -> &'static str {
        let is_suspect = kind.suspect > 0;
        if let Some(verdict) = self.verdict_maybe_lost.filter(|_| !is_suspect && kind.shown.maybe_lost > 0) {
            return verdict;
        }
        if let Some(verdicts) = self.verdict_not_bulk.filter(|_| !is_suspect && !kind.shown.is_bulk) {
            return verdicts[usize::from(is_lossy)];
        }
        let may_be_lost = is_lossy && (is_suspect || !self.may_be_a_fault);
        let verdict = if is_suspect { self.verdict_suspect.unwrap_or(self.verdict) } else { self.verdict };
        self.verdict_lossy.filter(|_| may_be_lost).unwrap_or(verdict)
    }
}

/// A kind that shows no fault, with one verdict.
const NORMAL: Meaning = Meaning {
    kind: "",
    title: "",
    one: "",
    may_be_a_fault: false,
    verdict: "",
    verdict_suspect: None,
    verdict_lossy: None,
    verdict_maybe_lost: None,
    verdict_not_bulk: None,
    explanation: "",
    rows: |_| Vec::new(),
};

/// All kinds; those that may be bugs first.
static KINDS: [Meaning; 10] = [
    Meaning {
        kind: "undersized",
        title: "allocations smaller than requested",
        one: "allocation smaller than requested",
        may_be_a_fault: true,
        verdict: "bug or damaged record",
        explanation: "bytes_alloc is less than bytes_req: the object is too small for its user, or the record is damaged.",
        rows: |finder| finder.undersized(),
        ..NORMAL
    },
    Meaning {
        kind: "freed_again_or_born_unseen",
        title: "frees again without an allocation event",
        one: "free again without an allocation event",
        may_be_a_fault: true,
        verdict: "normal: allocated in bulk",
        verdict_suspect: Some("possible double free"),
        verdict_maybe_lost: Some("lost event or double free"),
        verdict_not_bulk: Some(["allocated without an event", "allocated without an event"]),
        explanation: "The address was freed before, without an allocation event in between. Either the object was allocated without an \
         event, or this is a double free. Objects without an event are allocated in bulk (kmem_cache_alloc_bulk: maple tree, \
         network, io_uring), or by a task whose events are not recorded. A site frees such objects if at least two of its frees \
         follow a free that itself ended no traced object, or one is on a page that was allocated since. Only frees that this \
         does not explain, and before which no events were lost, are called possible double frees. After a real double free most kernels stop.",
        rows: |finder| finder.freed_again_or_born_unseen(),
        ..NORMAL
    },
    Meaning {
        kind: "born_unseen",
        title: "frees of objects allocated without an event",
        one: "free of an object allocated without an event",
        verdict: "normal: allocated in bulk",
        verdict_lossy: Some("lost or bulk allocation"),
        verdict_not_bulk: Some(["bulk or not recorded", "lost or not recorded"]),
        explanation: "The page was allocated in the trace, so the object was too, without an event: in bulk (kmem_cache_alloc_bulk), at boot \
         before events were enabled, by a task whose events are not recorded, or in a gap.",
        rows: |finder| finder.born_unseen(),
        ..NORMAL
    },
    Meaning {
        kind: "mixed_api",
        title: "mixed API (kmalloc / kmem_cache_free)",
        one: "object with mixed API (kmalloc / kmem_cache_free)",
        verdict: "normal: kfree frees any object",
        verdict_suspect: Some("bug: cache free of kmalloc"),
        verdict_lossy: Some("lost event, or a bug"),
        explanation: "kmem_cache_alloc followed by kfree is allowed: for any cache since Linux 6.4, with SLAB and SLUB before. kmalloc followed \
         by kmem_cache_free is a bug.",
        rows: |finder| finder.mixed_api(),
        ..NORMAL
    },
    Meaning {
        kind: "late_free",
        title: "late free events",
        one: "late free event",
        verdict: "normal before Linux 6.0",
        explanation: "Kernels before about 6.0 log kmem_cache_free after the free, so the next use of the memory on another CPU can come \
         first. The object ends at that use; no lifetime is negative.",
        rows: |finder| finder.late_free(),
        ..NORMAL
    },
    Meaning {
        kind: "ambiguous_free",
        title: "ambiguous frees",
        one: "ambiguous free",
        verdict: "uncertain",
        explanation: "Two allocations of one address with one free: the first object counts as an implied free, and as uncertain.",
        rows: |finder| finder.ambiguous_free(),
        ..NORMAL
    },
    Meaning {
        kind: "inverted",
        title: "objects freed before their allocation",
        one: "object freed before its allocation",
        verdict: "clocks of CPUs differ",
        explanation: "The clocks of two CPUs differ (trace clock `local`): the order of these events is not the order of their times.",
        rows: |finder| finder.inverted(),
        ..NORMAL
    },
    Meaning {
        kind: "freed_unseen",
        title: "implied frees",
        one: "implied free",
        verdict: "normal: no free event",
        verdict_lossy: Some("lost, or no free event"),
        explanation: "The address or page was reused; the free has no event. kfree_rcu, kmem_cache_free_bulk and per-CPU sheaves (Linux 6.18) \
         free without one. A cache with many implied frees is not a leak, even if many of its objects look live.",
        rows: |finder| finder.freed_unseen(),
        ..NORMAL
    },
    Meaning {
        kind: "alloc_failures",
        title: "failed allocations",
        one: "failed allocation",
        verdict: "often expected",
        explanation: "The allocation returned NULL. Callers that pass __GFP_NOWARN or __GFP_NORETRY expect this.",
        rows: |finder| finder.alloc_failures(),
        ..NORMAL
    },
    Meaning {
        kind: "double_report",
        title: "duplicate kmalloc events",
        one: "duplicate kmalloc event",
        verdict: "normal since Linux 6.10",
        explanation: "Kernels since 6.10 log a kmalloc of more than two pages in its inner and its outer function: one object, counted once.",
        rows: |finder| finder.double_report(),
        ..NORMAL
    },
];

/// Rows of a trace.
pub fn anomaly_rows(context: &ReportContext<'_, '_>, sums: &AnomalySums) -> AnomalyRows {
    let mut kinds = kinds(context, sums);
    for kind in &mut kinds {
        kind.rows.sort_rows_by(|a, b| {
            fn rank(row: &AnomalyRow) -> [u64; 3] {
                [row.suspect, row.shown.maybe_lost, row.count]
            }
            fn names(row: &AnomalyRow) -> [Option<&str>; 2] {
                [&row.call_site, &row.freed_by].map(|site| site.as_ref().map(|site| site.symbol.as_str()))
            }
            rank(b).cmp(&rank(a)).then_with(|| names(a).cmp(&names(b)))
        });
        kind.rows.truncate(context.limit);
    }
    AnomalyRows { anomalies: kinds }
}

/// All kinds, also those that did not occur.
fn kinds(context: &ReportContext<'_, '_>, sums: &AnomalySums) -> Vec<AnomalyKind> {
    let finder = Finder { context, sums };
    let kind = |meaning: &'static Meaning| {
        let rows = (meaning.rows)(&finder);
        AnomalyKind {
            kind: meaning.kind,
            title: meaning.title,
            explanation: meaning.explanation,
            may_be_a_fault: meaning.may_be_a_fault,
            count: rows.iter().map(|row| row.count).sum(),
            rows_total: rows.len(),
            suspect: rows.iter().map(|row| row.suspect).sum(),
            shown: KindShown {
                maybe_lost: rows.iter().map(|row| row.shown.maybe_lost).sum(),
                is_bulk: rows.iter().all(AnomalyRow::is_bulk),
            },
            rows,
        }
    };
    KINDS.iter().map(kind).collect()
}
