//! A change that would save the waste of a place, as a sentence.
//!
//! Objects that were rounded up: another size is advised only if the place asks for one size, or if one size has more than
//! half of its waste. A place that asks for many sizes gets no advice: they are lengths, of names for example.

use std::collections::BTreeSet;

use super::kinds::{PlaceSource, WastePlace, WorstRequest};
use crate::render::words::{count, counted};
use crate::reports::fragmentation::internal::WasteKind;
use crate::reports::fragmentation::occupancy::PinRow;
use crate::reports::fragmentation::slabs::{self, CacheTail, Traced};
use crate::stream::Api;
use crate::trace::names::SizeClasses;
use crate::trace::slabinfo;

/// Largest pages of a slab by default (slub_max_order is PAGE_ALLOC_COSTLY_ORDER, mm/slub.c 4.4 to 7.2).
const SLAB_PAGES_MAX: u64 = 8;

/// Smallest cache line: sizes that are no multiple of it have no such alignment.
const CACHE_LINE_MIN: u64 = 32;

/// Properties of the target that sizes depend on.
pub struct Target {
    page_size: u64,
    /// Alignment of objects: bytes of a word.
    word: u64,
    /// Sizes of kmalloc's classes.
    classes: BTreeSet<u64>,
    names: SizeClasses,
}

impl Target {
    /// That of a trace. Classes are those of /proc/slabinfo; without it, those of the allocations.
    pub fn of(traced: &Traced<'_, '_, '_>) -> Self {
        let analysis = traced.context.analysis;
        let caches = slabs::snapshot(traced).map(slabinfo::parse);
        let mut classes: BTreeSet<u64> =
            caches.iter().flat_map(|caches| caches.keys()).filter_map(|name| class_size(name)).collect();
        if classes.is_empty() {
            let sites = analysis.interner.sites.items().iter().filter(|site| site.api == Api::Kmalloc);
            classes = sites.map(|site| site.bytes_alloc).collect();
        }
        let word = traced.context.session.trace.header().long_size.max(1) as u64;
        Self { page_size: analysis.page_size.0, word, classes, names: analysis.size_classes }
    }

    /// The change for a place; `request` is the one that wastes most there. Empty: no one size has most of the waste.
    pub fn sentence(&self, place: &WastePlace<'_>, request: Option<&WorstRequest>) -> String {
        match (&place.source, request) {
            (PlaceSource::Tail(cache), _) => self.tail(cache),
            (PlaceSource::Sparse(row), _) => sparse(row),
            (PlaceSource::Rounding(_), Some(request)) => {
                let WorstRequest { req, alloc, sizes, has_most } = *request;
                if !has_most {
                    return String::new();
                }
                let change = match place.kind {
                    WasteKind::ClassRounding => self.class(req, alloc),
                    WasteKind::OrderRounding => self.order(req, alloc),
                    _ => self.alignment(req, alloc),
                };
                match sizes {
                    0 | 1 => change,
                    _ => {
                        format!("{change} This size has most of the waste of {} sizes.", count(sizes as u64))
                    }
                }
            }
            (PlaceSource::Rounding(..), None) => String::new(),
        }
    }

