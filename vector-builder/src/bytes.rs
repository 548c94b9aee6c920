//! Numbers as bytes, checksums: written from the specification alone.

/// Bytes in one byte order.
#[derive(Debug, Clone, Default)]
pub struct Bytes {
    /// The bytes written so far.
    pub data: Vec<u8>,
    /// True if numbers are big endian.
    pub big: bool,
}

impl Bytes {
    /// Nothing yet.
    pub fn new(big: bool) -> Self {
        Self { data: Vec::new(), big }
    }

    /// A number of `len` bytes.
    pub fn number(&mut self, value: u64, len: usize) -> &mut Self {
        let bytes = number(value, len, self.big);
        self.data.extend(bytes);
        self
    }

    /// A number of 4 bytes.
    pub fn u32(&mut self, value: usize) -> &mut Self {
        self.number(value as u64, 4)
    }

    /// Bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.data.extend_from_slice(bytes);
        self
    }

    /// Zeros up to a multiple of `to`.
    pub fn align(&mut self, to: usize) -> &mut Self {
        self.fill(0, self.data.len().next_multiple_of(to))
    }

    /// `byte` up to a length of `len`.
    pub fn fill(&mut self, byte: u8, len: usize) -> &mut Self {
        self.data.resize(len.max(self.data.len()), byte);
        self
    }

    /// Bytes so far.
    pub fn len(&self) -> usize {
        self.data.len()
    }

    /// True if nothing was written.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }
}

/// The low `len` bytes of a number.
pub fn number(value: u64, len: usize, big: bool) -> Vec<u8> {
    let shifts = 0..len as u32;
    let byte = |i: u32| (value >> (8 * i)) as u8;
    if big { shifts.rev().map(byte).collect() } else { shifts.map(byte).collect() }
}

/// A number of `len` bytes at `at`.
pub fn read(data: &[u8], at: usize, len: usize, big: bool) -> u64 {
    let fold = |n: u64, b: &u8| n << 8 | u64::from(*b);
    let bytes = &data[at..at + len];
    if big { bytes.iter().fold(0, fold) } else { bytes.iter().rev().fold(0, fold) }
}

/// CRC-32, bit by bit.
pub fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, &byte| {
        (0..8).fold(
            crc ^ u32::from(byte),
            |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 },
        )
    })
}
