//! Errors: kind, cause, and offset in the input.

use core::fmt;

/// A result whose error is [`Error`].
pub type Result<T> = core::result::Result<T, Error>;

/// Cause of an [`Error`]: the input, the caller, a limit, or this build of the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The bytes are not what the specification allows: damage, or another kind of file.
    Input,
    /// The bytes are well formed, but ask for something that this version does not know.
    Unsupported,
    /// The bytes ask for more than a [`Limits`](crate::Limits) value allows.
    Limit,
    /// The caller passed something that cannot be expressed.
    Usage,
}

/// Kind of an error, with the numbers that show it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The first bytes are not the magic of a .kmt file.
    NotKmt,
    /// The magic is there, but was damaged the way text-mode transfers damage it.
    MagicDamaged,
    /// The byte-order mark is neither little nor big endian.
    ByteOrderMark,
    /// The file is of a major version that this library does not read.
    MajorVersion {
        /// Major version found in the header.
        found: u16,
        /// Major version that this library reads.
        supported: u16,
    },
    /// The header sets feature bits that this library does not know.
    IncompatibleFeatures {
        /// The unknown bits.
        bits: u32,
    },
    /// Fewer bytes than a structure needs.
    Truncated {
        /// Bytes needed.
        needed: u64,
        /// Bytes available.
        available: u64,
    },
    /// A checksum does not match the bytes it covers.
    Checksum {
        /// Bytes under the checksum.
        what: &'static str,
        /// Checksum stored in the file.
        stored: u32,
        /// Checksum computed over the bytes.
        computed: u32,
    },
    /// Bytes at a place where a chunk must start are no chunk header.
    NotAChunk,
    /// A structure contradicts itself or the specification.
    Malformed(&'static str),
    /// A critical chunk of a kind that this library does not know.
    UnknownCriticalChunk {
        /// The four-character code of the kind.
        kind: [u8; 4],
    },
    /// A codec that this library does not know.
    UnknownCodec {
        /// The codec byte.
        codec: u8,
    },
    /// A codec that this build of the library leaves out.
    CodecNotBuilt {
        /// Name of the codec, which is the name of the feature.
        codec: &'static str,
    },
    /// The bytes of a body are not what its codec makes.
    Codec(&'static str),
    /// The index says something else than the chunk that it leads to.
    Index(&'static str),
    /// A named limit is exceeded.
    LimitExceeded {
        /// Name of the limit, one of [`Limits::NAMES`](crate::Limits::NAMES).
        name: &'static str,
        /// Quantity that exceeds it.
        what: &'static str,
        /// The value needed.
        found: u64,
        /// The limit in force.
        limit: u64,
    },
    /// A text file of the kernel does not have the form it must have.
    KernelText {
        /// Name of the file.
        file: &'static str,
        /// Defect.
        what: &'static str,
    },
    /// A sub-buffer of the kernel's ring buffer is damaged.
    SubBuffer(&'static str),
    /// An event of the ring buffer has an id for which there is no format.
    UnknownEventId {
        /// The id found in the record.
        id: u16,
    },
    /// An event has no such field.
    NoField {
        /// The event, as `system:name`.
        event: String,
        /// Name, role or index of the field.
        field: String,
    },
    /// A field has another type than the requested one.
    FieldType {
        /// Name of the field.
        field: String,
        /// The type requested.
        wanted: &'static str,
    },
    /// The caller requested something that the format cannot express.
    Usage(&'static str),
}

/// An error with its kind and, where known, the offset of the bytes that show it.
///
/// The offset counts from the start of the slice that was handed in: the file for readers of files, the
/// sub-buffer for [`SubBuffer`](crate::kernel::SubBuffer), the text for parsers of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    offset: Option<u64>,
}

impl Error {
    /// An error at `offset`.
    pub fn at(offset: u64, kind: ErrorKind) -> Self {
        Self { kind, offset: Some(offset) }
    }

    /// An error without a place.
    pub fn new(kind: ErrorKind) -> Self {
        Self { kind, offset: None }
    }

    /// Kind of the error.
    pub fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// Offset of the error, in bytes from the start of the input.
    pub fn offset(&self) -> Option<u64> {
        self.offset
    }

    /// Cause of the error.
    pub fn fault(&self) -> Fault {
        match self.kind {
            ErrorKind::MajorVersion { .. }
            | ErrorKind::IncompatibleFeatures { .. }
            | ErrorKind::UnknownCriticalChunk { .. }
            | ErrorKind::UnknownCodec { .. }
            | ErrorKind::CodecNotBuilt { .. } => Fault::Unsupported,
            ErrorKind::LimitExceeded { .. } => Fault::Limit,
            ErrorKind::Usage(_) | ErrorKind::NoField { .. } | ErrorKind::FieldType { .. } => Fault::Usage,
            _ => Fault::Input,
        }
    }

    /// A short name of the kind that does not change between versions of this library.
    pub fn code(&self) -> &'static str {
        match self.kind {
            ErrorKind::NotKmt => "not-kmt",
            ErrorKind::MagicDamaged => "magic-damaged",
            ErrorKind::ByteOrderMark => "byte-order-mark",
            ErrorKind::MajorVersion { .. } => "major-version",
            ErrorKind::IncompatibleFeatures { .. } => "incompatible-features",
            ErrorKind::Truncated { .. } => "truncated",
            ErrorKind::Checksum { .. } => "checksum",
            ErrorKind::NotAChunk => "not-a-chunk",
            ErrorKind::Malformed(_) => "malformed",
            ErrorKind::UnknownCriticalChunk { .. } => "unknown-critical-chunk",
            ErrorKind::UnknownCodec { .. } => "unknown-codec",
            ErrorKind::CodecNotBuilt { .. } => "codec-not-built",
            ErrorKind::Codec(_) => "codec",
            ErrorKind::Index(_) => "index",
            ErrorKind::LimitExceeded { .. } => "limit-exceeded",
            ErrorKind::KernelText { .. } => "kernel-text",
            ErrorKind::SubBuffer(_) => "sub-buffer",
            ErrorKind::UnknownEventId { .. } => "unknown-event-id",
            ErrorKind::NoField { .. } => "no-field",
            ErrorKind::FieldType { .. } => "field-type",
            ErrorKind::Usage(_) => "usage",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotKmt => write!(f, "this is not a .kmt file (its first bytes are not the magic)"),
            Self::MagicDamaged => {
                write!(
                    f,
                    "the magic is damaged as by a text-mode transfer; copy the file again in binary mode"
                )
            }
            Self::ByteOrderMark => write!(f, "the byte-order mark is neither little nor big endian"),
            Self::MajorVersion { found, supported } => write!(
                f,
                "the file has format version {found}.x, this program reads {supported}.x; a newer kmt reads it"
            ),
            Self::IncompatibleFeatures { bits } => {
                write!(
                    f,
                    "the file uses features that this program does not support (bits {bits:#x}); a newer kmt reads it"
                )
            }
            Self::Truncated { needed, available } => {
                write!(f, "needs {needed} bytes, {available} are available")
            }
            Self::Checksum { what, stored, computed } => {
                write!(f, "checksum of the {what} is {computed:08x}, the file has {stored:08x}")
            }
            Self::NotAChunk => write!(f, "no chunk starts here"),
            Self::Malformed(what) => write!(f, "{what}"),
            Self::UnknownCriticalChunk { kind } => write!(
                f,
                "chunk kind {} is unknown and marked critical; a newer kmt reads it",
                kind.escape_ascii()
            ),
            Self::UnknownCodec { codec } => {
                write!(f, "codec {codec:#04x} is unknown; a newer kmt reads it")
            }
            Self::CodecNotBuilt { codec } => {
                write!(
                    f,
                    "compressed with {codec}, which this build does not support; build kmt with the feature `{codec}`"
                )
            }
            Self::Codec(what) => write!(f, "{what}"),
            Self::Index(what) => write!(f, "index mismatch: {what}"),
            Self::LimitExceeded { name, what, found, limit } => {
                write!(f, "{what} is {found}, the limit `{name}` is {limit}")
            }
            Self::KernelText { file, what } => write!(f, "{file}: {what}"),
            Self::SubBuffer(what) => write!(f, "damaged sub-buffer: {what}"),
            Self::UnknownEventId { id } => write!(f, "event id {id} has no format"),
            Self::NoField { event, field } => write!(f, "{event} has no field {field}"),
            Self::FieldType { field, wanted } => write!(f, "the field {field} is not {wanted}"),
            Self::Usage(what) => write!(f, "{what}"),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.offset {
            Some(offset) => write!(f, "offset {offset}: {}", self.kind),
            None => self.kind.fmt(f),
        }
    }
}

impl core::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_names_offset_and_fact() {
        let error = Error::at(64, ErrorKind::Truncated { needed: 64, available: 3 });
        assert_eq!(error.to_string(), "offset 64: needs 64 bytes, 3 are available");
        assert_eq!(error.fault(), Fault::Input);
        assert_eq!(error.code(), "truncated");
    }

    /// One error of each kind: its code is its own, it says something, and whose fault it is.
    #[test]
    fn every_kind_has_a_code_a_text_and_a_fault() {
        use ErrorKind::*;
        let all = [
            (NotKmt, Fault::Input),
            (MagicDamaged, Fault::Input),
            (ByteOrderMark, Fault::Input),
            (MajorVersion { found: 7, supported: 0 }, Fault::Unsupported),
            (IncompatibleFeatures { bits: 2 }, Fault::Unsupported),
            (Truncated { needed: 2, available: 1 }, Fault::Input),
            (Checksum { what: "x", stored: 1, computed: 2 }, Fault::Input),
            (NotAChunk, Fault::Input),
            (Malformed("odd"), Fault::Input),
            (UnknownCriticalChunk { kind: *b"NEWK" }, Fault::Unsupported),
            (UnknownCodec { codec: 9 }, Fault::Unsupported),
            (CodecNotBuilt { codec: "zstd" }, Fault::Unsupported),
            (Codec("odd"), Fault::Input),
            (Index("odd"), Fault::Input),
            (LimitExceeded { name: "chunks", what: "x", found: 2, limit: 1 }, Fault::Limit),
            (KernelText { file: "format", what: "odd" }, Fault::Input),
            (SubBuffer("odd"), Fault::Input),
            (UnknownEventId { id: 9 }, Fault::Input),
            (NoField { event: "kmem:kfree".into(), field: "x".into() }, Fault::Usage),
            (FieldType { field: "x".into(), wanted: "text" }, Fault::Usage),
            (Usage("odd"), Fault::Usage),
        ];
        let codes: std::collections::BTreeSet<&str> =
            all.iter().map(|(kind, _)| Error::new(kind.clone()).code()).collect();
        assert_eq!(codes.len(), all.len());
        for (kind, fault) in all {
            let error = Error::at(7, kind.clone());
            assert_eq!((error.fault(), error.offset(), error.kind()), (fault, Some(7), &kind));
            assert_eq!(error.to_string(), format!("offset 7: {}", Error::new(kind)));
        }
    }
}
