//! From numbers to text.

pub mod head;
pub mod kernel_line;
pub mod look;
pub mod out;
pub mod screen;
pub mod words;
