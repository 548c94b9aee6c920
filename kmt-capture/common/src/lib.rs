//! Shared code of kmt-capture and kmt-analyze: failures and exit codes, output files, .kmt files that are written, mapped
//! input, the option `--compress`, reports on damaged files, and the end of the program by a signal or without memory.
//! Internal: it has no promise of compatibility.

// They panic where the stream cannot be written; `message!`, `tell!` and `Out` do not.
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

pub mod allocators;
pub mod compress;
pub mod direct_map;
pub mod early_end;
pub mod failure;
pub mod file_size;
pub mod folder;
pub mod foreign;
mod holes;
pub mod input;
pub mod interrupt;
pub mod kernel_stacks;
pub mod kmt_file;
pub mod manual;
pub mod mapping;
pub mod out_of_memory;
pub mod output;
pub mod programs;
pub mod quantity;
pub mod reclaimable;
pub mod recording;
pub mod recovery;
pub mod setting_change;
pub mod shell;
pub mod survivors;
pub mod terminal;
pub mod text;
pub mod unseen_allocs;
pub mod unseen_frees;
pub mod usage;
pub mod version;
pub mod watch;
