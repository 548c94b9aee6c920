//! Tests of kmt-analyze on captures: one program, so that what they share is linked once.

mod anonymize;
mod attack;
mod cli;
mod edit;
mod ended;
mod escaping;
mod export;
mod fuzz_seeds;
mod honest;
mod hostile;
mod import;
mod later;
mod library;
mod model;
mod properties;
mod ranges;
mod registry;
mod reports;
mod stacks;
mod stalls;
#[path = "../support/mod.rs"]
mod support;
mod symbols;
mod views;
