//! Tests of kmt-analyze on captures: one program, so that what they share is linked once.

mod cli;
mod edit;
mod export;
mod honest;
mod hostile;
mod import;
mod model;
mod ranges;
mod reports;
mod stacks;
mod stalls;
#[path = "../support/mod.rs"]
mod support;
mod views;
