//! What trace-cmd and perf compress with.

use std::io::Read;

use super::cursor::{Fault, Result};

/// Most bytes that one compressed part of a file may hold.
pub const INFLATED_MAX: u64 = 256 << 20;

/// A compression of trace.dat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// A zlib stream a part.
    Zlib,
    /// A Zstandard frame a part.
    Zstd,
}

impl Codec {
    /// By the name that trace-cmd gives it; `None` is no compression.
    pub fn named(name: &str, offset: u64) -> Result<Option<Self>> {
        match name {
            "none" | "" => Ok(None),
            "zlib" => Ok(Some(Self::Zlib)),
            "zstd" => Ok(Some(Self::Zstd)),
            other => Err(Fault::at(offset, format!("compressed with {other:?}; zlib and zstd are known"))),
        }
    }

    /// The `len` bytes that `packed`, at `offset` in the file, holds.
    pub fn inflate(self, packed: &[u8], len: u64, offset: u64) -> Result<Vec<u8>> {
        if len > INFLATED_MAX {
            return Err(Fault::at(
                offset,
                format!("{len} compressed bytes in one part: more than {INFLATED_MAX}"),
            ));
        }
        let mut out = Vec::new();
        let read = match self {
            Self::Zlib => {
                flate2::read::ZlibDecoder::new(packed).take(len.saturating_add(1)).read_to_end(&mut out)
            }
            Self::Zstd => zstd_reader(packed, offset)?.take(len.saturating_add(1)).read_to_end(&mut out),
        };
        read.map_err(|e| Fault::at(offset, format!("decompressing: {e}")))?;
        if out.len() as u64 != len {
            return Err(Fault::at(
                offset,
                format!("decompresses to {} bytes or more, not to {len}", out.len()),
            ));
        }
        Ok(out)
    }
}

#[cfg(feature = "zstd")]
fn zstd_reader(packed: &[u8], offset: u64) -> Result<impl Read + '_> {
    zstd::stream::read::Decoder::with_buffer(packed)
        .map(zstd::stream::read::Decoder::single_frame)
        .map_err(|e| Fault::at(offset, format!("decompressing: {e}")))
}

#[cfg(not(feature = "zstd"))]
fn zstd_reader(_: &[u8], offset: u64) -> Result<std::io::Empty> {
    Err(Fault::at(offset, "compressed with zstd, which this kmt-capture was built without"))
}
