//! The allocators of areas.

use std::fmt::Debug;

use crate::collect::AreaKind;

/// An allocator of areas.
pub trait Allocator: Debug + Send + Sync + 'static {
    /// Kind of the allocator's events.
    const KIND: AreaKind;
    /// The command.
    const NAME: &'static str;
    /// Heading in the text of `all`.
    const TITLE: &'static str;
    /// Description in the list of commands.
    const ABOUT: &'static str;
    /// Areas of the allocator in sentences: one, several.
    const NOUNS: [&'static str; 2];
}

/// vmalloc, vmap, ioremap, kernel stacks.
#[derive(Debug)]
pub struct Vmalloc;

/// The percpu allocator.
#[derive(Debug)]
pub struct Percpu;

impl Allocator for Vmalloc {
    const KIND: AreaKind = AreaKind::Vmalloc;
    const NAME: &'static str = "vmalloc";
    const TITLE: &'static str = "vmalloc areas";
    const ABOUT: &'static str = "vmalloc areas by call site, beside /proc/vmallocinfo";
    const NOUNS: [&'static str; 2] = ["vmalloc area", "vmalloc areas"];
}

impl Allocator for Percpu {
    const KIND: AreaKind = AreaKind::Percpu;
    const NAME: &'static str = "percpu";
    const TITLE: &'static str = "percpu allocations";
    const ABOUT: &'static str = "Percpu allocations by call site, beside /proc/meminfo";
    const NOUNS: [&'static str; 2] = ["percpu allocation", "percpu allocations"];
}
