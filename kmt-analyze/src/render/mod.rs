//! From numbers to text.

pub mod head;
pub mod json;
pub mod kernel_line;
pub mod out;
pub mod table;
pub mod text;
