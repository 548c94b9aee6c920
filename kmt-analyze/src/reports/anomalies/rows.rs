//! Kinds of anomalies, and the sites of each, found in the results of a pass.
//!
//! The sums of the collector have origins by number; here they get names and are sorted, the most frequent first.

use kmt_common::unseen_allocs::unseen_allocs;
use kmt_format::kernel::ClockUnit;
use serde::Serialize;

use crate::collect::anomalies::{AnomalySums, UnmatchedFrees};
use crate::render::words::{count, duration};
use crate::reports::common::ReportContext;
use crate::reports::common::labels::Symbol;
use crate::reports::common::rows::Address;
use crate::stream::Api;
use crate::trace::names::cache_name;
use crate::trace::object_addresses::ObjectAddresses;

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AnomalyRows {
    /// Kinds of anomalies, also those that did not occur.
    pub anomalies: Vec<AnomalyKind>,
}

/// One kind of anomaly.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AnomalyKind {
    /// `undersized`, `freed_again_or_born_unseen`, `born_unseen`, `mixed_api`, `late_free`, `ambiguous_free`, `inverted`,
    /// `freed_unseen`, `alloc_failures`, `double_report`.
    pub kind: &'static str,
    /// Name of the kind for people.
    pub title: &'static str,
    /// Meaning of the kind.
    pub explanation: &'static str,
    /// It may be a bug of the traced kernel.
    pub may_be_a_fault: bool,
    /// Number of events.
    pub count: u64,
    /// Number of those that may be bugs: no harmless cause was found.
    pub suspect: u64,
    /// Number of sites, including those beyond the limit of rows.
    pub rows_total: usize,
    /// Sites, those with most events that may be bugs first, then those with most events.
    pub rows: Vec<AnomalyRow>,
    /// Facts that only the screen has.
    #[serde(skip)]
    pub shown: KindShown,
}

/// Facts on a kind that only the screen has.
#[derive(Debug)]
pub struct KindShown {
    /// Number of events that may be bugs, or due to lost events.
    pub maybe_lost: u64,
    /// All are frees to caches whose objects the kernel allocates in bulk.
    pub is_bulk: bool,
}

impl AnomalyKind {
    /// Number of events that may be bugs, or else of those that may be bugs or due to lost events.
    pub fn doubtful(&self) -> u64 {
        if self.suspect > 0 { self.suspect } else { self.shown.maybe_lost }
    }

    /// Number of such events of a site.
    pub fn doubtful_of(&self, row: &AnomalyRow) -> u64 {
        if self.suspect > 0 { row.suspect } else { row.shown.maybe_lost }
    }
}

/// One site of an anomaly.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AnomalyRow {
    /// Site of the allocation.
    pub call_site: Option<AnomalySite>,
    /// Site of the free.
    pub freed_by: Option<AnomalySite>,
    /// Number of events there.
    pub count: u64,
    /// Number of those that may be bugs.
    pub suspect: u64,
    /// The first repeated free, where double frees are possible: allocations without an event may explain it, or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<FirstFree>,
    /// Details for people.
    pub detail: String,
    /// Facts that only the screen has.
    #[serde(skip)]
    pub shown: SiteShown,
}

/// Facts on a site that only the screen has.
#[derive(Debug, Clone, Default)]
pub struct SiteShown {
    /// Numbers of the details.
    pub numbers: Option<Detail>,
    /// Cache that the frees name.
    pub cache: Option<String>,
    /// Number of events that may be bugs, or due to lost events.
    pub maybe_lost: u64,
}

impl AnomalyRow {
    /// The kernel allocates objects of this cache in bulk.
    pub fn is_bulk(&self) -> bool {
        self.shown.cache.as_deref().and_then(unseen_allocs).is_some()
    }
}

/// An event to begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FirstFree {
    /// Time of the free, in the clock's unit.
    pub time: u64,
    /// Address that was freed.
    pub ptr: Address,
}

/// Numbers of one site, by kind of anomaly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Bytes of an object.
    Undersized {
        /// Bytes allocated.
        allocated: u64,
        /// Bytes requested.
        requested: u64,
    },
    /// Bytes of all objects.
    Bytes(u64),
    /// Longest delay of the event, in the clock's unit.
    Delay(u64),
    /// Events that imply the free.
    Implied {
        /// The address was allocated again.
        by_object: u64,
        /// The page was freed or allocated again.
        by_page: u64,
    },
    /// Evidence of allocations without an event.
    Again {
        /// Frees after a free that ended no object of the trace.
        after_unmatched: u64,
        /// Frees on pages that were allocated after the last event of the address.
        on_new_pages: u64,
        /// Frees at addresses since whose last event events may be lost.
        after_loss: u64,
    },
    /// Bytes requested by each.
    Size(u64),
}

