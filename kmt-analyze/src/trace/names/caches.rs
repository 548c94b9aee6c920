//! Names of caches.
//!
//! An event of a cache names it (allocations since 6.18, frees since 5.12). kmalloc's caches are known by the size of an object.
//! A cache that no event names has a name by the requested size, which begins with `?`.

use std::borrow::Cow;

use kmt_common::text::escaped;

use super::size_classes::SizeClasses;

/// Identity of a cache in a trace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CacheKey {
    /// A size class of kmalloc, by bytes_alloc.
    Kmalloc(u64),
    /// A cache, by the name in events.
    Named(Vec<u8>),
    /// Caches that no event names, by bytes_req and bytes_alloc.
    Nameless(u64, u64),
}

impl CacheKey {
    /// The name that all outputs show, and that `--where cache=NAME` accepts.
    pub fn shown(&self, classes: SizeClasses) -> String {
        match self {
            Self::Kmalloc(size) => classes.name(*size),
            Self::Named(name) => cache_name(name),
            Self::Nameless(req, _) => nameless(*req),
        }
    }
}

/// Frees of objects that kmalloc allocated before the trace: their events have no size.
pub const OLDER_KMALLOC: &str = "? (kfree of older objects)";

/// Shown name of a cache that events name.
pub fn cache_name(name: &[u8]) -> String {
    escaped(name)
}

/// Shown name of a cache that no event names.
pub fn nameless(bytes_req: u64) -> String {
    format!("? ({bytes_req} byte objects)")
}

/// Names of a cache in conditions: that of its events, and the shown one.
pub fn names_of_cache(name: &[u8]) -> [Cow<'_, [u8]>; 2] {
    [Cow::Borrowed(name), Cow::Owned(cache_name(name).into_bytes())]
}

#[cfg(test)]
mod tests {
    use super::super::names_of_size;
    use super::*;

    #[test]
    fn shown_names_are_on_one_line() {
        let shown = |key: CacheKey| key.shown(SizeClasses::default());
        assert_eq!(shown(CacheKey::Kmalloc(96)), "kmalloc-96");
        assert_eq!(shown(CacheKey::Kmalloc(16_384)), "kmalloc-16k");
        assert_eq!(shown(CacheKey::Named(b"dentry".to_vec())), "dentry");
        assert_eq!(shown(CacheKey::Named(b"a\x1b\n\xff".to_vec())), "a\\x1b\\x0a\\xff");
        assert_eq!(shown(CacheKey::Nameless(576, 608)), "? (576 byte objects)");
    }

    #[test]
    fn conditions_accept_what_is_shown() {
        for classes in [SizeClasses::default(), SizeClasses::before_4_19()] {
            for size in (3..=25).map(|bits| 1u64 << bits).chain([96, 192, 12_288]) {
                let shown = CacheKey::Kmalloc(size).shown(classes);
                assert!(names_of_size(size, b"GFP_KERNEL").contains(&shown), "{shown}");
                // A comma separates the names of a condition.
                assert!(!shown.contains(',') && !nameless(size).contains(','), "{shown}");
            }
        }
        for name in [&b"dentry"[..], b"a\x1bb", b"\xff"] {
            let names = names_of_cache(name);
            assert!(names.contains(&Cow::Borrowed(name)));
            assert!(names.contains(&Cow::Owned(cache_name(name).into_bytes())));
        }
    }
}
