//! Tests of kmt-analyze on recordings of the running kernel: they need root and tracefs.

mod findings;
mod frees;
mod lab;
mod memory;
mod perf;
mod recording;
mod round;
#[path = "../support/mod.rs"]
mod support;
