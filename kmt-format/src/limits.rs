//! Upper bounds on what a file may ask for.

use crate::error::{Error, ErrorKind};

/// Upper bounds on what a file may ask a reader for. See spec section "Limits".
///
/// Every value is a cap on something the bytes themselves claim, so that a hostile or damaged file cannot make a
/// reader allocate or loop beyond it.
///
/// ```
/// use kmt_format::Limits;
///
/// let limits = Limits::default().chunks(10_000).metadata(16 << 20);
/// assert_eq!(limits.chunks, 10_000);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Length of one chunk, header and padding included, in bytes.
    pub chunk_len: u64,
    /// Decoded length of the body of one event chunk, in bytes.
    pub event_body_len: u64,
    /// Decoded length of the body of one chunk without events, in bytes.
    pub decoded_len: u64,
    /// Memory for everything in a file but its events, in bytes: classes, symbols, names of tasks, keys, attached files,
    /// counters. On top come [`Limits::METADATA_FACTOR`] bytes for each byte of the file up to there.
    pub metadata: u64,
    /// Decoded length of all event chunks of a file, in bytes. On top come [`Limits::EVENTS_FACTOR`] bytes for each byte
    /// of the file up to there.
    pub events: u64,
    /// Bytes that an incremental reader keeps of event chunks whose classes have not come yet.
    pub held_back: u64,
    /// Length of the arrays (texts, stacks) of all events of a chunk, in bytes for each event on average: events may share
    /// an array. On top come [`Limits::ARRAYS_FACTOR`] bytes for each byte of the decoded body.
    pub arrays: u64,
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
    /// Bytes of the names of one event class: its system, its own name and those of its fields. Readers repeat them for
    /// each of its events.
    pub names: u32,
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
            metadata: 64 << 20,
            events: 64 << 20,
            held_back: 64 << 20,
            arrays: 4096,
            records: 1 << 24,
            descriptors: 65_520,
            streams: 16_384,
            classes: 65_520,
            shapes: 65_520,
            fields: 256,
            names: 16_384,
            chunks: 1 << 32,
            damages: 1_000,
        }
    }
}

impl Limits {
    /// Bytes of metadata that each byte of the file adds to [`Limits::metadata`].
    pub const METADATA_FACTOR: u64 = 4;
    /// Bytes of events that each byte of the file adds to [`Limits::events`]: recordings have 4 to 6.
    pub const EVENTS_FACTOR: u64 = 16;
    /// Bytes of arrays that each byte of a decoded event chunk adds to [`Limits::arrays`].
    pub const ARRAYS_FACTOR: u64 = 16;

    /// Names of all limits, as [`Limits::set`] takes and errors give them.
    pub const NAMES: [&'static str; 16] = [
        "chunk_len",
        "event_body_len",
        "decoded_len",
        "metadata",
        "events",
        "held_back",
        "arrays",
        "records",
        "descriptors",
        "streams",
        "classes",
        "shapes",
        "fields",
        "names",
        "chunks",
        "damages",
    ];

    /// Sets the limit of that name; false if there is none, or if it cannot be so large.
    pub fn set(&mut self, name: &str, value: u64) -> bool {
        let small = u32::try_from(value);
        match (name, small) {
            ("chunk_len", _) => self.chunk_len = value,
            ("event_body_len", _) => self.event_body_len = value,
            ("decoded_len", _) => self.decoded_len = value,
            ("metadata", _) => self.metadata = value,
            ("events", _) => self.events = value,
            ("held_back", _) => self.held_back = value,
            ("arrays", _) => self.arrays = value,
            ("chunks", _) => self.chunks = value,
            ("records", Ok(value)) => self.records = value,
            ("descriptors", Ok(value)) => self.descriptors = value,
            ("streams", Ok(value)) => self.streams = value,
            ("classes", Ok(value)) => self.classes = value,
            ("shapes", Ok(value)) => self.shapes = value,
            ("fields", Ok(value)) => self.fields = value,
            ("names", Ok(value)) => self.names = value,
            ("damages", Ok(value)) => self.damages = value as usize,
            _ => return false,
        }
        true
    }

    /// Memory that metadata may take once the file was read up to `offset`, in bytes.
    pub(crate) fn metadata_up_to(&self, offset: u64) -> u64 {
        self.metadata.saturating_add(offset.saturating_mul(Self::METADATA_FACTOR))
    }

    /// Length that the arrays of all events of a chunk may have, in bytes, by its events and its decoded length.
    pub(crate) fn arrays_of(&self, events: u32, body_len: usize) -> u64 {
        let of_events = self.arrays.saturating_mul(events.into());
        of_events.saturating_add(Self::ARRAYS_FACTOR.saturating_mul(body_len as u64))
    }

    /// Decoded length that event chunks may have by then, in bytes.
    pub(crate) fn events_up_to(&self, offset: u64) -> u64 {
        self.events.saturating_add(offset.saturating_mul(Self::EVENTS_FACTOR))
    }
}

macro_rules! setters {
    ($($name:ident: $type:ty,)*) => {
        /// Each sets the limit of its name.
        impl Limits {
            $(
                #[doc = concat!("Sets [`Limits::", stringify!($name), "`](field@Limits::", stringify!($name), ").")]
                #[must_use]
                pub const fn $name(mut self, value: $type) -> Self {
                    self.$name = value;
                    self
                }
            )*
        }
    };
}

setters! {
    chunk_len: u64,
    event_body_len: u64,
    decoded_len: u64,
    metadata: u64,
    events: u64,
    held_back: u64,
    arrays: u64,
    records: u32,
    descriptors: u32,
    streams: u32,
    classes: u32,
    shapes: u32,
    fields: u32,
    names: u32,
    chunks: u64,
    damages: usize,
}

/// The error for a number `found` of `what` above the limit `name`.
pub(crate) fn exceeded(name: &'static str, what: &'static str, found: u64, limit: u64) -> ErrorKind {
    ErrorKind::LimitExceeded { name, what, found, limit }
}

/// The error of [`exceeded`], if `found` is above the limit.
pub(crate) fn within(
    name: &'static str,
    what: &'static str,
    found: u64,
    limit: u64,
) -> Result<(), ErrorKind> {
    if found > limit { Err(exceeded(name, what, found, limit)) } else { Ok(()) }
}

/// The error of [`within`], with an offset.
pub(crate) fn within_at(
    offset: u64,
    name: &'static str,
    what: &'static str,
    found: u64,
    limit: u64,
) -> Result<(), Error> {
    within(name, what, found, limit).map_err(|kind| Error::at(offset, kind))
}

/// Memory that one file may still take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    /// Bytes taken so far.
    pub used: u64,
    /// Bytes that may be.
    pub limit: u64,
}

impl Budget {
    /// Reserves `bytes` of memory, before they are used, for the bytes at `offset`.
    pub fn take(&mut self, bytes: usize, offset: u64) -> Result<(), Error> {
        self.used = self.used.saturating_add(bytes as u64);
        within_at(offset, "metadata", "the memory for metadata", self.used, self.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_can_be_set_by_its_name() {
        for name in Limits::NAMES {
            let mut limits = Limits::default();
            assert!(limits.set(name, 77) && limits != Limits::default(), "{name}");
            assert!(format!("{limits:?}").contains(&format!("{name}: 77")), "{name}");
        }
        let fields = format!("{:?}", Limits::default()).matches(": ").count();
        assert_eq!(fields, Limits::NAMES.len());
        assert!(!Limits::default().set("nonsense", 1));
        assert!(!Limits::default().set("fields", 1 << 40));
    }
}
