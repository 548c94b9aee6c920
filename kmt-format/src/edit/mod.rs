//! Files made from files: recovery of what a damaged one still holds, other codecs, chunks appended, one file
//! of the files of one recording.

mod append;
mod besides;
mod join;
mod joined_facts;
mod loss_alone;
mod plan;
mod rewrite;
mod salvage;
mod scan;

pub use besides::copy_besides_events;
pub use join::Join;
pub use rewrite::{Recovery, Rewrite, RewriteOptions};
