//! Columns in memory as Apache Arrow lays them out, handed over by its C data interface.
//!
//! By hand: three structures of C and a handful of buffers. <https://arrow.apache.org/docs/format/CDataInterface.html>

pub mod column;
pub mod data;
pub mod ffi;
pub mod plan;
pub mod stream;
