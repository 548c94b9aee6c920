//! Order of the call sites.

use crate::collect::lifetimes::CallerLives;
use crate::reports::common::sorting::SortKey;

/// Names that sort lifetimes; those of temporary objects need the report `temporary`.
pub const LIFETIMES: &[SortKey] = &[
    SortKey::Frees,
    SortKey::P50,
    SortKey::P90,
    SortKey::P99,
    SortKey::Max,
    SortKey::Freed,
    SortKey::ByteTime,
    SortKey::LiveCount,
    SortKey::ImpliedFrees,
    SortKey::Temporary,
    SortKey::TemporaryBytes,
    SortKey::Name,
];

/// Number of these lives; the larger one is the first. `None`: the name.
pub fn number(key: SortKey, lives: &CallerLives) -> Option<u128> {
    let quantile = |per_mille| lives.freed.quantile(per_mille).unwrap_or(0).into();
    Some(match key {
        SortKey::Frees => lives.freed.count().into(),
        SortKey::P50 => quantile(500),
        SortKey::P90 => quantile(900),
        SortKey::P99 => quantile(990),
        SortKey::Max => lives.freed.max().unwrap_or(0).into(),
        SortKey::Freed => lives.bytes_freed.into(),
        SortKey::ByteTime => lives.byte_time,
        SortKey::LiveCount => lives.censored.into(),
        SortKey::ImpliedFrees => lives.implied_frees.into(),
        SortKey::Temporary => lives.temporary.into(),
        SortKey::TemporaryBytes => lives.bytes_temporary.into(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_but_that_of_names_has_a_number() {
        let lives = CallerLives::default();
        for key in LIFETIMES {
            assert_eq!(number(*key, &lives).is_some(), *key != SortKey::Name, "{key:?}");
        }
    }
}
