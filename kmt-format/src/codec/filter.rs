//! The filter "records": makes records that look alike in columns lie together.
//!
//! Time offsets become differences, and the records planes of bytes: first the first byte of each, then the second
//! byte of each, and so on. Spec section "The filter records".

use zerocopy::FromBytes;

use crate::kernel::ByteOrder;

/// Position of records in a sequence of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FilteredRecords {
    start: usize,
    count: usize,
    stride: usize,
    order: ByteOrder,
}

impl FilteredRecords {
    /// `None` if no chunk can hold them.
    pub fn new(start: usize, count: usize, stride: usize, order: ByteOrder) -> Option<Self> {
        matches!(stride, 12 | 16).then_some(Self { start, count, stride, order })
    }

    /// True if they lie within `len` bytes.
    pub fn fits(&self, len: usize) -> bool {
        let end = self.count.checked_mul(self.stride).and_then(|n| n.checked_add(self.start));
        end.is_some_and(|end| end <= len)
    }

    /// The bytes with the records rearranged.
    pub fn apply(&self, bytes: &[u8]) -> Vec<u8> {
        let mut out = bytes.to_vec();
        let area = self.start..self.start.saturating_add(self.count.saturating_mul(self.stride));
        let (Some(from), Some(to)) = (bytes.get(area.clone()), out.get_mut(area)) else { return out };
        match self.stride {
            12 => apply::<12>(from, to, self.order),
            _ => apply::<16>(from, to, self.order),
        }
        out
    }

    /// Puts the records back where they were.
    pub fn undo(&self, bytes: &mut [u8]) {
        let area = self.start..self.start.saturating_add(self.count.saturating_mul(self.stride));
        let Some(to) = bytes.get_mut(area) else { return };
        let from = to.to_vec();
        match self.stride {
            12 => undo::<12>(&from, to, self.order),
            _ => undo::<16>(&from, to, self.order),
        }
    }
}

/// Records handled at once: their planes stay in the first-level cache.
const BLOCK: usize = 64;

fn apply<const STRIDE: usize>(from: &[u8], to: &mut [u8], order: ByteOrder) {
    let count = from.len().checked_div(STRIDE).unwrap_or(0).max(1);
    let mut last = 0;
    let mut block = [[0u8; STRIDE]; BLOCK];
    let Ok((records, _)) =
        <[[u8; STRIDE]]>::ref_from_prefix_with_elems(from, from.len().checked_div(STRIDE).unwrap_or(0))
    else {
        return;
    };
    for (number, records) in records.chunks(BLOCK).enumerate() {
        for (record, place) in records.iter().zip(&mut block) {
            *place = *record;
            let time = time_of(record, order);
            set_time(place, time.wrapping_sub(last), order);
            last = time;
        }
        for (k, plane) in to.chunks_exact_mut(count).enumerate().take(STRIDE) {
            let Some(plane) = plane.get_mut(number.saturating_mul(BLOCK)..) else { continue };
            for (record, byte) in block.iter().zip(plane).take(records.len()) {
                *byte = record.get(k).copied().unwrap_or(0);
            }
        }
    }
}

fn undo<const STRIDE: usize>(from: &[u8], to: &mut [u8], order: ByteOrder) {
    let len = to.len().checked_div(STRIDE).unwrap_or(0);
    let count = len.max(1);
    let mut last = 0u32;
    let Ok((records, _)) = <[[u8; STRIDE]]>::mut_from_prefix_with_elems(to, len) else { return };
    for (number, records) in records.chunks_mut(BLOCK).enumerate() {
        for (k, plane) in from.chunks_exact(count).enumerate().take(STRIDE) {
            let Some(plane) = plane.get(number.saturating_mul(BLOCK)..) else { continue };
            for (record, byte) in records.iter_mut().zip(plane) {
                if let Some(place) = record.get_mut(k) {
                    *place = *byte;
                }
            }
        }
        for record in records {
            last = last.wrapping_add(time_of(record, order));
            set_time(record, last, order);
        }
    }
}

#[inline]
fn time_of<const STRIDE: usize>(record: &[u8; STRIDE], order: ByteOrder) -> u32 {
    let bytes = record.first_chunk::<4>().copied().unwrap_or_default();
    order.u32(bytes)
}

#[inline]
fn set_time<const STRIDE: usize>(record: &mut [u8; STRIDE], time: u32, order: ByteOrder) {
    if let Some(place) = record.first_chunk_mut::<4>() {
        *place = order.u32_bytes(time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_rearranged_comes_back() {
        for (stride, order) in [(12, ByteOrder::Little), (16, ByteOrder::Big), (16, ByteOrder::Little)] {
            for count in [0usize, 1, 2, 63, 64, 65, 500] {
                let len = 5 + count * stride + 3;
                let bytes: Vec<u8> = (0..len).map(|i| ((i * i * 7) >> 3) as u8).collect();
                let records = FilteredRecords::new(5, count, stride, order).expect("a stride of records");
                assert!(records.fits(len) && !records.fits(len - 4));
                let mut out = records.apply(&bytes);
                assert_eq!((&out[..5], &out[len - 3..]), (&bytes[..5], &bytes[len - 3..]));
                records.undo(&mut out);
                assert_eq!(out, bytes);
            }
        }
        assert!(FilteredRecords::new(0, 1, 8, ByteOrder::Little).is_none());
        assert!(!FilteredRecords::new(1, usize::MAX, 16, ByteOrder::Little).expect("16").fits(usize::MAX));
    }

    #[test]
    fn planes_and_differences_lie_as_specified() {
        let mut bytes = Vec::new();
        for (time, value) in [(0u32, 0x11u64), (5, 0x22), (260, 0x33)] {
            bytes.extend(time.to_le_bytes());
            bytes.extend([7, 0, 9, 0]);
            bytes.extend(value.to_le_bytes());
        }
        let out = FilteredRecords::new(0, 3, 16, ByteOrder::Little).expect("16").apply(&bytes);
        assert_eq!(out[..15], [0, 5, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 7, 7]);
        assert_eq!(out[24..27], [0x11, 0x22, 0x33]);
    }
}
