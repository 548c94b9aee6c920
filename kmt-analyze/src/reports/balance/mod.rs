//! Rows and the screen of `balance`: MemTotal by account at two times, and what is in no account.
//!
//! The command, which reads recordings and saved texts, is in `crate::balance`.

mod free;
mod freed;
mod holders;
mod page_use;
mod rows;
mod sentence;
mod text;
mod traced;

pub use free::{FreeChange, FreeMemory, FreeShown};
pub use freed::FreedPart;
pub use rows::{BalanceRows, COLUMNS, PagePoolRow, SLAB_RECORD, compute, of_end, of_recording};
pub use sentence::{free_moved, free_sentence, without_lists};
pub use text::screen;
pub use traced::{holders_of_growth, pages};
