//! Memory that is still allocated, judged: which of it grows, in which families, and why the rest does not.

pub mod caches;
mod course;
pub mod evidence;
pub mod families;
pub mod ignore;
pub mod judged;
pub mod kept;
mod kernel_names;
pub mod makers;
pub mod page_survivals;
pub mod pages;
mod part;
mod reclaimable;
mod rules;
pub mod slab;
pub mod stacks;
mod steady;
mod tasks;
mod telling;
mod together;
pub mod until;
pub mod verdict;
