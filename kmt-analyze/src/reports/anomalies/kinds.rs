//! Each kind of anomaly: where it is found, and its meaning.

use super::rows::{AnomalyKind, AnomalyRow, AnomalyRows, Site};
use crate::collect::anomalies::AnomalySums;
use crate::pass::Analysis;
use crate::render::text::{count, duration};
use crate::reports::common::Context;
use crate::reports::common::labels::Labels;
use crate::reports::common::rows::Address;

/// Rows of a trace.
pub fn of(context: &Context<'_, '_>, analysis: &Analysis, sums: &AnomalySums) -> AnomalyRows {
    let mut kinds = kinds(context, analysis, sums);
    for kind in &mut kinds {
        kind.rows.sort_by(|a, b| {
            fn names(row: &AnomalyRow) -> [Option<&str>; 2] {
                [&row.call_site, &row.freed_by].map(|site| site.as_ref().map(|site| site.symbol.as_str()))
            }
            b.count.cmp(&a.count).then_with(|| names(a).cmp(&names(b)))
        });
        kind.rows.truncate(context.limit);
    }
    AnomalyRows { anomalies: kinds }
}

/// All kinds, also those that did not happen.
fn kinds(context: &Context<'_, '_>, analysis: &Analysis, sums: &AnomalySums) -> Vec<AnomalyKind> {
    let finder = Finder { context, analysis, sums, labels: Labels::new(context.session) };
    let kind = |Meaning { kind, title, may_be_a_fault, explanation, rows }: &Meaning| {
        let rows = rows(&finder);
        let (count, rows_total) = (rows.iter().map(|row| row.count).sum(), rows.len());
        AnomalyKind { kind, title, explanation, may_be_a_fault: *may_be_a_fault, count, rows_total, rows }
    };
    KINDS.iter().map(kind).collect()
}

/// A kind and its meaning.
struct Meaning {
    kind: &'static str,
    title: &'static str,
    may_be_a_fault: bool,
    explanation: &'static str,
    rows: fn(&Finder<'_, '_, '_>) -> Vec<AnomalyRow>,
}

const KINDS: [Meaning; 10] = [
    Meaning {
        kind: "undersized",
        title: "allocations smaller than asked for",
        may_be_a_fault: true,
        explanation: "bytes_alloc is less than bytes_req: the object is too small for what asked for it, or the record is damaged.",
        rows: |finder| finder.undersized(),
    },
    Meaning {
        kind: "freed_again_or_born_unseen",
        title: "frees at an address where nothing lives any more",
        may_be_a_fault: true,
        explanation: "A double free, or an object whose allocation has no event. Bulk allocations (kmem_cache_alloc_bulk: network, io_uring, \
         maple tree) have none, and a kernel that frees twice mostly stops at once: sites of such caches are not suspect, others are.",
        rows: |finder| finder.freed_again_or_born_unseen(),
    },
    Meaning {
        kind: "born_unseen",
        title: "frees on pages that are of the trace, of objects that no event allocated",
        may_be_a_fault: false,
        explanation: "The page was allocated in the trace, so the object was born in it: in bulk (kmem_cache_alloc_bulk has no event), at \
         boot before the events were on, or in a part that was lost.",
        rows: |finder| finder.born_unseen(),
    },
    Meaning {
        kind: "mixed_api",
        title: "objects freed by the other interface",
        may_be_a_fault: false,
        explanation: "kmem_cache_alloc and then kfree, or kmalloc and then kmem_cache_free. kfree takes objects of any cache since 6.4 (SLOB went \
         then) and always did with SLAB and SLUB; a kmem_cache_free of a kmalloc object is a fault.",
        rows: |finder| finder.mixed_api(),
    },
    Meaning {
        kind: "late_free",
        title: "frees logged after the address or its page had its next use",
        may_be_a_fault: false,
        explanation: "Kernels before 6.0 or so log kmem_cache_free behind the free itself, so another CPU's use of the memory can stand before \
         it. The life ends at that use; no lifetime is negative.",
        rows: |finder| finder.late_free(),
    },
    Meaning {
        kind: "ambiguous_free",
        title: "frees that may belong to either of two objects",
        may_be_a_fault: false,
        explanation: "alloc, alloc, free of one address, and no second free in the trace: the first object counts as freed unseen and as uncertain.",
        rows: |finder| finder.ambiguous_free(),
    },
    Meaning {
        kind: "inverted",
        title: "objects that end before they begin",
        may_be_a_fault: false,
        explanation: "Clocks of two CPUs disagree (clock `local`): the order of such events is not that of time.",
        rows: |finder| finder.inverted(),
    },
    Meaning {
        kind: "freed_unseen",
        title: "objects that are gone without a free event",
        may_be_a_fault: false,
        explanation: "Their address was allocated again, or their page was freed. kfree_rcu, kmem_cache_free_bulk and per-CPU sheaves (6.18) free \
         without an event; a cache with many such frees is no leak however many of its objects seem live.",
        rows: |finder| finder.freed_unseen(),
    },
    Meaning {
        kind: "alloc_failures",
        title: "allocations that failed",
        may_be_a_fault: false,
        explanation: "The pointer is 0. With __GFP_NOWARN or __GFP_NORETRY that is often planned for.",
        rows: |finder| finder.alloc_failures(),
    },
    Meaning {
        kind: "double_report",
        title: "large kmallocs that were reported twice",
        may_be_a_fault: false,
        explanation: "Kernels since 6.10 report a kmalloc of more than two pages from its inner and its outer function: one object, counted once.",
        rows: |finder| finder.double_report(),
    },
];

/// Finds anomalies in the results of a pass.
struct Finder<'f, 's, 'd> {
    context: &'f Context<'s, 'd>,
    analysis: &'f Analysis,
    sums: &'f AnomalySums,
    labels: Labels<'s, 'd>,
}

