//! Items that were numbered since the last operations: those who read operations have their own tables of them.

use indexmap::set::Slice;

use super::intern::{FreeSite, Interner, Origin, PageSite, Site};
use super::side_events::SideNumbers;

/// An item of the tables that a selection decides on.
#[derive(Debug, Clone, Copy)]
pub enum Item<'i> {
    /// A site of slab allocations.
    Site(&'i Site),
    /// A kind of page allocations.
    Pages(&'i PageSite),
    /// A CPU, task and level.
    Origin(&'i Origin),
}

/// Decides whether an item is selected: once, when it is numbered.
pub type Select<'s> = &'s mut (dyn FnMut(&Interner, Item<'_>) -> bool + Send);

/// New items in the order of their numbers, and whether they are selected; fields of new side events.
#[derive(Debug, Default)]
pub struct NewItems {
    /// Sites of slab allocations.
    pub sites: Vec<(Site, bool)>,
    /// Sites of slab frees.
    pub frees: Vec<FreeSite>,
    /// Kinds of page allocations.
    pub pages: Vec<(PageSite, bool)>,
    /// CPUs, tasks and levels.
    pub origins: Vec<(Origin, bool)>,
    /// Fields of side events, by the value of their operation.
    pub side_numbers: Vec<(u64, SideNumbers)>,
}

impl NewItems {
    /// All items of the tables, with what was decided about them.
    pub fn all(interner: &Interner) -> Self {
        fn with<T: Copy>(items: &Slice<T>, selected: &[bool]) -> Vec<(T, bool)> {
            items.iter().copied().zip(selected.iter().copied().chain(std::iter::repeat(true))).collect()
        }
        Self {
            sites: with(interner.sites.items(), &interner.selected.sites),
            frees: interner.frees.items().iter().copied().collect(),
            pages: with(interner.pages.items(), &interner.selected.pages),
            origins: with(interner.origins.items(), &interner.selected.origins),
            side_numbers: Vec::new(),
        }
    }

    /// Adds later items.
    pub fn append(&mut self, mut later: Self) {
        self.sites.append(&mut later.sites);
        self.frees.append(&mut later.frees);
        self.pages.append(&mut later.pages);
        self.origins.append(&mut later.origins);
        self.side_numbers.append(&mut later.side_numbers);
    }
}
