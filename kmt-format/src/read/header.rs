//! Reading the file header, or its copy.

use zerocopy::{ByteOrder as Order, FromBytes, LittleEndian};

use crate::error::{Error, ErrorKind, Result};
use crate::kernel::{ByteOrder, with_order};
use crate::raw::{
    ALIGNMENT, ChunkHeader, ChunkKind, FileHeader, HEADER_LEN, MAGIC, VERSION_MAJOR, incompatible,
};

/// Longest header that is accepted, in bytes.
pub(super) const HEADER_LEN_MAX: usize = 65_536;

/// Fields of the file header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Header {
    /// Byte order of the file and of the traced kernel.
    pub order: ByteOrder,
    /// Major version of the format.
    pub version_major: u16,
    /// Minor version of the format.
    pub version_minor: u16,
    /// Length of the header in bytes.
    pub header_len: usize,
    /// Size of the traced kernel's `long` in bytes, 4 or 8.
    pub long_size: usize,
    /// Alignment of u64 in the traced kernel's structures; `None` if not known.
    pub align_u64: Option<u8>,
    /// Page size of the target in bytes; `None` if not known.
    pub page_size: Option<u64>,
    /// Identifies the trace.
    pub trace_uuid: [u8; 16],
    /// True if lives may be folded: [`Trace::folds`](super::Trace::folds).
    pub folded: bool,
}

/// Reads the header; where it is damaged, its copy in the first chunk. Then the second value is the damage.
pub(crate) fn read_header(data: &[u8]) -> Result<(Header, Option<Error>)> {
    match parse_header(data) {
        Ok(header) => Ok((header, None)),
        Err(damage) => match header_copy(data) {
            Some(header) => Ok((header, Some(damage))),
            None => Err(damage),
        },
    }
}

/// The bytes of the header, or of its copy where it is damaged.
pub(crate) fn header_bytes(data: &[u8]) -> Option<&[u8]> {
    let (data, header) = match parse_header(data) {
        Ok(header) => (data, header),
        Err(_) => copies(data).find_map(|copy| Some((copy, parse_header(copy).ok()?)))?,
    };
    data.get(..header.header_len)
}

fn header_copy(data: &[u8]) -> Option<Header> {
    copies(data).find_map(|copy| parse_header(copy).ok())
}

/// Bodies of header copies: of chunks right after a header.
fn copies(data: &[u8]) -> impl Iterator<Item = &[u8]> {
    (HEADER_LEN..=HEADER_LEN_MAX).step_by(ALIGNMENT).filter_map(move |at| {
        let chunk = data.get(at..)?;
        let is_copy = chunk.get(..4)? == ChunkHeader::<LittleEndian>::SYNC
            && chunk.get(8..12)? == ChunkKind::HEADER_COPY.0;
        chunk.get(ChunkHeader::<LittleEndian>::LEN..).filter(|_| is_copy)
    })
}

fn parse_header(data: &[u8]) -> Result<Header> {
    let magic = data.get(..8).unwrap_or(data);
    if magic != MAGIC.get(..magic.len()).unwrap_or_default() {
        // A text-mode transfer turns CR LF into LF, LF into CR LF, or clears the upper bit.
        let known = data.get(1..4) == Some(b"KMT");
        return Err(Error::at(0, if known { ErrorKind::MagicDamaged } else { ErrorKind::NotKmt }));
    }
    if data.len() < HEADER_LEN {
        let kind = if data.is_empty() {
            ErrorKind::NotKmt
        } else {
            ErrorKind::Truncated { needed: HEADER_LEN as u64, available: data.len() as u64 }
        };
        return Err(Error::at(0, kind));
    }
    let order = match data.get(8..12) {
        Some([4, 3, 2, 1]) => ByteOrder::Little,
        Some([1, 2, 3, 4]) => ByteOrder::Big,
        _ => return Err(Error::at(8, ErrorKind::ByteOrderMark)),
    };
    with_order!(order, O => parse_in_order::<O>(data, order))
}

fn parse_in_order<O: Order>(data: &[u8], order: ByteOrder) -> Result<Header> {
    let Ok((header, _)) = FileHeader::<O>::ref_from_prefix(data) else {
        return Err(Error::at(0, ErrorKind::NotKmt));
    };
    let major = header.version_major.get();
    let is_known = major == VERSION_MAJOR;
    let other_major = Error::at(12, ErrorKind::MajorVersion { found: major, supported: VERSION_MAJOR });
    let header_len = header.header_len.get() as usize;
    let covered = data.get(..header_len.saturating_sub(4)).filter(|_| {
        (HEADER_LEN..=HEADER_LEN_MAX).contains(&header_len)
            && header_len % HEADER_LEN == 0
            && header_len <= data.len()
    });
    // Magic, byte order and version have the same offsets in every major version; the rest may not.
    let Some(covered) = covered else {
        let malformed = Error::at(16, ErrorKind::Malformed("the header has an invalid length"));
        return Err(if is_known { malformed } else { other_major });
    };
    let stored = order.uint_at(data, header_len.saturating_sub(4), 4).unwrap_or(0) as u32;
    let computed = crc32fast::hash(covered);
    if !is_known {
        return Err(other_major);
    }
    if stored != computed {
        return Err(Error::at(0, ErrorKind::Checksum { what: "file header", stored, computed }));
    }
    let bits = header.incompatible.get() & !incompatible::FOLDED;
    if bits != 0 {
        return Err(Error::at(20, ErrorKind::IncompatibleFeatures { bits }));
    }
    let long_size = usize::from(header.size_long);
    if !matches!(long_size, 4 | 8) {
        return Err(Error::at(30, ErrorKind::Malformed("the size of long is neither 4 nor 8")));
    }
    if header.page_shift > 30 {
        return Err(Error::at(34, ErrorKind::Malformed("the header has an invalid page size")));
    }
    Ok(Header {
        order,
        version_major: major,
        version_minor: header.version_minor.get(),
        header_len,
        long_size,
        align_u64: Some(header.align_u64).filter(|&a| a != 0),
        page_size: Some(header.page_shift).filter(|&s| s != 0).map(|s| 1 << s),
        trace_uuid: header.trace_uuid,
        folded: header.incompatible.get() & incompatible::FOLDED != 0,
    })
}
