//! Storage of chunk bodies: a reversible filter, then a codec. Spec section "Codecs".

mod filter;
mod lz4;
mod zstd;

use crate::error::{Error, ErrorKind, Result};
use crate::kernel::ByteOrder;
use crate::raw::{codecs, filters};

pub(crate) use filter::FilteredRecords;

/// Storage of bodies: none, or a codec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Compression {
    /// As they are: the file can be read in place.
    #[default]
    None,
    /// LZ4: about 5 bytes an event, at little cost; pure Rust.
    Lz4,
    /// Zstandard, level 1: about 4 bytes an event. Needs the feature `zstd` of this crate.
    Zstd,
}

impl Compression {
    /// True if this build of the library has the codec.
    pub fn is_available(self) -> bool {
        match self {
            Self::None | Self::Lz4 => true,
            Self::Zstd => zstd::IS_AVAILABLE,
        }
    }
}

/// An encoded body, without its prefix.
pub(crate) struct Stored {
    /// The `codec` byte of the chunk's header.
    pub codec: u8,
    /// The bytes after the prefix.
    pub bytes: Vec<u8>,
}

/// Encodes a body without its prefix; `None` if that would not make it shorter.
///
/// `records` is where in `rest` the records of an event chunk lie.
pub(crate) fn encode(
    compression: Compression,
    rest: &[u8],
    records: Option<&FilteredRecords>,
) -> Result<Option<Stored>> {
    let filtered = records.map(|records| records.apply(rest));
    let input = filtered.as_deref().unwrap_or(rest);
    let (codec, bytes) = match compression {
        Compression::None => return Ok(None),
        Compression::Lz4 => (codecs::LZ4, lz4::encode(input)),
        Compression::Zstd => (codecs::ZSTD, zstd::encode(input)?),
    };
    let filter = if filtered.is_some() { filters::RECORDS } else { filters::NONE };
    Ok(Some(Stored { codec: codec | filter << 4, bytes }).filter(|s| s.bytes.len() < rest.len()))
}

/// An encoded body: the fields of its chunk header, and its offset in the file, for errors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Encoded<'a> {
    /// The `codec` byte.
    pub codec: u8,
    /// The stored body.
    pub stored: &'a [u8],
    /// Length of the prefix in bytes.
    pub prefix_len: usize,
    /// Length of the decoded body in bytes; a limit was put on it.
    pub raw_len: usize,
    /// Offset of the chunk's header.
    pub offset: u64,
    /// True if the body has records, which a filter may have rearranged.
    pub has_records: bool,
}

/// Most bytes that a codec makes of `stored` bytes: a byte of LZ4 adds 255 at most, a block of Zstandard has 4 bytes or
/// more and makes 128 KiB at most. `None` for an unknown codec.
fn decoded_len_max(codec: u8, stored: usize) -> Option<usize> {
    match codec & 0xf {
        codecs::LZ4 => Some(stored.saturating_mul(255)),
        codecs::ZSTD => Some(stored.saturating_mul((128 << 10) / 4)),
        _ => None,
    }
}

/// Decodes a body. `reserve` gets the decoded length before memory is taken for it, after all other checks; `records`
/// finds the records of an event chunk in its prefix.
pub(crate) fn decode(
    encoded: Encoded<'_>,
    reserve: impl FnOnce(usize) -> Result<()>,
    records: impl FnOnce(&[u8]) -> Option<FilteredRecords>,
) -> Result<Vec<u8>> {
    let body_offset = encoded.offset.saturating_add(64);
    let bad = |what| Error::at(body_offset, ErrorKind::Malformed(what));
    let lengths = |what| Error::at(encoded.offset, ErrorKind::Malformed(what));
    let Some((prefix, rest)) = encoded.stored.split_at_checked(encoded.prefix_len) else {
        return Err(lengths("the prefix of a chunk is longer than its body"));
    };
    let Some(rest_len) = encoded.raw_len.checked_sub(prefix.len()) else {
        return Err(lengths("a decoded body is shorter than its prefix"));
    };
    let unknown = || {
        let kind = ErrorKind::UnknownCodec { codec: encoded.codec };
        Error::at(encoded.offset.saturating_add(13), kind)
    };
    let is_filtered = match encoded.codec >> 4 {
        filters::NONE => false,
        filters::RECORDS if encoded.has_records => true,
        _ => return Err(unknown()),
    };
    let not_decoded =
        || Error::at(body_offset, ErrorKind::Codec("the body cannot be decoded to its stated length"));
    if encoded.codec & 0xf == codecs::ZSTD && !zstd::IS_AVAILABLE {
        let kind = ErrorKind::CodecNotBuilt { codec: "zstd" };
        return Err(Error::at(encoded.offset.saturating_add(13), kind));
    }
    if rest_len > decoded_len_max(encoded.codec, rest.len()).ok_or_else(unknown)? {
        return Err(not_decoded());
    }
    reserve(encoded.raw_len)?;
    let mut body = vec![0; encoded.raw_len];
    let Some(out) = body.get_mut(prefix.len()..) else {
        return Err(bad("a body is shorter than its prefix"));
    };
    let decoded = match encoded.codec & 0xf {
        codecs::LZ4 => lz4::decode(rest, out),
        codecs::ZSTD => {
            zstd::decode(rest, out).map_err(|kind| Error::at(encoded.offset.saturating_add(13), kind))?
        }
        _ => return Err(unknown()),
    };
    if decoded != Some(rest_len) {
        return Err(not_decoded());
    }
    if is_filtered {
        let records = records(prefix).filter(|r| r.fits(rest_len));
        let records =
            records.ok_or_else(|| bad("the records that a filter rearranged lie outside the body"))?;
        records.undo(out);
    }
    if let Some(place) = body.get_mut(..prefix.len()) {
        place.copy_from_slice(prefix);
    }
    Ok(body)
}

/// Position of the records of an event chunk after its prefix.
pub(crate) fn records_behind(
    prefix_len: usize,
    records_offset: usize,
    count: usize,
    stride: usize,
    order: ByteOrder,
) -> Option<FilteredRecords> {
    // The offset of an empty table means nothing.
    let start = if count == 0 { 0 } else { records_offset.checked_sub(prefix_len)? };
    FilteredRecords::new(start, count, stride, order)
}