impl Detail {
    /// As text.
    pub fn text(self, unit: ClockUnit) -> String {
        match self {
            Self::Undersized { allocated, requested } => {
                format!("{} bytes for {}", count(allocated), count(requested))
            }
            Self::Bytes(bytes) => format!("{} bytes", count(bytes)),
            Self::Delay(delay) => format!("up to {} late", duration(delay, unit)),
            Self::Implied { by_object, by_page } => {
                format!("{} by an allocation, {} by a page event", count(by_object), count(by_page))
            }
            Self::Again { after_unmatched, on_new_pages, after_loss } => {
                let [unmatched, pages, loss] = [after_unmatched, on_new_pages, after_loss].map(count);
                format!(
                    "{unmatched} after a free without a traced allocation, {pages} on pages allocated since, {loss} after a loss"
                )
            }
            Self::Size(bytes) => format!("{} bytes each", count(bytes)),
        }
    }
}

/// A site of allocations or frees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AnomalySite {
    /// Address of the site.
    pub address: Address,
    /// Function and offset, or the address.
    #[serde(flatten)]
    pub symbol: Symbol,
}

/// Number of repeated frees of a site that may be double frees: those that allocations without an event do not explain.
///
/// Two frees after frees that themselves ended no object show such allocations: no kernel frees an object three times and
/// continues. So does one free on a page that was allocated after the last free.
fn unexplained(frees: &UnmatchedFrees) -> u64 {
    let shown = frees.again_unseen.max(frees.new_page);
    match frees.new_page >= 1 || frees.again_unseen >= 2 {
        true => frees.again_seen.saturating_sub(shown),
        false => frees.again_seen.saturating_add(frees.again_unseen),
    }
}

/// Finds anomalies in the results of a pass.
pub struct Finder<'f, 's, 'd> {
    /// The analysed trace.
    pub context: &'f ReportContext<'s, 'd>,
    /// Results of the collector.
    pub sums: &'f AnomalySums,
}