    fn in_words(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.word).saturating_mul(self.word)
    }

    /// A request that gets a size class: a smaller request if it is little above the next class, or a cache.
    fn class(&self, req: u64, alloc: u64) -> String {
        let class = self.names.name(alloc);
        let smaller = self.classes.range(..req).next_back().copied();
        let smaller = smaller.filter(|&class| req - class <= alloc.saturating_sub(class) / 4);
        let own = Some(self.in_words(req)).filter(|own| *own < alloc).map(count);
        let [size, allocated] = [req, alloc].map(count);
        match (smaller.map(count), own) {
            (Some(smaller), Some(own)) => format!(
                "Request {smaller} bytes instead of {size} ({class}), or use a cache of its own with objects of {own} bytes."
            ),
            (Some(smaller), None) => format!("Request {smaller} bytes instead of {size} ({class})."),
            (None, Some(own)) => {
                format!("Use a cache of its own with objects of {own} bytes instead of {class}.")
            }
            (None, None) => {
                format!("Little: {size} of {allocated} bytes are used, and objects are aligned to words.")
            }
        }
    }

    /// A request that gets whole pages.
    fn order(&self, req: u64, alloc: u64) -> String {
        let pages = req.div_ceil(self.page_size).saturating_mul(self.page_size);
        let [size, pages_size, allocated, half] = [req, pages, alloc, alloc / 2].map(count);
        if pages < alloc {
            format!(
                "Use alloc_pages_exact() or vmalloc() for {size} bytes: they take {pages_size} bytes instead of {allocated}."
            )
        } else {
            format!("Request {half} bytes or less instead of {size}: whole pages are already used.")
        }
    }

    /// An object that its cache rounds up.
    fn alignment(&self, req: u64, alloc: u64) -> String {
        let own = self.in_words(req);
        let [size, own_size, allocated, less] = [req, own, alloc, alloc.saturating_sub(self.word)].map(count);
        // SLUB puts the free pointer after an object that it must not overwrite (calculate_sizes(), mm/slub.c 4.4 to 7.2).
        let is_pointer = alloc.checked_sub(own) == Some(self.word);
        let cause = match (is_pointer, alloc % CACHE_LINE_MIN == 0) {
            (true, false) => "a constructor or SLAB_TYPESAFE_BY_RCU (free pointer after the object)",
            (true, true) => {
                "alignment (SLAB_HWCACHE_ALIGN), a constructor or SLAB_TYPESAFE_BY_RCU (free pointer after the object)"
            }
            (false, true) => "alignment (SLAB_HWCACHE_ALIGN), padding or debug data",
            (false, false) => "padding or debug data",
        };
        if own < alloc {
            format!("Without {cause}, an object takes {own_size} bytes instead of {allocated}.")
        } else {
            format!("Reduce the object from {size} to {less} bytes: sizes are rounded up to words.")
        }
    }

    /// Slabs of a cache: of another order, if it leaves at most half as much; else another size of objects.
    fn tail(&self, cache: &CacheTail) -> String {
        let orders = std::iter::successors(Some(1u64), |pages| Some(pages * 2));
        let orders = orders.take_while(|&pages| pages <= SLAB_PAGES_MAX);
        let per_object = |(tail, objects): (u64, u64)| u128::from(tail) * 1024 / u128::from(objects.max(1));
        let now = per_object((cache.tail_bytes_per_slab, cache.objects_per_slab));
        let of_order = |pages: u64| {
            let bytes = pages.saturating_mul(self.page_size);
            let objects = bytes.checked_div(cache.object_size).filter(|objects| *objects > 0)?;
            let tail = bytes - objects * cache.object_size;
            let share = per_object((tail, objects));
            (share.saturating_mul(2) <= now).then_some((share, pages, tail))
        };
        let a_page = |tail: u64, pages: u64| tail / pages.max(1);
        if let Some((_, pages, tail)) = orders.filter_map(of_order).min() {
            return format!(
                "Slabs of {} instead of {} waste {} a page instead of {}.",
                counted(pages, "page", "pages"),
                count(cache.pages_per_slab),
                counted(a_page(tail, pages), "byte", "bytes"),
                count(a_page(cache.tail_bytes_per_slab, cache.pages_per_slab))
            );
        }
        let size = count(cache.object_size);
        let bytes = cache.pages_per_slab.saturating_mul(self.page_size);
        let more = cache.objects_per_slab.saturating_add(1);
        let fits = bytes / more / self.word * self.word;
        if cache.cache.contains("kmalloc-") || fits == 0 {
            return format!(
                "No slab of up to {SLAB_PAGES_MAX} pages leaves half as much of objects of {size} bytes."
            );
        }
        format!(
            "Objects of {} bytes instead of {size}: {} in a slab instead of {}.",
            count(fits),
            count(more),
            count(cache.objects_per_slab)
        )
    }
}

/// Survivors of a call site on sparse slabs.
fn sparse(row: &PinRow) -> String {
    format!(
        "Free {} earlier, or keep them apart in a cache of their own: they hold {:.1} nearly empty slabs.",
        counted(row.sparse_objects, "object", "objects"),
        row.sparse_slabs
    )
}

/// Size of a class of kmalloc by its name: `kmalloc-96`, `kmalloc-1k`.
fn class_size(name: &str) -> Option<u64> {
    let size = name.strip_prefix("kmalloc-").filter(|size| size.starts_with(|c: char| c.is_ascii_digit()))?;
    kmt_common::quantity::size(size).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target() -> Target {
        let classes = [8, 16, 32, 64, 96, 128, 192, 256, 512, 1024, 2048, 4096, 8192].into_iter().collect();
        Target { page_size: 4096, word: 8, classes, names: SizeClasses::default() }
    }

    #[test]
    fn requests_little_above_a_class_are_made_smaller() {
        let target = target();
        assert_eq!(
            target.class(536, 1024),
            "Request 512 bytes instead of 536 (kmalloc-1k), or use a cache of its own with objects of 536 bytes."
        );
        assert_eq!(
            target.class(700, 1024),
            "Use a cache of its own with objects of 704 bytes instead of kmalloc-1k."
        );
        assert_eq!(target.class(9, 16), "Request 8 bytes instead of 9 (kmalloc-16).");
        assert!(target.class(60, 64).starts_with("Little: 60 of 64"));
    }

    #[test]
    fn whole_pages_are_those_that_the_request_needs() {
        let target = target();
        assert!(target.order(20_500, 32_768).ends_with("24,576 bytes instead of 32,768."));
        assert!(target.order(16_380, 16_384).starts_with("Request 8,192 bytes or less"));
    }

    #[test]
    fn caches_round_to_words_or_more() {
        let target = target();
        assert!(target.alignment(136, 192).contains("takes 136 bytes instead of 192"));
        assert!(target.alignment(96, 104).contains("SLAB_TYPESAFE_BY_RCU"));
        assert!(target.alignment(60, 64).starts_with("Reduce the object from 60 to 56 bytes"));
    }

    #[test]
    fn sizes_of_classes_are_in_their_names() {
        assert_eq!(
            ["kmalloc-96", "kmalloc-1k", "kmalloc-cg-64", "dentry"].map(class_size),
            [Some(96), Some(1024), None, None]
        );
    }
}