impl Finder<'_, '_, '_> {
    /// The call site of that number.
    fn site(&self, caller: u32) -> Option<Site> {
        let (_, address, symbol) = self.labels.caller(self.analysis, caller);
        Some(Site { address: Address(address), symbol })
    }

    /// The freeing site of that number.
    fn free_site(&self, free: u32) -> Option<Site> {
        let (address, symbol) = self.labels.free_site(self.analysis, free);
        Some(Site { address: Address(address), symbol })
    }

    /// The site of that address.
    fn at(&self, address: u64) -> Option<Site> {
        Some(Site { address: Address(address), symbol: self.labels.symbol(address) })
    }

    fn allocated(&self, caller: u32, count: u64, detail: String) -> AnomalyRow {
        AnomalyRow { call_site: self.site(caller), freed_by: None, count, detail }
    }

    fn freed(&self, free: u32, count: u64, detail: String) -> AnomalyRow {
        AnomalyRow { call_site: None, freed_by: self.free_site(free), count, detail }
    }

    /// Frees without a life, of one kind: by number of what was found at their address.
    fn unmatched(&self, kind: usize) -> Vec<AnomalyRow> {
        let counts = self.sums.unmatched.iter().map(|(free, counts)| (*free, counts[kind]));
        counts
            .filter(|(_, count)| *count > 0)
            .map(|(free, count)| self.freed(free, count, String::new()))
            .collect()
    }

    fn undersized(&self) -> Vec<AnomalyRow> {
        let sites = self.analysis.interner.sites.items().iter().zip(&self.analysis.balance.sites);
        sites
            .filter(|(site, _)| site.bytes_alloc < site.bytes_req)
            .map(|(site, by_cache)| AnomalyRow {
                call_site: self.at(site.call_site),
                freed_by: None,
                count: by_cache.iter().map(|(_, t)| t.alloc_events).sum(),
                detail: format!("{} bytes for {}", count(site.bytes_alloc), count(site.bytes_req)),
            })
            .filter(|row| row.count > 0)
            .collect()
    }

    fn freed_again_or_born_unseen(&self) -> Vec<AnomalyRow> {
        self.unmatched(2)
    }

    fn born_unseen(&self) -> Vec<AnomalyRow> {
        self.unmatched(1)
    }

    fn mixed_api(&self) -> Vec<AnomalyRow> {
        let row = |(&(caller, free), &(frees, bytes)): (&(u32, u32), &(u64, u64))| AnomalyRow {
            call_site: self.site(caller),
            freed_by: self.free_site(free),
            count: frees,
            detail: format!("{} bytes", count(bytes)),
        };
        self.sums.mixed.iter().map(row).collect()
    }

    fn late_free(&self) -> Vec<AnomalyRow> {
        let unit = self.context.session.unit();
        let late = self.sums.late.iter();
        late.map(|(free, late)| {
            self.freed(*free, late.frees, format!("up to {} late", duration(late.delay_max, unit)))
        })
        .collect()
    }

    fn ambiguous_free(&self) -> Vec<AnomalyRow> {
        self.sums.ambiguous.iter().map(|(caller, n)| self.allocated(*caller, *n, String::new())).collect()
    }

    fn inverted(&self) -> Vec<AnomalyRow> {
        self.sums.inverted.iter().map(|(caller, n)| self.allocated(*caller, *n, String::new())).collect()
    }

    fn freed_unseen(&self) -> Vec<AnomalyRow> {
        let row = |(caller, n): (&u32, &[u64; 3])| {
            let detail = format!("{} by an allocation, {} by a page event", count(n[0]), count(n[1] + n[2]));
            self.allocated(*caller, n.iter().sum(), detail)
        };
        self.sums.unseen.iter().map(row).collect()
    }

    fn alloc_failures(&self) -> Vec<AnomalyRow> {
        let sites = self.analysis.interner.sites.items().iter().zip(&self.analysis.balance.failures);
        sites
            .filter(|(_, failures)| **failures > 0)
            .map(|(site, failures)| AnomalyRow {
                call_site: self.at(site.call_site),
                freed_by: None,
                count: *failures,
                detail: format!("{} bytes each", count(site.bytes_req)),
            })
            .collect()
    }

    fn double_report(&self) -> Vec<AnomalyRow> {
        let count = self.analysis.balance.counts.iter().map(|c| c.double_reports).sum::<u64>();
        let row = AnomalyRow { call_site: None, freed_by: None, count, detail: String::new() };
        if count > 0 { vec![row] } else { Vec::new() }
    }
}
