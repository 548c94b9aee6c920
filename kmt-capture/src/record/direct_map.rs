//! Address of physical address 0 in the kernel's direct map, from the segments of `/proc/kcore`.
//!
//! A segment of memory has its physical address too (fs/proc/kcore.c, 4.20 to 7.2; 0 in all segments before). The file
//! may be missing, or locked: readers then find the base by the events.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use kmt_format::kernel::ByteOrder;

/// Bytes of the headers that are read: 1,000 segments of 64-bit files.
const HEADERS_LEN: u64 = 64 << 10;
/// `PT_LOAD`: a segment of memory (include/uapi/linux/elf.h).
const PT_LOAD: u64 = 1;

/// Offset and size of the fields of an ELF file of one word size.
struct Layout {
    word: usize,
    program_headers: usize,
    header_size: usize,
    header_count: usize,
    /// Virtual and physical address and size in a program header.
    segment: [usize; 3],
}

const BITS_64: Layout =
    Layout { word: 8, program_headers: 32, header_size: 54, header_count: 56, segment: [16, 24, 32] };
const BITS_32: Layout =
    Layout { word: 4, program_headers: 28, header_size: 42, header_count: 44, segment: [8, 12, 16] };

/// Base of the direct map of the running kernel; `None`: unknown.
pub fn base(kcore: &Path, order: ByteOrder) -> Option<u64> {
    let mut headers = Vec::new();
    File::open(kcore).ok()?.take(HEADERS_LEN).read_to_end(&mut headers).ok()?;
    of_headers(&headers, order)
}

/// The distance of virtual to physical addresses with most memory.
fn of_headers(file: &[u8], order: ByteOrder) -> Option<u64> {
    let layout = match file.get(..5)? {
        [0x7f, b'E', b'L', b'F', 2] => BITS_64,
        [0x7f, b'E', b'L', b'F', 1] => BITS_32,
        _ => return None,
    };
    let number = |at: usize, size: usize| order.uint_at(file, at, size);
    let start = usize::try_from(number(layout.program_headers, layout.word)?).ok()?;
    let (size, count) = (number(layout.header_size, 2)? as usize, number(layout.header_count, 2)? as usize);
    let unknown = u64::MAX >> (64 - 8 * layout.word);
    let mut memory: BTreeMap<u64, u64> = BTreeMap::new();
    for header in 0..count {
        let at = start.checked_add(header.checked_mul(size)?)?;
        let Some(kind) = number(at, 4) else { break };
        let [Some(address), Some(physical), Some(length)] =
            layout.segment.map(|field| number(at.checked_add(field)?, layout.word))
        else {
            break;
        };
        if kind == PT_LOAD && physical != 0 && physical != unknown {
            let sum = memory.entry(address.wrapping_sub(physical) & unknown).or_default();
            *sum = sum.saturating_add(length);
        }
    }
    memory.into_iter().max_by_key(|(_, length)| *length).map(|(base, _)| base)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments: virtual address, physical address, length.
    fn file(order: ByteOrder, is_64: bool, segments: &[[u64; 3]]) -> Vec<u8> {
        let layout = if is_64 { BITS_64 } else { BITS_32 };
        let header = layout.segment[2] + layout.word;
        let mut out = vec![0; 64 + header * segments.len()];
        out[..5].copy_from_slice(&[0x7f, b'E', b'L', b'F', if is_64 { 2 } else { 1 }]);
        let mut put = |at: usize, size: usize, value: u64| {
            let bytes = value.to_le_bytes();
            out[at..at + size].copy_from_slice(&bytes[..size]);
            if order == ByteOrder::Big {
                out[at..at + size].reverse();
            }
        };
        put(layout.program_headers, layout.word, 64);
        put(layout.header_size, 2, header as u64);
        put(layout.header_count, 2, segments.len() as u64);
        for (number, segment) in segments.iter().enumerate() {
            let at = 64 + number * header;
            put(at, 4, PT_LOAD);
            layout
                .segment
                .iter()
                .zip(segment)
                .for_each(|(field, value)| put(at + field, layout.word, *value));
        }
        out
    }

    #[test]
    fn the_base_is_that_of_most_memory() {
        let base = 0xffff_8880_0000_0000u64;
        let segments = [
            [0xffff_ffff_8100_0000, 0x100_0000, 30 << 20],
            [0xffff_c900_0000_0000, u64::MAX, 1 << 45],
            [base + 0x1000, 0x1000, 0x9e000],
            [base + (1 << 20), 1 << 20, 3 << 30],
        ];
        for order in [ByteOrder::Little, ByteOrder::Big] {
            assert_eq!(of_headers(&file(order, true, &segments), order), Some(base));
            let low = [[0xc000_1000, 0x1000, 1 << 20], [0xf800_0000, u64::from(u32::MAX), 1 << 24]];
            assert_eq!(of_headers(&file(order, false, &low), order), Some(0xc000_0000));
        }
        // Kernels without physical addresses.
        let without = segments.map(|[address, _, length]| [address, 0, length]);
        assert_eq!(of_headers(&file(ByteOrder::Little, true, &without), ByteOrder::Little), None);
    }

    #[test]
    fn what_is_no_such_file_has_no_base() {
        let whole = file(ByteOrder::Little, true, &[[0xffff_8880_0000_1000, 0x1000, 1]]);
        for len in 0..whole.len() {
            assert_eq!(of_headers(&whole[..len], ByteOrder::Little), None, "{len}");
        }
        assert_eq!(base(Path::new("/nonexistent"), ByteOrder::Little), None);
    }
}
