//! Order of the call sites.

use std::cmp::Reverse;

use super::sites::AllocSite;

/// Keys of the order of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LifetimeKey {
    /// Objects that were freed
    Count,
    /// Half of them lived that long at most
    P50,
    /// Nine of ten
    P90,
    /// 99 of 100
    P99,
    /// The longest life
    Max,
    /// Bytes that were freed
    Bytes,
    /// Bytes times time
    ByteTime,
    /// Objects that go on
    Live,
    /// Objects freed unseen
    Unseen,
    /// Objects freed almost at once
    Temporary,
    /// Bytes of those
    TemporaryBytes,
    /// Name
    Name,
}

/// Sorts by these keys, the largest numbers first, then by name.
pub fn sort(sites: &mut [AllocSite<'_>], keys: &[LifetimeKey]) {
    sites.sort_by_cached_key(|site| {
        let keys = keys.iter().take_while(|&&key| key != LifetimeKey::Name);
        let numbers: Vec<_> = keys.map(|&key| Reverse(number(site, key))).collect();
        (numbers, site.symbol.clone())
    });
}

fn number(site: &AllocSite<'_>, key: LifetimeKey) -> u128 {
    let lives = site.lives;
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
        LifetimeKey::Unseen => lives.unseen.into(),
        LifetimeKey::Temporary => lives.temporary.into(),
        LifetimeKey::TemporaryBytes => lives.bytes_temporary.into(),
        LifetimeKey::Name => 0,
    }
}
