//! Text that ftrace, trace-cmd and perf print of events: lines taken apart, and records made of them.
//!
//! Source: `trace_print_context` and its like, kernel/trace/trace_output.c 2.6.31 to 7.2.

mod args;
mod event;
mod gfp;
mod line;
mod look;
mod names;

pub use args::{Arg, args};
pub use event::{Made, Refusal, Schema};
pub use gfp::GfpNames;
pub use line::{Event, Line, Stamp, parse};
pub use look::Look;
pub use names::Symbols;
