//! Kinds of waste, and the sum of each.

use serde::Serialize;

use super::wasted::Wasted;
use crate::reports::common::basis::Input;
use crate::reports::common::recorded_sums::RecordedSums;
use crate::reports::fragmentation::internal::WasteKind;
use crate::reports::fragmentation::occupancy;
use crate::reports::fragmentation::slabs::{self, Traced};
use crate::stream::Api;

impl WasteKind {
    /// Name of the kind on screens.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClassRounding => "class rounding",
            Self::OrderRounding => "order rounding",
            Self::CacheAlignment => "cache alignment",
            Self::SlabTail => "slab tail",
            Self::SparseSlabs => "sparse slabs",
        }
    }

    /// Interface of its objects; `None`: its bytes are not those of objects.
    pub fn api(self) -> Option<Api> {
        match self {
            Self::ClassRounding | Self::OrderRounding => Some(Api::Kmalloc),
            Self::CacheAlignment => Some(Api::Cache),
            Self::SlabTail | Self::SparseSlabs => None,
        }
    }

    /// Reason why numbers of it are unknown; `None`: all are known.
    pub fn unknown(self, traced: &Traced<'_, '_, '_>) -> Option<String> {
        let basis = traced.context.basis();
        match self {
            Self::ClassRounding | Self::OrderRounding => basis.lacks(Input::KmallocLives),
            Self::CacheAlignment => match RecordedSums::slab(basis, self.api()) {
                RecordedSums { allocs: false, .. } => {
                    Some("it needs kmem:kmem_cache_alloc, which was not recorded".to_owned())
                }
                RecordedSums { lives: false, .. } => basis.lacks(Input::SlabLives),
                RecordedSums { .. } => None,
            },
            Self::SlabTail => {
                slabs::snapshot(traced).is_none().then(|| "the file has no /proc/slabinfo".to_owned())
            }
            Self::SparseSlabs => occupancy::refusal(traced),
        }
    }
}

/// Waste of one kind.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct KindRow {
    /// `class rounding`, `order rounding`, `cache alignment`, `slab tail` or `sparse slabs`.
    pub kind: &'static str,
    /// Number of places that waste; `null`: not recorded.
    pub places_total: Option<u64>,
    /// Bytes wasted in all these places.
    #[serde(flatten)]
    pub wasted: Wasted,
    /// Reason why numbers of this kind are `null`; `null`: all that it has are known.
    pub unknown: Option<String>,
}