impl Finder<'_, '_, '_> {
    /// The call site of that number.
    fn site(&self, caller: u32) -> Option<AnomalySite> {
        let (_, address, symbol) = self.context.labels().caller(self.context.analysis, caller);
        Some(AnomalySite { address: Address(address), symbol })
    }

    /// The freeing site of that number.
    fn free_site(&self, free: u32) -> Option<AnomalySite> {
        let (address, symbol) = self.context.labels().free_site(self.context.analysis, free);
        Some(AnomalySite { address: Address(address), symbol })
    }

    /// The cache that the events of a freeing site name.
    fn cache(&self, free: u32) -> Option<String> {
        let interner = &self.context.analysis.interner;
        let cache = interner.frees.get(free)?.cache?;
        Some(cache_name(interner.name(cache)))
    }

    /// The site of that address.
    fn at(&self, address: u64) -> Option<AnomalySite> {
        Some(AnomalySite { address: Address(address), symbol: self.context.labels().located(address) })
    }

    fn row(&self, sites: [Option<AnomalySite>; 2], count: u64, numbers: Option<Detail>) -> AnomalyRow {
        let [call_site, freed_by] = sites;
        let unit = self.context.session.unit();
        let detail = numbers.map_or(String::new(), |numbers| numbers.text(unit));
        AnomalyRow {
            call_site,
            freed_by,
            count,
            detail,
            suspect: 0,
            first: None,
            shown: SiteShown { numbers, ..SiteShown::default() },
        }
    }

    fn allocated(&self, caller: u32, count: u64, numbers: Option<Detail>) -> AnomalyRow {
        self.row([self.site(caller), None], count, numbers)
    }

    fn freed(&self, free: u32, count: u64, numbers: Option<Detail>) -> AnomalyRow {
        let mut row = self.row([None, self.free_site(free)], count, numbers);
        row.shown.cache = self.cache(free);
        row
    }

    /// Allocations smaller than requested.
    pub fn undersized(&self) -> Vec<AnomalyRow> {
        let sites =
            self.context.analysis.interner.sites.items().iter().zip(&self.context.analysis.balance.sites);
        sites
            .filter(|(site, _)| site.bytes_alloc < site.bytes_req)
            .map(|(site, by_cache)| {
                let numbers = Detail::Undersized { allocated: site.bytes_alloc, requested: site.bytes_req };
                let count = by_cache.iter().map(|(_, t)| t.alloc_events).sum();
                let row = self.row([self.at(site.call_site), None], count, Some(numbers));
                AnomalyRow { suspect: count, ..row }
            })
            .filter(|row| row.count > 0)
            .collect()
    }

    /// Frees at addresses whose last object has ended.
    pub fn freed_again_or_born_unseen(&self) -> Vec<AnomalyRow> {
        let has_first = self.sums.unmatched.values().any(|frees| frees.again_first.is_some());
        let addresses = has_first.then(|| ObjectAddresses::of(self.context.session));
        let row = |(free, frees): (&u32, &UnmatchedFrees)| {
            let UnmatchedFrees { new_page, again_seen, again_unseen, again_lost, .. } = *frees;
            let numbers = Detail::Again {
                after_unmatched: again_unseen,
                on_new_pages: new_page,
                after_loss: again_lost,
            };
            let count = again_seen.saturating_add(again_unseen).saturating_add(again_lost);
            let mut row = self.freed(*free, count, Some(numbers));
            let [suspect, maybe_lost] = if row.is_bulk() { [0, 0] } else { [unexplained(frees), again_lost] };
            let first = frees.again_first.filter(|_| suspect > 0);
            let first = first.zip(addresses).map(|((time, address), addresses)| FirstFree {
                time,
                ptr: Address(addresses.whole(address)),
            });
            row.shown.maybe_lost = maybe_lost;
            AnomalyRow { suspect, first, ..row }
        };
        self.sums.unmatched.iter().map(row).filter(|row| row.count > 0).collect()
    }

    /// Frees on pages that were allocated in the trace.
    pub fn born_unseen(&self) -> Vec<AnomalyRow> {
        let on_new_pages = self.sums.unmatched.iter().filter(|(_, frees)| frees.new_page > 0);
        on_new_pages.map(|(free, frees)| self.freed(*free, frees.new_page, None)).collect()
    }

    /// Objects allocated by one interface and freed by the other.
    pub fn mixed_api(&self) -> Vec<AnomalyRow> {
        let row = |(&(caller, free), &(frees, bytes)): (&(u32, u32), &(u64, u64))| {
            let row = self.row([self.site(caller), self.free_site(free)], frees, Some(Detail::Bytes(bytes)));
            let (api, ..) = self.context.labels().caller(self.context.analysis, caller);
            AnomalyRow { suspect: if api == Api::Kmalloc { frees } else { 0 }, ..row }
        };
        self.sums.mixed.iter().map(row).collect()
    }

    /// Frees with events after the next use of their memory.
    pub fn late_free(&self) -> Vec<AnomalyRow> {
        let late = self.sums.late.iter();
        late.map(|(free, late)| self.freed(*free, late.frees, Some(Detail::Delay(late.delay_max)))).collect()
    }

    /// Frees of one of two objects.
    pub fn ambiguous_free(&self) -> Vec<AnomalyRow> {
        self.sums.ambiguous.iter().map(|(caller, n)| self.allocated(*caller, *n, None)).collect()
    }

    /// Objects that end before they begin.
    pub fn inverted(&self) -> Vec<AnomalyRow> {
        self.sums.inverted.iter().map(|(caller, n)| self.allocated(*caller, *n, None)).collect()
    }

    /// Objects that ended without a free event.
    pub fn freed_unseen(&self) -> Vec<AnomalyRow> {
        let row = |(caller, n): (&u32, &[u64; 3])| {
            let numbers = Detail::Implied { by_object: n[0], by_page: n[1] + n[2] };
            self.allocated(*caller, n.iter().sum(), Some(numbers))
        };
        self.sums.implied_frees.iter().map(row).collect()
    }

    /// Allocations that returned NULL.
    pub fn alloc_failures(&self) -> Vec<AnomalyRow> {
        let sites =
            self.context.analysis.interner.sites.items().iter().zip(&self.context.analysis.balance.failures);
        sites
            .filter(|(_, failures)| **failures > 0)
            .map(|(site, failures)| {
                self.row([self.at(site.call_site), None], *failures, Some(Detail::Size(site.bytes_req)))
            })
            .collect()
    }

    /// kmallocs with two events.
    pub fn double_report(&self) -> Vec<AnomalyRow> {
        let count = self.context.analysis.balance.counts.iter().map(|c| c.double_reports).sum::<u64>();
        if count > 0 { vec![self.row([None, None], count, None)] } else { Vec::new() }
    }
}
