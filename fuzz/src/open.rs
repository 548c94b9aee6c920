//! Any bytes as a file: no panic, no endless loop.

use kmt_format::Limits;
use kmt_format::read::Trace;

use super::look;

/// Limits that keep a run short.
pub fn limits() -> Limits {
    Limits::default().event_body_len(1 << 22).decoded_len(1 << 22).chunk_len(1 << 24)
}

pub fn run(data: &[u8]) {
    if let Ok(trace) = Trace::builder().limits(limits()).open(data) {
        look::at(&trace);
    }
}
