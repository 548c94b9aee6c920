//! Upper bounds on what a file may ask for.

/// Upper bounds on what a file may ask a reader for. See spec section "Limits".
///
/// Every value is a cap on something the bytes themselves claim, so that a hostile or damaged file cannot make a
/// reader allocate or loop beyond it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Length of one chunk, header and padding included, in bytes.
    pub chunk_len: u64,
    /// Decoded length of the body of one event chunk, in bytes.
    pub event_body_len: u64,
    /// Decoded length of the body of one chunk without events, in bytes.
    pub decoded_len: u64,
    /// Bytes that an incremental reader keeps of event chunks whose classes have not come yet.
    pub held_back: u64,
    /// Records in one event chunk.
    pub records: u32,
    /// Descriptors, and contexts, in one event chunk.
    pub descriptors: u32,
    /// Streams (CPUs) in a file.
    pub streams: u32,
    /// Event classes in a file.
    pub classes: u32,
    /// Shapes in a file.
    pub shapes: u32,
    /// Fields of one event class, common fields included.
    pub fields: u32,
    /// Chunks in a file.
    pub chunks: u64,
    /// Damaged places that a reader lists before it stops listing and only counts.
    pub damages: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            chunk_len: 1 << 30,
            event_body_len: 64 << 20,
            decoded_len: 256 << 20,
            held_back: 64 << 20,
            records: 1 << 24,
            descriptors: 65_520,
            streams: 65_536,
            classes: 65_520,
            shapes: 65_520,
            fields: 256,
            chunks: 1 << 32,
            damages: 1_000,
        }
    }
}
