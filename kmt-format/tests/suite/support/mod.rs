//! Code shared by the integration tests.
#![allow(dead_code)]

pub mod captures;
pub mod found;
pub mod lookups;
pub mod model;
pub mod naive;
pub mod naive_codecs;
pub mod naive_events;
pub mod naive_folds;
pub mod naive_lookups;
pub mod naive_metadata;
pub mod naive_opened;
pub mod naive_raw;
pub mod naive_recovery;
pub mod naive_scan;
pub mod recovered;
pub mod seeds;
pub mod skip;
pub mod stamp;
pub mod texts;
pub mod written;

/// Distance between the bytes of a file that tests damage, and between the defects that are tested: `KMT_STRIDE`, else 1. On an emulated machine that
/// takes minutes; an odd stride meets all kinds of places there.
pub fn stride() -> usize {
    let emulated = cfg!(any(target_arch = "s390x", target_arch = "arm"));
    std::env::var("KMT_STRIDE").map_or(if emulated { 13 } else { 1 }, |text| text.parse().unwrap())
}
