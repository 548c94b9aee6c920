//! A place where memory is wasted, before its row is made.

use crate::reports::common::symbol::Symbol;
use crate::reports::fragmentation::internal_sums::{InternalKind, InternalPlace};
use crate::reports::fragmentation::pinned::PinRow;
use crate::reports::fragmentation::slabs::CacheTail;

use super::kinds::WasteKind;
use super::wasted::Wasted;

/// Source of a place.
pub enum PlaceSource<'t> {
    /// Objects that were rounded up.
    Rounding(InternalKind, InternalPlace<'t>),
    /// Slabs of a cache.
    Tail(Box<CacheTail>),
    /// Survivors of a call site on sparse slabs.
    Sparse(Box<PinRow>),
}

/// A place where memory is wasted.
pub struct WastePlace<'t> {
    /// Its call site, or the name of its cache.
    pub name: Symbol,
    /// Its numbers.
    pub wasted: Wasted,
    pub source: PlaceSource<'t>,
}

impl WastePlace<'_> {
    /// Kind of its waste.
    pub fn kind(&self) -> WasteKind {
        match &self.source {
            PlaceSource::Rounding(kind, _) => WasteKind::of(*kind),
            PlaceSource::Tail(_) => WasteKind::SlabTail,
            PlaceSource::Sparse(_) => WasteKind::SparseSlabs,
        }
    }

    /// Address of its call site; `None`: it is a cache.
    pub fn call_site(&self) -> Option<u64> {
        match &self.source {
            PlaceSource::Rounding(_, InternalPlace::CallSite(address)) => Some(*address),
            PlaceSource::Rounding(_, InternalPlace::Cache(_)) | PlaceSource::Tail(_) => None,
            PlaceSource::Sparse(row) => Some(row.call_site.0),
        }
    }

    /// `kmalloc` or `cache`; `None`: slabs of a cache.
    pub fn api(&self) -> Option<&'static str> {
        match &self.source {
            PlaceSource::Sparse(row) => Some(row.api),
            PlaceSource::Rounding(..) | PlaceSource::Tail(_) => self.kind().api().map(|api| api.name()),
        }
    }
}
