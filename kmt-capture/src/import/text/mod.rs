//! Text that ftrace, trace-cmd and perf print of events: lines taken apart, and records made of them.
//!
//! Source: `trace_print_context` and its like, kernel/trace/trace_output.c 2.6.31 to 7.2.

mod args;
mod columns;
mod event;
mod fields;
mod format;
mod frame;
mod gfp;
mod graph;
#[cfg(test)]
mod hostile_names;
mod layout;
mod line;
mod line_types;
mod missing;
mod names;
mod notation;
mod perf_record;
mod prefix;
mod prefix_times;
mod prefix_words;
mod readings;
mod shape;
mod survey;
mod torn;
mod value;
mod verbose;

pub use args::Arg;
pub use columns::Stamp;
pub use event::{RecordLayout, Schema, Unrecordable};
pub use fields::{event_name, fields_of};
pub(super) use format::{escape, system_of};
pub use gfp::GfpNames;
pub use layout::TextLayout;
pub use line::parse;
pub use line_types::{CPUS_MAX, Comm, EntryCounts, Graph, GraphKind, NO_TASK, Parsed, TextEvent, TextLine};
pub use missing::missing;
pub use names::NamedSymbols;
pub use notation::Notations;
pub use survey::TextSurvey;
pub use torn::could_be_event;
pub(super) use value::has_size;
