//! Zstandard, where the library was built with it.

use crate::error::{ErrorKind, Result};

#[cfg(feature = "zstd")]
mod built_in {
    use super::{ErrorKind, Result};
    use crate::error::Error;

    pub const IS_AVAILABLE: bool = true;

    /// Level 1: higher ones gain little on records that were rearranged.
    const LEVEL: i32 = 1;

    /// One frame.
    pub fn encode(bytes: &[u8]) -> Result<Vec<u8>> {
        zstd::bulk::compress(bytes, LEVEL)
            .map_err(|_| Error::new(ErrorKind::Codec("zstd cannot compress the body")))
    }

    /// Decodes frames into `out`; how many bytes they made, `None` if they are damaged or make more.
    pub fn decode(bytes: &[u8], out: &mut [u8]) -> core::result::Result<Option<usize>, ErrorKind> {
        Ok(zstd::bulk::decompress_to_buffer(bytes, out).ok())
    }
}

#[cfg(not(feature = "zstd"))]
mod built_in {
    use super::{ErrorKind, Result};
    use crate::error::Error;

    pub const IS_AVAILABLE: bool = false;

    pub fn encode(_: &[u8]) -> Result<Vec<u8>> {
        Err(Error::new(ErrorKind::CodecNotBuilt { codec: "zstd" }))
    }

    pub fn decode(_: &[u8], _: &mut [u8]) -> core::result::Result<Option<usize>, ErrorKind> {
        Err(ErrorKind::CodecNotBuilt { codec: "zstd" })
    }
}

pub use built_in::{IS_AVAILABLE, decode, encode};
