//! Files that other tools recorded, taken apart: pure functions over bytes, without I/O.
//!
//! Nothing here panics on what a file holds, and nothing allocates more than a file's own length gives reason for
//! ([`Bounds`]; compressed parts together: [`inflated_max`]). Errors are an
//! [`ImportError`]: an offset, and the error there in words.

mod bounds;
mod cursor;
mod inflate;
pub mod perf_data;
pub mod perfetto;
#[cfg(test)]
mod tests;
pub mod text;
pub mod trace_dat;
mod tracing_data;

pub use bounds::Bounds;
pub use cursor::{Cursor, ImportError, Result};
pub use inflate::{Codec, Inflating, inflated_max};
pub use tracing_data::{Start, TracingData};

/// True if this build reads parts compressed with zstd.
pub const READS_ZSTD: bool = cfg!(feature = "zstd");

/// Kinds of input files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// .kmt
    Kmt,
    /// trace-cmd's trace.dat.
    TraceDat,
    /// perf's perf.data.
    PerfData,
    /// Perfetto's trace.
    Perfetto,
    /// Text, maybe of ftrace.
    Text,
    /// None of these.
    Unknown,
}

impl Kind {
    /// Tells from the first bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let start = bytes.get(..bytes.len().min(4096)).unwrap_or_default();
        if start.starts_with(&kmt_format::raw::MAGIC) {
            Self::Kmt
        } else if start.starts_with(tracing_data::MAGIC) {
            Self::TraceDat
        } else if start.starts_with(b"PERFILE2") || start.starts_with(b"2ELIFREP") {
            Self::PerfData
        } else if perfetto::is_trace(start) {
            Self::Perfetto
        } else if !start.is_empty() && !start.contains(&0) {
            Self::Text
        } else {
            Self::Unknown
        }
    }
}
