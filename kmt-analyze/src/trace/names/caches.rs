//! Names of caches and of the target's kmalloc size classes.
//!
//! An event of a cache names it (allocations since 6.18, frees since 5.12). kmalloc's caches are known by the size of an object.
//! A cache that no event names has a name by the requested size, which begins with `?`.

use std::borrow::Cow;

use kmt_common::text::escaped;
use kmt_format::kernel::KernelVersion;
use kmt_format::read::Trace;

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

/// Style of names of large size classes: `kmalloc-1k` since Linux 4.19 (mm/slab_common.c, kmalloc_info), `kmalloc-1024`
/// before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeClasses {
    in_k: bool,
}

/// Style of current kernels.
impl Default for SizeClasses {
    fn default() -> Self {
        Self { in_k: true }
    }
}

impl SizeClasses {
    /// Style in the target's /proc/slabinfo; without it, that of its release.
    pub fn of(trace: &Trace<'_>) -> Self {
        let metadata = trace.metadata();
        let slabinfo =
            ["slabinfo.before", "slabinfo.after"].iter().find_map(|name| metadata.attachment(name));
        let has =
            |text: &[u8], name: &str| text.split(|&b| b == b'\n').any(|l| l.starts_with(name.as_bytes()));
        let in_k = match slabinfo {
            Some(text) if has(text, "kmalloc-1k ") => Some(true),
            Some(text) if has(text, "kmalloc-1024 ") => Some(false),
            _ => metadata.kernel_version().map(|version| version >= KernelVersion::new(4, 19)),
        };
        in_k.map_or(Self::default(), |in_k| Self { in_k })
    }

    /// Style of kernels before Linux 4.19.
    #[cfg(test)]
    pub fn before_4_19() -> Self {
        Self { in_k: false }
    }

    /// The style of several traces; where they differ, that of current kernels.
    pub fn shared(all: impl IntoIterator<Item = Self>) -> Self {
        let mut all = all.into_iter();
        let first = all.next().unwrap_or_default();
        if all.all(|other| other == first) { first } else { Self::default() }
    }

    /// Class of objects of this size. SLUB has no caches above two pages ([`is_of_pages`]); whole pages have the names that
    /// caches of that size would have.
    pub fn name(self, bytes_alloc: u64) -> String {
        format!("kmalloc-{}", if self.in_k { in_k(bytes_alloc) } else { bytes_alloc.to_string() })
    }
}

/// True if kmalloc takes whole pages for objects of this size (KMALLOC_MAX_CACHE_SIZE, include/linux/slab.h, SLUB).
pub fn is_of_pages(bytes_alloc: u64, page_size: u64) -> bool {
    bytes_alloc > page_size.saturating_mul(2)
}

/// A size as `kmalloc_info` writes it: 512, 1k, 2M.
pub fn in_k(bytes: u64) -> String {
    match bytes {
        _ if bytes >= 1 << 20 && bytes % (1 << 20) == 0 => format!("{}M", bytes >> 20),
        _ if bytes >= 1024 && bytes % 1024 == 0 => format!("{}k", bytes >> 10),
        _ => bytes.to_string(),
    }
}

/// Names of the cache of a kmalloc: `kmalloc-1024`, or as kernels print it, `kmalloc-1k`, `kmalloc-cg-1k`,
/// `kmalloc-rcl-1k` or `dma-kmalloc-1k` by the flags, as the kernel prints them (kmalloc_type(), include/linux/slab.h).
pub fn names_of_size(bytes_alloc: u64, gfp_flags: &[u8]) -> Vec<String> {
    let kernel = in_k(bytes_alloc);
    let has = |name: &str| gfp_flags.split(|&b| b == b'|').any(|flag| flag == name.as_bytes());
    let mut names = vec![format!("kmalloc-{bytes_alloc}"), format!("kmalloc-{kernel}")];
    if has("__GFP_ACCOUNT") || has("GFP_KERNEL_ACCOUNT") {
        names.push(format!("kmalloc-cg-{kernel}"));
    }
    if has("__GFP_RECLAIMABLE") {
        names.push(format!("kmalloc-rcl-{kernel}"));
    }
    if has("GFP_DMA") || has("__GFP_DMA") {
        names.push(format!("dma-kmalloc-{kernel}"));
    }
    names
}

/// True for a cache of kmalloc.
pub fn is_kmalloc(name: &[u8]) -> bool {
    let rest = name.strip_prefix(b"dma-").unwrap_or(name);
    let rest = rest.strip_prefix(b"kmalloc-").unwrap_or_default();
    let is_known = |part: &[u8]| {
        let size = part.strip_suffix(b"k").or_else(|| part.strip_suffix(b"M")).unwrap_or(part);
        let is_number = !size.is_empty() && size.iter().all(u8::is_ascii_digit);
        is_number || matches!(part, b"rcl" | b"cg" | b"rnd" | b"no" | b"objext")
    };
    !rest.is_empty() && rest.split(|&b| b == b'-').all(is_known)
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

    #[test]
    fn classes_are_called_as_the_target_does() {
        let names = |classes: SizeClasses| [96, 1024, 1 << 21].map(|size| classes.name(size));
        assert_eq!(names(SizeClasses::default()), ["kmalloc-96", "kmalloc-1k", "kmalloc-2M"]);
        assert_eq!(names(SizeClasses::before_4_19()), ["kmalloc-96", "kmalloc-1024", "kmalloc-2097152"]);
    }

    #[test]
    fn traces_of_one_style_keep_it() {
        let (new, old) = (SizeClasses::default(), SizeClasses::before_4_19());
        assert_eq!(SizeClasses::shared([old, old]), old);
        assert_eq!(SizeClasses::shared([old, new]), new);
        assert_eq!(SizeClasses::shared([]), new);
    }
}
