//! Order of the call sites.

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

impl LifetimeKey {
    /// Number of these lives; the larger one is the first. `None`: the name.
    pub fn number(self, lives: &CallerLives) -> Option<u128> {
        let quantile = |per_mille| lives.freed.quantile(per_mille).unwrap_or(0).into();
        Some(match self {
            Self::Count => lives.freed.count().into(),
            Self::P50 => quantile(500),
            Self::P90 => quantile(900),
            Self::P99 => quantile(990),
            Self::Max => lives.freed.max().unwrap_or(0).into(),
            Self::Bytes => lives.bytes_freed.into(),
            Self::ByteTime => lives.byte_time,
            Self::Live => lives.censored.into(),
            Self::Unseen => lives.implied_frees.into(),
            Self::Temporary => lives.temporary.into(),
            Self::TemporaryBytes => lives.bytes_temporary.into(),
            Self::Name => return None,
        })
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
