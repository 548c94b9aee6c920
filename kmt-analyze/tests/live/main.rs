//! Tests of kmt-analyze on recordings of the running kernel: they need root and tracefs.

mod black_box;
mod findings;
mod frees;
mod lab;
mod memory;
mod percpu;
mod perf;
mod recording;
mod round;
#[path = "../support/mod.rs"]
mod support;
