//! Order of the rows of areas.

use crate::collect::area_groups::AreaTotals;
use crate::reports::common::sorting::SortKey;

/// Names that sort areas.
pub const AREA_SUMS: &[SortKey] = &[
    SortKey::Count,
    SortKey::Failed,
    SortKey::Req,
    SortKey::Alloc,
    SortKey::Freed,
    SortKey::LiveAreas,
    SortKey::Live,
    SortKey::Uncertain,
    SortKey::Name,
];

/// Number of these sums; the larger one is the first. `None`: the name.
pub fn number(key: SortKey, sums: &AreaTotals) -> Option<u128> {
    let with = |first: u64, second: u64| Some(u128::from(first) << 64 | u128::from(second));
    match key {
        SortKey::Count => with(sums.alloc_events, 0),
        SortKey::Failed => with(sums.alloc_failures, 0),
        SortKey::Req => with(sums.bytes_req, 0),
        SortKey::Alloc => with(sums.bytes_alloc, sums.bytes_req),
        SortKey::Freed => with(sums.bytes_freed, sums.freed),
        SortKey::LiveAreas => with(sums.live, 0),
        SortKey::Live => with(sums.bytes_live, sums.bytes_req_live),
        SortKey::Uncertain => with(sums.uncertain, 0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_sorts_by_its_heading() {
        let headings = super::super::text::SUMS.iter().map(|column| column.heading).chain(["uncertain"]);
        for heading in headings {
            let key = SortKey::named(&heading.replace(' ', "_"));
            assert!(key.is_some_and(|key| AREA_SUMS.contains(&key)), "{heading}");
        }
    }
}
