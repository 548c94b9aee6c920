//! From numbers to text.
//!
//! Words of numbers (`words`), display options (`look`), the layout of screens (`screen`), JSON and standard output
//! (`out`), heads of documents (`head`), and lines of events as the kernel prints them (`kernel_line`). Reports and
//! commands use them; nothing here reads a trace's events.

pub mod head;
pub mod kernel_line;
pub mod look;
pub mod out;
pub mod screen;
pub mod words;
