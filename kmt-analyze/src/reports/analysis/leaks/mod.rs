//! Memory that is still allocated, judged: which of it grows, in which families, and why the rest does not.

pub mod caches;
pub mod evidence;
pub mod families;
mod family_grouping;
mod family_leader;
pub mod ignore;
pub mod judged;
mod judged_part;
mod kernel_names;
pub mod makers;
pub mod page_flags;
pub mod page_survivals;
pub mod pages;
mod reclaimable;
mod rules;
pub mod slab;
pub mod stacks;
mod steady;
mod survivor_curves;
mod tasks;
pub mod verdict;
