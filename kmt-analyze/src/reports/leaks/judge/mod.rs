//! Memory that is still allocated, judged: which of it grows, in which families, and why the rest does not.
//!
//! Input is the collector `Growth`; `rules` has the verdicts, `slab` and `pages` apply them, `pinned` has what open files keep. The report `leaks` and findings take
//! the result.

pub mod evidence;
pub mod families;
pub mod judged;
pub mod kernel_names;
pub mod makers;
pub mod pages;
pub mod pinned;
mod rules;
pub mod slab;
pub mod survivors;
mod tasks;
pub mod user_memory;
pub mod verdict;
