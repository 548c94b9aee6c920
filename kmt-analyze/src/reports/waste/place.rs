//! A place where memory is wasted, before its row is made.

use crate::reports::common::symbol::Symbol;
use crate::reports::fragmentation::internal::{InternalPlace, WasteKind};
use crate::reports::fragmentation::occupancy::PinRow;
use crate::reports::fragmentation::slabs::CacheTail;

use super::wasted::Wasted;

/// Source of a place.
pub enum PlaceSource<'t> {
    /// Objects that were rounded up.
    Rounding(InternalPlace<'t>),
    /// Slabs of a cache.
    Tail(Box<CacheTail>),
    /// Survivors of a call site on sparse slabs.
    Sparse(Box<PinRow>),
}

/// A place where memory is wasted.
pub struct WastePlace<'t> {
    /// Kind of its waste.
    pub kind: WasteKind,
    /// Address of the call site; `None`: the place is a cache.
    pub call_site: Option<u64>,
    /// Call site, or the name of the cache.
    pub name: Symbol,
    /// Bytes and objects wasted in the place.
    pub wasted: Wasted,
    /// Source of these numbers.
    pub source: PlaceSource<'t>,
}

impl WastePlace<'_> {
    /// `kmalloc` or `cache`; `None`: slabs of a cache.
    pub fn api(&self) -> Option<&'static str> {
        match &self.source {
            PlaceSource::Sparse(row) => Some(row.api),
            PlaceSource::Rounding(..) | PlaceSource::Tail(_) => self.kind.api().map(|api| api.name()),
        }
    }
}
