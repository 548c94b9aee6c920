//! Messages of other projects' protocol buffers, as far as they are written here.

pub mod perfetto;
pub mod pprof;
