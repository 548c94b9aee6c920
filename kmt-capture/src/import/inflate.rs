//! Compression of trace-cmd, perf and Perfetto.

use std::cell::Cell;
use std::io::Read;

use super::bounds::raise;
use super::cursor::{ImportError, Result};

/// Most bytes that all compressed parts of a file of `len` bytes may hold by default: 256 MiB, and 100
/// bytes more for each byte above 16 MiB.
pub fn inflated_max(len: u64) -> u64 {
    const ANY: u64 = 256 << 20;
    const SMALL: u64 = 16 << 20;
    ANY.saturating_add(len.saturating_sub(SMALL).saturating_mul(100))
}

/// How much of a file was read so far, each byte as often as it was, and how much may be.
#[derive(Debug)]
pub struct Inflating {
    /// Name of the data, for messages.
    what: &'static str,
    used: Cell<u64>,
    most: u64,
}

impl Inflating {
    /// A budget of `most` bytes.
    pub fn new(what: &'static str, most: u64) -> Self {
        Self { what, used: Cell::new(0), most }
    }

    /// Takes the bytes of a part at `offset`, before they are read.
    pub fn take(&self, bytes: u64, offset: u64) -> Result<()> {
        self.used.set(self.used.get().saturating_add(bytes));
        if self.used.get() > self.most {
            let (what, most) = (self.what, self.most);
            let fact = format!("{what} have more than {most} bytes; {}", raise("inflated"));
            return Err(ImportError::at(offset, fact));
        }
        Ok(())
    }

    /// Bytes that were taken.
    pub fn used(&self) -> u64 {
        self.used.get()
    }
}

/// A compression of parts of a file.
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
            other => Err(ImportError::at(
                offset,
                format!("compressed with {other:?}; only zlib and zstd are supported"),
            )),
        }
    }

    /// The `len` bytes, at most `len_max`, that `packed`, at `offset` in the file, holds.
    pub fn inflate(self, packed: &[u8], len: u64, len_max: u64, offset: u64) -> Result<Vec<u8>> {
        if len > len_max {
            return Err(ImportError::at(
                offset,
                format!(
                    "{len} compressed bytes in one part: more than {len_max}; {}",
                    raise("compressed_part")
                ),
            ));
        }
        let out = self.inflate_to(packed, len, offset)?;
        if out.len() as u64 != len {
            return Err(ImportError::at(
                offset,
                format!("decompresses to {} bytes or more, {len} are stated", out.len()),
            ));
        }
        Ok(out)
    }

    /// The bytes of a part that does not state how many they are: at most `len_max`, a bound of that name.
    pub fn inflate_unstated(self, packed: &[u8], len_max: u64, offset: u64, bound: &str) -> Result<Vec<u8>> {
        let out = self.inflate_to(packed, len_max, offset)?;
        if out.len() as u64 > len_max {
            let fact = format!("more than {len_max} compressed bytes in one part; {}", raise(bound));
            return Err(ImportError::at(offset, fact));
        }
        Ok(out)
    }

    /// The bytes, but not more than `len` and one.
    fn inflate_to(self, packed: &[u8], len: u64, offset: u64) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        let read = match self {
            Self::Zlib => {
                flate2::read::ZlibDecoder::new(packed).take(len.saturating_add(1)).read_to_end(&mut out)
            }
            Self::Zstd => zstd_reader(packed, offset)?.take(len.saturating_add(1)).read_to_end(&mut out),
        };
        read.map_err(|e| ImportError::at(offset, format!("decompressing: {e}")))?;
        Ok(out)
    }
}

#[cfg(feature = "zstd")]
fn zstd_reader(packed: &[u8], offset: u64) -> Result<impl Read + '_> {
    zstd::stream::read::Decoder::with_buffer(packed)
        .map(zstd::stream::read::Decoder::single_frame)
        .map_err(|e| ImportError::at(offset, format!("decompressing: {e}")))
}

#[cfg(not(feature = "zstd"))]
fn zstd_reader(_: &[u8], offset: u64) -> Result<std::io::Empty> {
    Err(ImportError::at(offset, "compressed with zstd; this kmt-capture was built without zstd"))
}
