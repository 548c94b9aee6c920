//! Files made from files: recovery of what a damaged one still holds, other codecs, chunks appended, one file
//! of the files of one recording.

mod append;
mod join;
mod joined_facts;
mod loss_alone;
mod plan;
mod rewrite;
mod salvage;
mod scan;

pub use join::Join;
pub use rewrite::{Recovery, Rewrite, RewriteOptions};
