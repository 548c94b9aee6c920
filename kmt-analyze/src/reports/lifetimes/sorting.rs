//! Order of the call sites.

use std::cmp::Reverse;

use crate::collect::lifetimes::CallerLives;

/// Key of the order of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LifetimeKey {
    /// Freed objects
    #[value(name = "frees", aliases = ["count", "n"])]
    Count,
    /// Median lifetime
    P50,
    /// 90th percentile of the lifetimes
    P90,
    /// 99th percentile of the lifetimes
    P99,
    /// Longest lifetime
    Max,
    /// Freed bytes
    #[value(name = "bytes", alias = "bytes_freed")]
    Bytes,
    /// Bytes x lifetime
    #[value(name = "byte-time", alias = "byte_time")]
    ByteTime,
    /// Objects that are still allocated
    #[value(name = "still_allocated", aliases = ["live", "censored"])]
    Live,
    /// Implied frees
    #[value(name = "implied_frees", aliases = ["unseen", "freed_unseen"])]
    Unseen,
    /// Temporary objects
    Temporary,
    /// Bytes of temporary objects
    TemporaryBytes,
    /// Name
    #[value(name = "name", aliases = ["call_site", "symbol"])]
    Name,
}

/// Sorts by these keys, the largest numbers first, then by name.
pub fn sort<R>(rows: &mut [R], keys: &[LifetimeKey], of: impl Fn(&R) -> (&CallerLives, &str)) {
    rows.sort_by_cached_key(|row| {
        let (lives, name) = of(row);
        let keys = keys.iter().take_while(|&&key| key != LifetimeKey::Name);
        let numbers: Vec<_> = keys.map(|&key| Reverse(number(lives, key))).collect();
        (numbers, name.to_owned())
    });
}

fn number(lives: &CallerLives, key: LifetimeKey) -> u128 {
    let quantile = |per_mille| lives.freed.quantile(per_mille).unwrap_or(0).into();
    match key {
        LifetimeKey::Count => lives.freed.count().into(),
        LifetimeKey::P50 => quantile(500),
        LifetimeKey::P90 => quantile(900),
        LifetimeKey::P99 => quantile(990),
        LifetimeKey::Max => lives.freed.max().unwrap_or(0).into(),
        LifetimeKey::Bytes => lives.bytes_freed.into(),
        LifetimeKey::ByteTime => lives.byte_time,
        LifetimeKey::Live => lives.censored.into(),
        LifetimeKey::Unseen => lives.implied_frees.into(),
        LifetimeKey::Temporary => lives.temporary.into(),
        LifetimeKey::TemporaryBytes => lives.bytes_temporary.into(),
        LifetimeKey::Name => 0,
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn headings_json_keys_and_former_keys_sort() {
        for (heading, aliases) in [
            ("frees", &["count", "n"][..]),
            ("p50", &[]),
            ("p90", &[]),
            ("p99", &[]),
            ("max", &[]),
            ("bytes", &["bytes_freed"]),
            ("byte-time", &["byte_time"]),
            ("still_allocated", &["live", "censored"]),
            ("implied_frees", &["unseen", "freed_unseen"]),
            ("name", &["call_site", "symbol"]),
        ] {
            let key = LifetimeKey::from_str(heading, false);
            assert!(key.is_ok(), "{heading}");
            for alias in aliases {
                assert_eq!(LifetimeKey::from_str(alias, false), key, "{alias}");
            }
        }
    }
}
