//! From numbers to text.

pub mod json;
pub mod kernel_line;
pub mod table;
pub mod text;
