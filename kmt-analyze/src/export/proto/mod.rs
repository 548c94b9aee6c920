//! Protocol buffer messages of other projects, with the fields that are written here.

pub mod perfetto;
pub mod pprof;
