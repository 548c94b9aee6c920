//! The naive reader's codecs. Section "Codecs".

use super::naive::{Bytes, crc32};

/// Undoes codec and filter.
pub fn decoded(header: Bytes<'_>, stored: &[u8], long: usize) -> Vec<u8> {
    let (codec, filter) = (header.data[13] & 15, header.data[13] >> 4);
    let (prefix, rest) = stored.split_at(header.u32(52));
    if matches!(&header.data[8..12], b"EVNT" | b"RAWP" | b"FOLD") {
        assert_eq!(header.u32(56) as u32, crc32(prefix));
    }
    let mut body = prefix.to_vec();
    match codec {
        0 => body.extend(rest),
        1 => lz4(rest, &mut body),
        2 => zstd(rest, &mut body),
        other => panic!("codec {other}"),
    }
    assert_eq!(body.len() as u64, header.number(32, 8));
    if filter == 1 {
        let head = Bytes { data: prefix, big: header.big };
        let (count, start, stride) = (head.u32(40), head.u32(68), 8 + long);
        let planes = body[start..start + count * stride].to_vec();
        let mut time = 0u32;
        for i in 0..count {
            let record: Vec<u8> = (0..stride).map(|k| planes[k * count + i]).collect();
            time = time.wrapping_add(Bytes { data: &record, big: header.big }.number(0, 4) as u32);
            body[start + i * stride..start + (i + 1) * stride].copy_from_slice(&record);
            let bytes = if header.big { time.to_be_bytes() } else { time.to_le_bytes() };
            body[start + i * stride..start + i * stride + 4].copy_from_slice(&bytes);
        }
    }
    body
}

/// One block of <https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md>, behind what `out` holds.
fn lz4(input: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    let mut at = 0;
    let long = |nibble: u8, at: &mut usize| {
        let mut len = usize::from(nibble);
        if nibble == 15 {
            loop {
                len += usize::from(input[*at]);
                *at += 1;
                if input[*at - 1] != 255 {
                    break;
                }
            }
        }
        len
    };
    while at < input.len() {
        let token = input[at];
        at += 1;
        let literals = long(token >> 4, &mut at);
        out.extend(&input[at..at + literals]);
        at += literals;
        if at == input.len() {
            break;
        }
        let offset = usize::from(input[at]) | usize::from(input[at + 1]) << 8;
        at += 2;
        let len = long(token & 15, &mut at) + 4;
        assert!(offset > 0 && offset <= out.len() - start);
        (0..len).for_each(|_| out.push(out[out.len() - offset]));
    }
}

/// Zstandard frames of raw and RLE blocks: what the vectors hold.
fn zstd(mut input: &[u8], out: &mut Vec<u8>) {
    while !input.is_empty() {
        input = &input[frame(input, out)..];
    }
}

/// One of them; returns its length.
fn frame(input: &[u8], out: &mut Vec<u8>) -> usize {
    assert_eq!(input[..5], [0x28, 0xb5, 0x2f, 0xfd, 0xe0]);
    let mut at = 13;
    loop {
        let header = Bytes { data: input, big: false }.number(at, 3) as usize;
        at += 3;
        let len = header >> 3;
        match header >> 1 & 3 {
            0 => {
                out.extend(&input[at..at + len]);
                at += len;
            }
            1 => {
                out.extend(vec![input[at]; len]);
                at += 1;
            }
            other => panic!("block type {other}"),
        }
        if header & 1 == 1 {
            return at;
        }
    }
}
