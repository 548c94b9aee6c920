//! Text that ftrace, trace-cmd and perf print of events: lines taken apart, and records made of them.
//!
//! Source: `trace_print_context` and its like, kernel/trace/trace_output.c 2.6.31 to 7.2.

mod args;
mod columns;
mod event;
mod format;
mod gfp;
mod graph;
mod known;
mod line;
mod look;
mod names;
mod shape;

pub use args::{Arg, fields_of};
pub use columns::Stamp;
pub use event::{Made, Refusal, Schema};
pub use gfp::GfpNames;
pub use graph::{Graph, GraphKind};
pub use line::{Event, Line, could_be_event, parse};
pub use look::Look;
pub use names::Symbols;
