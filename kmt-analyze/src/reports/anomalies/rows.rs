//! Kinds of anomalies, and the sites of each.

use kmt_format::kernel::ClockUnit;
use serde::Serialize;

use crate::render::words::{count, duration};
use crate::reports::common::rows::Address;
use crate::reports::common::symbol::Symbol;

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
    /// Number of those that may be bugs, or due to lost events.
    #[serde(skip)]
    pub maybe_lost: u64,
    /// All are frees to caches whose objects the kernel allocates in bulk.
    #[serde(skip)]
    pub is_bulk: bool,
}

impl AnomalyKind {
    /// Number of events that may be bugs, or else of those that may be bugs or due to lost events.
    pub fn doubtful(&self) -> u64 {
        if self.suspect > 0 { self.suspect } else { self.maybe_lost }
    }

    /// Number of such events of a site.
    pub fn doubtful_of(&self, row: &AnomalyRow) -> u64 {
        if self.suspect > 0 { row.suspect } else { row.maybe_lost }
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
    /// Details for people.
    pub detail: String,
    /// Numbers of the details.
    #[serde(skip)]
    pub numbers: Option<Detail>,
    /// Cache that the frees name.
    #[serde(skip)]
    pub cache: Option<String>,
    /// Number of those that may be bugs, or due to lost events.
    #[serde(skip)]
    pub maybe_lost: u64,
    /// The kernel allocates objects of this cache in bulk.
    #[serde(skip)]
    pub is_bulk: bool,
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
