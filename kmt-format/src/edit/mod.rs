//! Files made from files: recovery of what a damaged one still holds, other codecs, chunks appended.

mod append;
mod loss_alone;
mod plan;
mod rewrite;
mod salvage;
mod scan;

pub use rewrite::{Recovery, Rewrite, RewriteOptions};
