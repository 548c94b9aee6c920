//! A bounded look at bytes of a foreign file: every step is checked, every error has its offset.

use std::fmt;

use kmt_format::kernel::ByteOrder;

/// Why a foreign file cannot be read (on).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportError {
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// The error, in words.
    pub what: String,
}

/// A result of reading a file of another tool.
pub type Result<T> = std::result::Result<T, ImportError>;

impl ImportError {
    /// `what` is wrong at `offset`.
    pub fn at(offset: u64, what: impl Into<String>) -> Self {
        Self { offset, what: what.into() }
    }
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "offset {}: {}", self.offset, self.what)
    }
}

/// A position in bytes that are part of a file.
#[derive(Debug, Clone)]
pub struct Cursor<'d> {
    bytes: &'d [u8],
    base: u64,
    position: usize,
    /// Byte order of the integers.
    pub order: ByteOrder,
}

impl<'d> Cursor<'d> {
    /// At the start of `bytes`, which stand at `base` in the file.
    pub fn new(bytes: &'d [u8], base: u64, order: ByteOrder) -> Self {
        Self { bytes, base, position: 0, order }
    }

    /// The same bytes at another place, which is an offset in the file.
    pub fn seek(&self, offset: u64, what: &str) -> Result<Self> {
        let position = offset.checked_sub(self.base).and_then(|p| usize::try_from(p).ok());
        match position.filter(|&p| p <= self.bytes.len()) {
            Some(position) => Ok(Self { position, ..self.clone() }),
            None => {
                let end = self.base.saturating_add(self.bytes.len() as u64);
                Err(ImportError::at(
                    self.offset(),
                    format!("the offset of {what}, {offset}, is beyond the end at {end}"),
                ))
            }
        }
    }

    /// Offset in the file.
    pub fn offset(&self) -> u64 {
        self.base.saturating_add(self.position as u64)
    }

    /// Bytes that are left.
    pub fn rest(&self) -> &'d [u8] {
        self.bytes.get(self.position..).unwrap_or_default()
    }

    /// The next `len` bytes.
    pub fn take(&mut self, len: u64, what: &str) -> Result<&'d [u8]> {
        let rest = self.rest();
        match usize::try_from(len).ok().and_then(|len| rest.get(..len)) {
            Some(taken) => {
                self.position = self.position.saturating_add(taken.len());
                Ok(taken)
            }
            None => {
                let left = rest.len();
                Err(ImportError::at(self.offset(), format!("{what} needs {len} bytes, {left} are left")))
            }
        }
    }

    /// The next integer of `size` bytes.
    pub fn uint(&mut self, size: usize, what: &str) -> Result<u64> {
        let order = self.order;
        Ok(order.uint(self.take(size as u64, what)?))
    }

    /// One byte.
    pub fn u8(&mut self, what: &str) -> Result<u8> {
        Ok(self.uint(1, what)? as u8)
    }

    /// Two bytes.
    pub fn u16(&mut self, what: &str) -> Result<u16> {
        Ok(self.uint(2, what)? as u16)
    }

    /// Four bytes.
    pub fn u32(&mut self, what: &str) -> Result<u32> {
        Ok(self.uint(4, what)? as u32)
    }

    /// Eight bytes.
    pub fn u64(&mut self, what: &str) -> Result<u64> {
        self.uint(8, what)
    }

    /// Text up to a NUL, which is passed over.
    pub fn text(&mut self, what: &str) -> Result<String> {
        /// Far longer than any name.
        const LONGEST: usize = 4096;
        let rest = self.rest();
        let Some(len) = rest.iter().take(LONGEST).position(|&b| b == 0) else {
            return Err(ImportError::at(self.offset(), format!("{what} has no terminating NUL")));
        };
        let text = String::from_utf8_lossy(rest.get(..len).unwrap_or_default()).into_owned();
        self.position = self.position.saturating_add(len).saturating_add(1);
        Ok(text)
    }
}
