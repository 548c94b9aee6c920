//! From numbers to text.

pub mod head;
pub mod kernel_line;
pub mod look;
pub mod look_args;
pub mod lossy_output;
pub mod nothing;
pub mod out;
pub mod screen;
pub mod terminal;
pub mod text;
pub mod words;
