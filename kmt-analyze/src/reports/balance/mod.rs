//! Rows and the screen of `balance`: MemTotal by account at two times, and what is in no account.
//!
//! The command, which reads recordings and saved texts, is in `crate::balance`.

mod holders;
mod pools;
mod rows;
mod text;

pub use pools::PagePoolRow;
pub use rows::{
    AccountHolderRow, AccountRow, BalanceRows, COLUMNS, FreeMemory, PageGroupRow, PageHolderRow, PageUseRow,
    PageUses, compute, of_end, of_recording,
};
pub use text::{free_sentence, screen};
