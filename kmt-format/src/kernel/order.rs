//! The traced kernel's byte order, and numbers in it.

use byteorder::{BigEndian, ByteOrder as _, LittleEndian};

/// The byte order of the traced kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl ByteOrder {
    /// Byte order of this machine, and of the kernel that runs on it.
    pub const NATIVE: Self = if cfg!(target_endian = "big") { Self::Big } else { Self::Little };

    /// The unsigned integer in `bytes`, 1 to 8 of them; 0 for any other length.
    #[inline]
    pub fn uint(self, bytes: &[u8]) -> u64 {
        match (self, bytes.len()) {
            // The common sizes, which compile to one load each.
            (Self::Little, 8) => LittleEndian::read_u64(bytes),
            (Self::Little, 4) => LittleEndian::read_u32(bytes).into(),
            (Self::Little, 2) => LittleEndian::read_u16(bytes).into(),
            (Self::Big, 8) => BigEndian::read_u64(bytes),
            (Self::Big, 4) => BigEndian::read_u32(bytes).into(),
            (Self::Big, 2) => BigEndian::read_u16(bytes).into(),
            (Self::Little, n @ 1..=8) => LittleEndian::read_uint(bytes, n),
            (Self::Big, n @ 1..=8) => BigEndian::read_uint(bytes, n),
            _ => 0,
        }
    }

    /// The unsigned integer of `size` bytes at `offset`, or `None` where `bytes` ends before it.
    #[inline]
    pub fn uint_at(self, bytes: &[u8], offset: usize, size: usize) -> Option<u64> {
        bytes.get(offset..offset.checked_add(size)?).map(|b| self.uint(b))
    }

    /// Appends the low `size` bytes (1 to 8) of `value` to `out`.
    pub fn push(self, out: &mut Vec<u8>, value: u64, size: usize) {
        let size = size.min(8);
        match self {
            Self::Little => out.extend(value.to_le_bytes().iter().take(size)),
            Self::Big => out.extend(value.to_be_bytes().iter().skip(8usize.saturating_sub(size))),
        }
    }

    /// The unsigned integer in four bytes.
    #[inline]
    pub(crate) fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }

    /// The bytes of an unsigned integer.
    #[inline]
    pub(crate) fn u32_bytes(self, value: u32) -> [u8; 4] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }

    /// Name as reports print it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Little => "little",
            Self::Big => "big",
        }
    }
}

/// Evaluates an expression once for each byte order, with `$O` as the order's type of zerocopy: structures of `raw` are
/// generic over it, and their fields are read without a branch.
macro_rules! with_order {
    ($order:expr, $O:ident => $work:expr) => {
        match $order {
            $crate::kernel::ByteOrder::Little => {
                type $O = zerocopy::LittleEndian;
                $work
            }
            $crate::kernel::ByteOrder::Big => {
                type $O = zerocopy::BigEndian;
                $work
            }
        }
    };
}

pub(crate) use with_order;

/// Bits of a 64-bit word that a number of `size` bytes (1 to 8) leaves unused.
pub(crate) fn unused_bits(size: u32) -> u32 {
    64u32.saturating_sub(size.clamp(1, 8).saturating_mul(8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_pushes_every_width_in_both_orders() {
        for size in 1..=8 {
            for order in [ByteOrder::Little, ByteOrder::Big] {
                let value = 0x0102_0304_0506_0708u64 & (u64::MAX >> (64 - 8 * size));
                let mut out = Vec::new();
                order.push(&mut out, value, size);
                assert_eq!(out.len(), size);
                assert_eq!(order.uint(&out), value);
            }
        }
        assert_eq!(ByteOrder::Big.uint(&[1, 2]), 0x102);
        assert_eq!(ByteOrder::Little.uint_at(&[1, 2], 1, 2), None);
    }
}
