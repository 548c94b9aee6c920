//! Names of things of the kernel, as every output has them: one name for each thing, decided here.
//!
//! | thing | name | decided in |
//! |---|---|---|
//! | address of code | function, offset and module as the kernel prints them | `symbols` |
//! | function | a symbol without its offset, with its module | `functions` |
//! | module | in brackets; the core kernel is one | `modules` |
//! | cache | by its events; of kmalloc by the size; `?` and the size where no event names it | `caches`, `size_classes` |
//! | task | its name and id | `tasks` |
//!
//! A shown name is escaped once ([`kmt_common::text::escaped`]), here, for screens, JSON and exports alike: escaping it again
//! changes nothing. Conditions (`--where`) accept the shown name beside the name that the kernel has. Names over time (a task
//! that was renamed) are in [`comms`](super::comms), paths in [`cgroups`](super::cgroups); places in source files are in
//! `source`.

mod caches;
mod functions;
mod modules;
mod size_classes;
mod symbols;
mod tasks;

pub use caches::{CacheKey, OLDER_KMALLOC, cache_name, nameless, names_of_cache};
pub use functions::{function_and_module, function_of, without_size};
pub use modules::{module_of, names_of_module};
pub use size_classes::{SizeClasses, in_k, is_kmalloc, is_of_pages, names_of_size};
pub use symbols::Symbolizer;
pub use tasks::{task_in_message, task_name};
